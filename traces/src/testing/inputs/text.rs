//! Inputs of lines and of JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{IDS, cell, npy, tokens, wide};

pub(super) fn jsonl() -> String {
    let mut text =
        "{\"type\": \"header\", \"model\": \"m\", \"num_experts\": 8, \"top_k\": 2}\n".to_owned();
    for (row, request, place, prompt) in tokens() {
        let phase = if prompt { "prefill" } else { "decode" };
        let [a, b] = IDS[row];
        let line = json!({
            "seq": request, "pos": place, "tok": row, "phase": phase, "step": row,
            "experts": { "3": a, "4": b }, "weights": { "3": [0.75, 0.25], "4": [0.5, 0.5] },
        });
        text.push_str(&format!("{line}\n"));
    }
    text
}

pub(super) fn vllm_base64() -> String {
    let reply = |rows: std::ops::Range<usize>| {
        let ids = IDS[rows.clone()].as_flattened().as_flattened();
        let array = npy("|u1", &format!("({}, 2, 2)", rows.len()), ids);
        let choice =
            json!({ "index": 0, "token_ids": [1, 2], "routed_experts": STANDARD.encode(array) });
        json!({ "model": "m", "choices": [choice] }).to_string()
    };
    format!("{}\n{}\n", reply(0..3), reply(3..5))
}

pub(super) fn vllm_nested() -> String {
    json!({
        "model": "m", "prompt_routed_experts": IDS[..2], "usage": { "prompt_tokens": 2 },
        "choices": [{ "token_ids": [1, 2], "routed_experts": IDS[2..3] }],
    })
    .to_string()
}

pub(super) fn sglang_json() -> String {
    let reply = |ids: &[[[u8; 2]; 2]]| {
        let raw = wide(ids.as_flattened().as_flattened(), |id| i32::from(id).to_le_bytes());
        let meta = json!({
            "prompt_tokens": ids.len() - 1, "completion_tokens": 2,
            "routed_experts": STANDARD.encode(raw),
        });
        json!({ "text": "x", "output_ids": [1, 2], "meta_info": meta }).to_string()
    };
    format!("{}\n{}\n", reply(&IDS[..3]), reply(&IDS[3..]))
}

/// The passes of the first request: its prompt, then its generated token.
const PASSES: [std::ops::Range<usize>; 2] = [0..2, 2..3];

pub(super) fn pr28544() -> String {
    let mut text = "layer,expert\n".to_owned();
    for rows in PASSES {
        for layer in 0..2 {
            for id in rows.clone().flat_map(|row| cell(row, layer)) {
                text.push_str(&format!("{layer},{id}\n"));
            }
        }
    }
    text
}

pub(super) fn cartaz() -> String {
    let mut text = "phase,token,layer,rank,expert\n".to_owned();
    for (pass, rows) in PASSES.into_iter().enumerate() {
        let phase = ["prefill", "decode"][pass];
        for (layer, row) in (0..2).flat_map(|layer| rows.clone().map(move |row| (layer, row))) {
            for (rank, id) in cell(row, layer).iter().enumerate() {
                text.push_str(&format!("{phase},{row},{layer},{rank},{id}\n"));
            }
        }
    }
    text
}

pub(super) fn thecodacus() -> String {
    let mut text = String::new();
    for rows in PASSES {
        for (layer, row) in (0..2).flat_map(|layer| rows.clone().map(move |row| (layer, row))) {
            let [a, b] = cell(row, layer);
            text.push_str(&format!("{},{layer},{a},{b}\n", row as i64 - 2));
        }
    }
    text
}

pub(super) fn llama_nvmoe() -> String {
    let mut text = String::new();
    for rows in PASSES {
        for layer in 0..2 {
            let ids: Vec<[u8; 2]> = rows.clone().map(|row| cell(row, layer)).collect();
            text.push_str(&format!("{}\n", json!({ "l": layer, "t": ids.len(), "e": ids })));
        }
    }
    text
}

pub(super) fn eval_callback() -> String {
    let mut text = String::new();
    for layer in 0..2 {
        text.push_str(&format!(
            "common_debug_cb_eval: ffn_moe_topk-{layer} = (i32) VIEW(ffn_moe_argsort-{layer}{{8, 3, \
             1, 1}}, }}) = {{2, 3, 1, 1}}\n    [\n        [\n"
        ));
        let mut sum = 0;
        for token in &IDS[..3] {
            let [a, b] = token[layer];
            sum += u32::from(a) + u32::from(b);
            text.push_str(&format!("            [ {a:>12}.0000, {b:>12}.0000  ],\n"));
        }
        text.push_str(&format!("        ],\n    ]\n    sum = {sum}.000000\n"));
    }
    text
}

pub(super) fn nvmoe() -> String {
    let line = |token: &[[u8; 2]; 2]| {
        let pairs: Vec<(usize, u8)> =
            (0..2).flat_map(|layer| token[layer].map(|id| (layer + 1, id))).collect();
        format!("{}\n", json!(pairs))
    };
    IDS.iter().map(line).collect()
}

