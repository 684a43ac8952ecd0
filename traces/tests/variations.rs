//! The layouts of the field under other names, orders, sizes and mishaps: one routing, whatever the
//! file looks like, and what can be told from no file is refused.

use std::fmt::Write as _;
use std::path::Path;

use hotset_traces::testing::inputs::npy;
use hotset_traces::{
    Detected, Histogram, ImportOptions, Imported, Trace, import_files, recognise_with,
};

/// Ids of `[tokens][layers][top-k]`, none twice in a row.
struct Routing {
    tokens: usize,
    layers: usize,
    top_k: usize,
    experts: usize,
}

const SMALL: Routing = Routing { tokens: 6, layers: 4, top_k: 2, experts: 16 };

impl Routing {
    fn row(&self, token: usize, layer: usize) -> Vec<u32> {
        let start = token * 37 + layer * 11 + (token * layer) % 7;
        let odd = 2 * (start % 3) + 1;
        (0..self.top_k).map(|rank| ((start + rank * odd) % self.experts) as u32).collect()
    }

    fn ids(&self) -> Vec<u32> {
        let cells = (0..self.tokens).flat_map(|t| (0..self.layers).map(move |l| (t, l)));
        cells.flat_map(|(t, l)| self.row(t, l)).collect()
    }

    /// Cells token by token, layer by layer, backwards, and in no order.
    fn orders(&self) -> [Vec<(usize, usize)>; 4] {
        let by_token: Vec<(usize, usize)> =
            (0..self.tokens).flat_map(|t| (0..self.layers).map(move |l| (t, l))).collect();
        let by_layer = (0..self.layers).flat_map(|l| (0..self.tokens).map(move |t| (t, l)));
        let backwards =
            (0..self.tokens).rev().flat_map(|t| (0..self.layers).map(move |l| (t, l))).collect();
        let mut mixed = by_token.clone();
        mixed.sort_by_key(|&(t, l)| (t * 7919 + l * 104_729 + 13) % 1009);
        [by_token, by_layer.collect(), backwards, mixed]
    }
}

fn read_as(name: &str, bytes: &[u8], options: &ImportOptions) -> Result<Imported, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    match recognise_with(&path, options).map_err(|e| e.to_string())? {
        Some(Detected::Trace(format)) => {
            import_files(format, &[path], options, &()).map_err(|e| e.to_string())
        }
        other => Err(format!("{other:?}")),
    }
}

fn read(text: &str) -> Imported {
    let read = read_as("x", text.as_bytes(), &ImportOptions::default());
    read.unwrap_or_else(|e| panic!("{e}\n{}", &text[..text.len().min(400)]))
}

fn refused(name: &str, bytes: &[u8], part: &str) {
    match read_as(name, bytes, &ImportOptions::default()) {
        Ok(read) => panic!("{} tokens, expected a refusal: {part}", read.trace.tokens()),
        Err(e) => assert!(e.contains(part), "{e}"),
    }
}

fn ids(trace: &Trace) -> Vec<u32> {
    trace.ids().iter().collect()
}

fn counts(name: &str, bytes: &[u8]) -> Result<Vec<(u32, Vec<u64>)>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    told_counts(&path)
}

fn told_counts(path: &Path) -> Result<Vec<(u32, Vec<u64>)>, String> {
    match recognise_with(path, &ImportOptions::default()).map_err(|e| e.to_string())? {
        Some(Detected::Histogram(format)) => {
            let all = Histogram::read(format, &[path.to_owned()]).map_err(|e| e.to_string())?;
            Ok(all.per_layer().map(|(number, counts)| (number, counts.to_vec())).collect())
        }
        other => Err(format!("{other:?}")),
    }
}

/// Names that were seen, and as people spell them.
const TOKENS: &[&str] =
    &["token_idx", "tokenIdx", "Token Index", "pos", "token.pos", "tok", "step"];
const LAYERS: &[&str] = &["layer", "Layer ID", "layerIdx", "il", "l", "LAYER", "moe_layer"];
const EXPERTS: &[&str] =
    &["topk_ids", "selectedExperts", "ExpertIDs", "expert.indices", "sel", "e"];

#[test]
fn names_and_orders() {
    for (index, token) in TOKENS.iter().enumerate() {
        let (layer, experts) = (LAYERS[index], EXPERTS[index % EXPERTS.len()]);
        for order in SMALL.orders() {
            let mut json = String::new();
            let mut csv = format!("{experts};{token};note;{layer}\n");
            for &(t, l) in &order {
                let row = SMALL.row(t, l);
                let _ = writeln!(json, "{{\"{experts}\":{row:?},\"{token}\":{t},\"{layer}\":{l}}}");
                let _ = writeln!(csv, "{}|{};{t};x;{l}", row[0], row[1]);
            }
            for text in [json, csv] {
                let trace = read(&text).trace;
                assert_eq!(ids(&trace), SMALL.ids(), "{text}");
                assert_eq!(trace.sequences().len(), 1, "{text}");
            }
        }
    }
}

