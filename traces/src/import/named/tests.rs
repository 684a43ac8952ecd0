//! One routing, written as people write it; each is read as the same rows.

use crate::{ColumnName, Format, ImportOptions, Phase, Trace, import_bytes};

fn read(text: &str) -> Trace {
    try_read(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn try_read(text: &str) -> Result<Trace, String> {
    with(text, &ImportOptions::default())
}

fn with(text: &str, options: &ImportOptions) -> Result<Trace, String> {
    import_bytes(Format::Columns, "x", text.as_bytes(), options).map_err(|e| e.to_string())
}

/// Ids of all rows, in the order of the trace.
fn ids(trace: &Trace) -> Vec<u32> {
    trace.ids().iter().collect()
}

/// Three tokens, two layers, top-2.
const IDS: [u32; 12] = [1, 2, 5, 4, 3, 0, 7, 6, 2, 1, 0, 5];

fn cell(token: usize, layer: usize) -> [u32; 2] {
    let at = 4 * token + 2 * layer;
    [IDS[at], IDS[at + 1]]
}

fn each(line: impl Fn(usize, usize, [u32; 2]) -> String) -> String {
    let all = (0..3).flat_map(|token| (0..2).map(move |layer| (token, layer)));
    all.map(|(token, layer)| line(token, layer, cell(token, layer))).collect()
}

#[test]
fn one_routing_in_every_syntax() {
    let json = each(|t, l, e| format!("{{\"tok\": {t}, \"il\": {l}, \"sel\": {e:?}}}\n"));
    let array = format!("[{}]", json.trim_end().replace('\n', ",\n"));
    let pretty = array.replace(',', ",\n   ").replace('{', "{\n  ");
    let csv = "token,layer_id,experts\n".to_owned()
        + &each(|t, l, [a, b]| format!("{t},{l},\"[{a}, {b}]\"\n"));
    let bare = "token,layer_id,experts\n".to_owned()
        + &each(|t, l, [a, b]| format!("{t},{l},[{a}, {b}]\n"));
    let ragged = "Token\tLayer\tExpert IDs\n".to_owned()
        + &each(|t, l, [a, b]| format!("{t}\t{l}\t{a}\t{b}\n"));
    let columns = "note\n# a comment\nil;top1_expert;top2_expert;token\n".to_owned()
        + &each(|t, l, [a, b]| format!("{l};{a};{b};{t}\n"));
    let blanks =
        "token layer e0 e1\n".to_owned() + &each(|t, l, [a, b]| format!("  {t}   {l} {a} {b}\n"));
    let lines = "token,layer,expert,slot\n".to_owned()
        + &each(|t, l, [a, b]| format!("{t},{l},{a},0\n{t},{l},{b},1\n"));
    let paths = each(|t, l, e| {
        format!("{{\"layer_name\": \"model.layers.{l}.mlp\", \"pos\": {t}, \"topk_ids\": {e:?}}}\n")
    });
    let objects = each(|t, l, [a, b]| {
        format!(
            "{{\"pos\": {t}, \"layer\": {l}, \"experts\": [{{\"id\": {a}, \"weight\": 0.5}}, \
             {{\"id\": {b}, \"weight\": 0.25}}]}}\n"
        )
    });
    for text in [json, array, pretty, csv, bare, ragged, columns, blanks, lines, paths, objects] {
        let trace = read(&text);
        assert_eq!(ids(&trace), IDS, "{text}");
        assert_eq!((trace.positions(), trace.sequences().len()), (&[0, 1, 2][..], 1), "{text}");
    }
}

#[test]
fn one_routing_in_every_order() {
    let line = |t: usize, l: usize| format!("{t},{l},{} {}\n", cell(t, l)[0], cell(t, l)[1]);
    let header = "token_idx,layer,experts\n";
    let by = |order: &[(usize, usize)]| {
        header.to_owned() + &order.iter().map(|&(t, l)| line(t, l)).collect::<String>()
    };
    // Layer by layer; a prompt layer by layer and a decoded token; layers sorted as text.
    let orders: [&[(usize, usize)]; 4] = [
        &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)],
        &[(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)],
        &[(0, 1), (0, 0), (1, 1), (1, 0), (2, 1), (2, 0)],
        &[(2, 0), (0, 0), (1, 0), (2, 1), (0, 1), (1, 1)],
    ];
    for order in orders {
        assert_eq!(ids(&read(&by(order))), IDS, "{order:?}");
    }
    // A cell twice, alike, is a copy; with other experts it contradicts.
    let copied = by(&[(0, 0), (1, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    assert_eq!(ids(&read(&copied)), IDS);
    let other = copied.replacen("1,0,3 0", "1,0,3 6", 1);
    let refused = try_read(&other).unwrap_err();
    assert!(refused.contains("token 1 has layer 0 twice"), "{refused}");
}

#[test]
fn numbers_that_begin_again_are_passes() {
    // A prompt of two rows, then one row a pass.
    let text = "Layer,Token,ExpertIDs\n0,0,1 2\n0,1,3 0\n1,0,5 4\n1,1,7 6\n0,0,2 1\n1,0,0 5\n";
    let trace = read(text);
    assert_eq!(ids(&trace), IDS);
    assert_eq!(trace.steps(), Some(&[0, 0, 1][..]));
    assert_eq!(trace.positions(), [0, 1, 2]);
    // Positions that begin again are another conversation.
    let text = "layer,pos,ids\n0,0,1 2\n1,0,5 4\n0,1,3 0\n1,1,7 6\n0,0,2 1\n1,0,0 5\n";
    let trace = read(text);
    assert_eq!((ids(&trace), trace.sequences().len()), (IDS.to_vec(), 2));
}

#[test]
fn tokens_without_numbers_are_counted() {
    let text = "layer_id,expert_ids\n0,1 2\n0,3 0\n1,5 4\n1,7 6\n0,2 1\n1,0 5\n";
    assert_eq!(ids(&read(text)), IDS);
    // Texts of tokens, some of which are digits.
    let text = "Layer ID,Token,Activated Expert IDs\n0,\"a,\",\"[1, 2]\"\n0,7,\"[3, 0]\"\n0,7,\"[2, 1]\"\n\
                1,\"a,\",\"[5, 4]\"\n1,7,\"[7, 6]\"\n1,7,\"[0, 5]\"\n";
    assert_eq!(ids(&read(text)), IDS);
    let batches = "{\"layer\":0,\"n_tokens\":2,\"topk_experts\":[[1,2],[3,0]]}\n\
                   {\"layer\":0,\"n_tokens\":2,\"topk_experts\":[[1,2],[3,0]]}\n\
                   {\"layer\":1,\"n_tokens\":2,\"topk_experts\":[[5,4],[7,6]]}\n\
                   {\"layer\":0,\"topk_experts\":[[2,1]]}\n{\"layer\":1,\"topk_experts\":[[0,5]]}\n";
    assert_eq!(ids(&read(batches)), IDS);
}

#[test]
fn requests_that_interleave_become_sequences() {
    let line = |req: &str, pos: usize, l: usize, [a, b]: [u32; 2], phase: &str| {
        format!(
            "{{\"req\":\"{req}\",\"tok\":{pos},\"layer\":{l},\"phase\":\"{phase}\",\"e\":[{a},{b}]}}\n"
        )
    };
    let mut text = String::new();
    for (req, pos, token, phase) in
        [("b", 0, 0, "prompt"), ("a", 0, 2, "prompt"), ("b", 1, 1, "generated")]
    {
        for layer in 0..2 {
            text.push_str(&line(req, pos, layer, cell(token, layer), phase));
        }
    }
    let trace = read(&text);
    assert_eq!(ids(&trace), [1, 2, 5, 4, 3, 0, 7, 6, 2, 1, 0, 5]);
    assert_eq!(trace.sequences().len(), 2);
    assert_eq!(trace.steps(), Some(&[0, 2, 1][..]));
    assert_eq!(trace.phases(), [0, 1, 0]);
    assert_eq!(Phase::Prefill as u8, 0);
}

#[test]
fn what_is_left_out_is_counted() {
    // A profiling pass of sixteen rows alike with weights that are no numbers, padding, an event.
    let mut text =
        "{\"type\":\"meta\",\"num_experts\":8,\"top_k\":2}\n{\"event\":\"start\"}\n".to_owned();
    for row in 0..16 {
        text.push_str(&format!(
            "{{\"token_idx\":{row},\"layer\":0,\"topk_ids\":[7,6,-1],\"topk_weights\":[NaN,NaN,0]}}\n"
        ));
    }
    for (row, ids) in ["1,2,-1", "3,0,-1"].iter().enumerate() {
        text.push_str(&format!(
            "{{\"token_idx\":{row},\"layer\":0,\"topk_ids\":[{ids}],\"topk_weights\":[0.5,0.25,0]}}\n"
        ));
    }
    let trace = read(&text);
    assert_eq!(ids(&trace), [1, 2, 3, 0]);
    assert_eq!(trace.shape().layers()[0].experts, 8);
    assert!(trace.weights().is_some());
    let said = trace.provenance();
    assert!(said.contains("16 rows at the beginning are left out"), "{said}");
    assert!(said.contains("padded with -1"), "{said}");
    // A token that lacks a layer.
    let lacking = "token,layer,ids\n0,0,1 2\n0,1,5 4\n1,0,3 0\n2,0,2 1\n2,1,0 5\n";
    let trace = read(lacking);
    assert_eq!(ids(&trace), [1, 2, 5, 4, 2, 1, 0, 5]);
    assert!(trace.provenance().contains("1 tokens are left out: they lack some of the 2 layers"));
}

#[test]
fn a_shared_expert_at_the_end_of_every_row_is_left_out() {
    let text = "{\"num_experts\":8}\n{\"token\":0,\"layer\":0,\"ids\":[1,2,8]}\n\
                {\"token\":1,\"layer\":0,\"ids\":[3,0,8]}\n";
    let trace = read(text);
    assert_eq!(ids(&trace), [1, 2, 3, 0]);
    assert!(trace.provenance().contains("the shared one"));
}

#[test]
fn refusals_say_what_was_found() {
    let says = |text: &str, part: &str| {
        let refused = try_read(text).unwrap_err();
        assert!(refused.contains(part), "{refused}");
    };
    says("token,layer,ids\n0,0,1 1\n", "expert 1 twice in one row");
    says("token,layer,ids\n0,0,1 -1 2\n", "expert 2 behind a -1");
    says("token,layer,ids\n0,0,70000 1\n", "expert ids are 0 to 65535");
    says("token,layer,ids\n0,x,1 2\n", "layer \"x\" has no number");
    says("token,layer,note,ids\n0,0,x\n", "3 columns, the header names 4");
    says("a,b,c\n0,0,1 2\n", "no line names its columns");
    says(
        "step,layer,expert,prob\n1,0,0,0.3\n1,0,1,0.7\n2,0,0,0.4\n2,0,1,0.6\n",
        "shares or probabilities",
    );
    says("{\"num_experts\":4}\n{\"pos\":0,\"layer\":0,\"ids\":[1,4]}\n", "these count from 1");
    says("{\"num_experts\":4}\n{\"pos\":0,\"layer\":0,\"ids\":[0,6]}\n", "physical ids");
}

#[test]
fn other_names_are_told_by_the_caller() {
    let text = "lyr,when,who\n0,0,1 2\n1,0,5 4\n0,1,3 0\n1,1,7 6\n0,2,2 1\n1,2,0 5\n";
    assert!(try_read(text).is_err());
    let pair =
        |meaning: &str, name: &str| ColumnName { meaning: meaning.into(), name: name.into() };
    let columns = vec![pair("layer", "lyr"), pair("token", "when"), pair("experts", "who")];
    let trace = with(text, &ImportOptions { columns, ..ImportOptions::default() }).unwrap();
    assert_eq!(ids(&trace), IDS);
}