pub(super) fn warp() -> String {
    let line = |(place, token)| format!("{}\n", json!({ "tok": place, "layers": token }));
    IDS.iter().enumerate().map(line).collect()
}

pub(super) fn bigmoe() -> String {
    let mut text = "# route_trace v1\n# model=m.gguf arch=a n_layer=2 n_expert=8 n_expert_used=2\n\
                    # layer=0 expert_bytes=1000 dense_bytes=5\n\
                    turn,phase,step,layer,slot,expert,weight,residency,expert_bytes,dropped\n"
        .to_owned();
    for (pass, rows) in PASSES.into_iter().enumerate() {
        for (layer, row) in (0..2).flat_map(|layer| rows.clone().map(move |row| (layer, row))) {
            for (slot, id) in cell(row, layer).iter().enumerate() {
                text.push_str(&format!("0,{pass},{row},{layer},{slot},{id},0.5,0,1000,0\n"));
            }
        }
    }
    text
}

pub(super) fn policylang() -> String {
    let header = json!({ "model_name": "m", "num_layers": 2, "num_experts": 8, "top_k": 2 });
    let mut text = format!("{header}\n");
    for (row, request, place, prompt) in tokens() {
        for (layer, ids) in IDS[row].iter().enumerate() {
            let phase = if prompt { "prefill" } else { "decode" };
            let cell = json!({
                "p": request, "t": place, "l": layer, "e": ids, "s": [0.75, 0.25], "ph": phase,
            });
            text.push_str(&format!("{cell}\n"));
        }
    }
    text
}

pub(super) fn lattice() -> String {
    let mut text = String::new();
    for (row, _, place, _) in tokens() {
        for (layer, ids) in IDS[row].iter().enumerate() {
            let cell = json!({
                "layer_idx": layer, "token_idx": place, "selected_ids": ids,
                "gate_weights": [0.75, 0.25],
            });
            text.push_str(&format!("{cell}\n"));
        }
    }
    text
}

/// One token and layer a line, as keys of JSON.
pub(super) fn columns_jsonl() -> String {
    let mut text = "{\"type\":\"meta\",\"model_id\":\"m\",\"num_experts\":8}\n".to_owned();
    for (row, request, place, prompt) in super::tokens() {
        let phase = if prompt { "prefill" } else { "decode" };
        for layer in 0..2 {
            let [a, b] = cell(row, layer);
            text.push_str(&format!(
                "{{\"req\":\"r{request}\",\"pos\":{place},\"layer\":{layer},\"phase\":\"{phase}\",\
                 \"topk_ids\":[{a}, {b}],\"topk_weights\":[0.75,0.25]}}\n"
            ));
        }
    }
    text
}

/// One selection a line, as a spreadsheet writes it.
pub(super) fn columns_csv() -> String {
    let mut text = "# a run\nrequest;token;layer;rank;expert;phase\n".to_owned();
    for (row, request, place, prompt) in super::tokens() {
        for layer in 0..2 {
            for (rank, expert) in cell(row, layer).into_iter().enumerate() {
                let phase = u8::from(!prompt);
                text.push_str(&format!("{request};{place};{layer};{rank};{expert};{phase}\n"));
            }
        }
    }
    text
}

/// Counts of the routing: layer, expert, how often.
pub(super) fn counts() -> Vec<[usize; 3]> {
    let mut counts = Vec::new();
    for layer in 0..2 {
        for expert in 0..8 {
            let uses = (0..super::IDS.len())
                .filter(|&row| cell(row, layer).contains(&(expert as u8)))
                .count();
            counts.push([layer, expert, uses]);
        }
    }
    counts
}

/// Counts under names, with nothing around the separators.
pub(super) fn counts_csv() -> String {
    let lines = counts().into_iter().map(|[layer, expert, n]| format!("{layer},{expert},{n}\n"));
    "layer,expert,count\n".to_owned() + &lines.collect::<String>()
}

/// A matrix of counts.
pub(super) fn counts_json() -> String {
    let counts = counts();
    let row = |layer: usize| {
        let row: Vec<String> =
            counts[8 * layer..8 * layer + 8].iter().map(|c| c[2].to_string()).collect();
        format!("[{}]", row.join(","))
    };
    format!("{{\"total_input_tokens\":5,\"expert_popularity\":[{},{}]}}", row(0), row(1))
}

/// colibri's counts.
pub(super) fn coli_usage() -> String {
    let lines = counts().into_iter().map(|[layer, expert, n]| format!("{layer} {expert} {n}\n"));
    "-1 2 8\n-2 1 3815245270\n".to_owned() + &lines.collect::<String>()
}

/// moeprof's counts.
pub(super) fn moeprof() -> String {
    let counts = counts();
    let row = |layer: usize| {
        let row: Vec<String> =
            counts[8 * layer..8 * layer + 8].iter().map(|c| c[2].to_string()).collect();
        format!("decode_tokens {layer} {}\n", row.join(" "))
    };
    format!("moeprof v1 n_layer=2 n_expert=8 tokens=5\n{}{}", row(0), row(1))
}