#[test]
fn sizes_of_models() {
    for (tokens, layers, top_k, experts) in
        [(1, 1, 1, 4), (1, 4, 2, 8), (9, 1, 1, 8), (3, 300, 2, 8), (3, 2, 22, 512), (5, 3, 1, 4)]
    {
        let routing = Routing { tokens, layers, top_k, experts };
        for order in routing.orders() {
            let line = |&(t, l): &(usize, usize)| {
                format!("{{\"pos\":{t},\"layer\":{},\"experts\":{:?}}}\n", l + 3, routing.row(t, l))
            };
            let trace = read(&order.iter().map(line).collect::<String>()).trace;
            assert_eq!(ids(&trace), routing.ids(), "{tokens} {layers} {top_k}");
            assert_eq!(trace.shape().layers()[0].number, 3);
        }
    }
}

#[test]
fn columns_go_by_their_numbers_and_lines_by_their_ranks() {
    let [order, ..] = SMALL.orders();
    for name in ["e#", "expert_#", "Expert #", "topk_ids[#]", "expert_#_id", "top#_expert"] {
        let column = |n: usize| name.replace('#', &n.to_string());
        let weight = |n: usize| {
            if name.starts_with("top#") { format!("top{n}_weight") } else { format!("w{n}") }
        };
        let mut text =
            format!("{},{},layer,{},{},token\n", column(2), weight(2), column(1), weight(1));
        for &(t, l) in &order {
            let row = SMALL.row(t, l);
            let _ = writeln!(text, "{},0.25,{l},{},0.75,{t}", row[1], row[0]);
        }
        let trace = read(&text).trace;
        assert_eq!(ids(&trace), SMALL.ids(), "{text}");
        let weights = trace.weights().unwrap();
        assert_eq!((weights.get(0), weights.get(1)), (0.75, 0.25), "{text}");
    }
    for first in [0, 1] {
        let mut text = "token,layer,rank,expert\n".to_owned();
        for &(t, l) in &order {
            let row = SMALL.row(t, l);
            let _ = writeln!(text, "{t},{l},{},{}\n{t},{l},{first},{}", first + 1, row[1], row[0]);
        }
        assert_eq!(ids(&read(&text).trace), SMALL.ids());
    }
    // All first ranks, then all second ones.
    refused(
        "x",
        b"token,layer,rank,expert\n0,0,0,5\n1,0,0,4\n0,0,2,6\n1,0,2,7\n",
        "ranks [2] alone",
    );
}

#[test]
fn numbers_that_begin_again_are_passes_in_either_order() {
    // A prompt of three rows, then two passes of one row and one of two.
    let sizes = [3usize, 1, 1, 2];
    let all = Routing { tokens: 7, layers: 3, top_k: 2, experts: 16 };
    for (step, by_layer) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut text, mut first) = (String::new(), 0);
        for (pass, &size) in sizes.iter().enumerate() {
            let cells: Vec<(usize, usize)> = if by_layer {
                (0..3).flat_map(|l| (0..size).map(move |t| (t, l))).collect()
            } else {
                (0..size).flat_map(|t| (0..3).map(move |l| (t, l))).collect()
            };
            for (t, l) in cells {
                let row = all.row(first + t, l);
                let step = if step { format!(",\"step\":{pass}") } else { String::new() };
                let _ = writeln!(
                    text,
                    "{{\"token_idx\":{t},\"layer\":{l},\"topk_ids\":{row:?}{step}}}"
                );
            }
            first += size;
        }
        let trace = read(&text).trace;
        assert_eq!(ids(&trace), all.ids(), "{text}");
        assert_eq!(trace.steps(), Some(&[0, 0, 0, 1, 2, 3, 3][..]), "{text}");
    }
}

#[test]
fn padding_phases_and_headers() {
    let [order, ..] = SMALL.orders();
    for padding in ["-1", "65535", "4294967295", "null"] {
        let mut text = "{\"header\":true,\"experts\":32,\"layers\":4,\"k\":2}\n".to_owned();
        for &(t, l) in &order {
            let row = SMALL.row(t, l);
            let _ = writeln!(
                text,
                "{{\"pos\":{t},\"layer\":{l},\"is_decode\":{},\"ids\":[{},{},{padding},{padding}]}}",
                t > 2,
                row[0],
                row[1]
            );
        }
        let Imported { trace, notes } = read(&text);
        assert_eq!(ids(&trace), SMALL.ids(), "{text}");
        assert_eq!(trace.phases(), [0, 0, 0, 1, 1, 1]);
        assert!(notes.iter().any(|note| note.contains("padded")), "{notes:?}");
    }
    let text = "pos,layer,phase,ids\n0,0,warm,1 2\n";
    let notes = read(text).notes;
    assert!(notes.iter().any(|note| note.contains("phase \"warm\" is not known")), "{notes:?}");
}

/// Counts of two layers and four experts: some are alike.
const COUNTS: [[u64; 4]; 2] = [[5, 0, 7, 5], [1, 2, 2, 12]];

#[test]
fn counts_in_every_dialect() {
    let wanted: Vec<(u32, Vec<u64>)> =
        (0..).zip(COUNTS.iter().map(|counts| counts.to_vec())).collect();
    let each = |line: &dyn Fn(usize, usize, u64) -> String, between: &str| {
        let cells = (0..2).flat_map(|l| (0..4).map(move |e| (l, e)));
        cells.map(|(l, e)| line(l, e, COUNTS[l][e])).collect::<Vec<String>>().join(between)
    };
    let object = each(&|l, e, n| format!("{{\"layer\":{l},\"expert\":{e},\"count\":{n}}}"), ",");
    let by = |layer: &str, expert: &str| {
        let row = |l: usize| {
            let cell = |e: usize| format!("\"{expert}{e}\":{}", COUNTS[l][e]);
            (0..4).map(cell).collect::<Vec<String>>().join(",")
        };
        format!("{{\"{layer}0\":{{{}}},\"{layer}1\":{{{}}}}}", row(0), row(1))
    };
    let texts = [
        "layer_id;Expert Index;hit_count;rank\n".to_owned()
            + &each(&|l, e, n| format!("{l};{e};{n};{e}"), "\n"),
        "count\texpert\tmoe_layer\n".to_owned() + &each(&|l, e, n| format!("{n}.0\t{e}.0\t{l}.0"), "\n"),
        "layer,e0,e1,e2,e3\n0,5,0,7,5\n1,1,2,2,12\n".to_owned(),
        "layer,expert_1,expert_2,expert_3,expert_4\nlayer_0,5,0,7,5\nlayer_1,1,2,2,12\n".to_owned(),
        "layer,expert,count\n".to_owned() + &each(&|l, e, n| format!("{l},{e},{n}"), "\n") + "\nTotal,34\n",
        format!("[{object}]"),
        format!("{{\"model\":\"m\",\"counts\":[{object}]}}"),
        by("", ""),
        by("layer_", "expert_"),
        by("model.layers.", ""),
        format!("{{\"expert_hits\":{}}}", by("layer_", "expert_")),
        "{\"tokens_per_expert\":[[5,0,7,5],[1,2,2,12]]}".to_owned(),
        "{\"layer_0\":[5,0,7,5],\"layer_1\":[1,2,2,12]}".to_owned(),
        "{\"layers\":[{\"layer\":0,\"experts\":[{\"expert\":0,\"count\":5},{\"expert\":2,\"count\":7},\
         {\"expert\":3,\"count\":5}]},{\"layer\":1,\"experts\":[{\"expert\":0,\"count\":1},\
         {\"expert\":1,\"count\":2},{\"expert\":2,\"count\":2},{\"expert\":3,\"count\":12}]}]}"
            .to_owned(),
    ];
    for text in texts {
        assert_eq!(counts("x", text.as_bytes()), Ok(wanted.clone()), "{text}");
    }
    // Lists that differ may be pins as well.
    refused("x", b"{\"layer_0\":[5,0,7,6],\"layer_1\":[1,2,3,12]}", "expert_counts");
}

#[test]
fn arrays_that_may_be_two_things() {
    let f64s = |values: &[f64]| values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    // Counts of [sequence, layer, expert] whose sums differ, none twice in a row.
    let unequal = f64s(&[3.0, 9.0, 4.0, 0.0, 7.0, 1.0, 2.0, 8.0, 5.0, 11.0, 6.0, 40.0]);
    refused("x.npy", &npy("<f8", "(1, 3, 4)", &unequal), "expert_counts.npy");
    let told = counts("expert_counts.npy", &npy("<f8", "(1, 3, 4)", &unequal)).unwrap();
    assert_eq!(told[1], (1, vec![7, 1, 2, 8]));
    // So many ids of so few experts can be no counts.
    let many = Routing { tokens: 60, layers: 4, top_k: 4, experts: 32 };
    let floats: Vec<f64> = many.ids().into_iter().map(f64::from).collect();
    let bytes = npy("<f8", "(60, 4, 4)", &f64s(&floats));
    let trace = read_as("x.npy", &bytes, &ImportOptions::default()).unwrap().trace;
    assert_eq!(ids(&trace), many.ids());
    // Padding of types without a sign.
    let mut wide = Vec::new();
    for row in SMALL.ids().chunks(2) {
        wide.extend(row.iter().flat_map(|&id| (id as u16).to_le_bytes()));
        wide.extend([0xff; 4]);
    }
    let bytes = npy("<u2", "(6, 4, 4)", &wide);
    let trace = read_as("x.npy", &bytes, &ImportOptions::default()).unwrap().trace;
    assert_eq!(ids(&trace), SMALL.ids());
}

#[test]
fn what_is_unknown_is_said() {
    refused("x", b"hello there\n", "its first line is \"hello there\"");
    refused("x", b"\n  \n", "blank");
    refused("x.pkl", b"\x80\x04\x95\x10\0\0\0\0\0\0\0", "pickle");
    refused("x", b"{\"token_idx\": 0, \"layer\": 0", "does not end");
    refused("x", b"token,layer,e0,e1\n0,0,0.25,0.75\n", "scores, shares or probabilities");
}
