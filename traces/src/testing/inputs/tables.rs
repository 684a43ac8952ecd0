//! Arrays and texts that people record with a few lines of their own.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Contents, IDS, cell, flat, npy, wide};

/// Ids of one layer.
fn layer(layer: usize) -> Vec<u8> {
    (0..IDS.len()).flat_map(|row| cell(row, layer)).collect()
}

/// One array a layer, in the order of text.
pub(super) fn layer_arrays() -> Contents {
    let array = |number: usize| {
        let ids = wide(&layer(number), |id| i64::from(id).to_le_bytes());
        (format!("layer_{number}.npy"), npy("<i8", "(5, 2)", &ids))
    };
    Contents::Zip(vec![array(1), array(0)])
}

/// Big-endian ids with one column of padding, and a last row that was never filled.
pub(super) fn padded_array() -> Vec<u8> {
    let mut ids: Vec<u8> = Vec::new();
    for row in IDS {
        for ids_of_layer in row {
            let padded = ids_of_layer.map(i16::from).into_iter().chain([-1]);
            ids.extend(padded.flat_map(i16::to_be_bytes));
        }
    }
    ids.extend([0; 12]);
    npy(">i2", "(6, 2, 3)", &ids)
}

/// Scores of eight experts, highest for those that are chosen.
pub(super) fn scores() -> Vec<u8> {
    let mut scores = Vec::new();
    for ids in IDS.as_flattened() {
        let mut row = [-1.5f32; 8];
        row[usize::from(ids[0])] = 2.25;
        row[usize::from(ids[1])] = 0.5;
        scores.extend(row.into_iter().flat_map(f32::to_le_bytes));
    }
    npy("<f4", "(5, 2, 8)", &scores)
}

/// One file a layer, one sample.
pub(super) fn esft() -> Contents {
    let file = |number: usize| {
        let ids: Vec<String> = layer(number).iter().map(u8::to_string).collect();
        let weights: Vec<String> = ids.iter().map(|_| "0.5".to_owned()).collect();
        let text = format!("{}\t\t{}\n", ids.join("\t"), weights.join("\t"));
        (format!("expert_weights_{number}.txt"), text.into_bytes())
    };
    Contents::Folder(vec![file(0), file(1)])
}

pub(super) fn coli_route() -> String {
    let mut text = String::new();
    let mut call = 0;
    for pass in [0..3, 3..4, 4..5] {
        for layer in 0..2 {
            for (index, row) in pass.clone().enumerate() {
                let [best, next] = cell(row, layer);
                // Writing to text does not fail.
                writeln!(text, "{call} {index} {layer} {best}:0.7500 {next}:0.2500").ok();
            }
            call += 1;
        }
    }
    text
}

pub(super) fn moe_stream() -> Vec<u8> {
    let mut bytes = Vec::new();
    for pass in [0..3, 3..5] {
        for layer in 0..2 {
            for number in [layer as i32, pass.len() as i32, 2] {
                bytes.extend(number.to_le_bytes());
            }
            let ids = pass.clone().flat_map(|row| cell(row, layer));
            bytes.extend(ids.flat_map(|id| i32::from(id).to_le_bytes()));
        }
    }
    bytes
}

pub(super) fn dynamo() -> String {
    let routes = json!({ "data": STANDARD.encode(flat()), "shape": [5, 2, 2], "start": 0,
        "dtype": "uint8" });
    let reply = json!({ "model": "m", "usage": { "prompt_tokens": 2 },
        "nvext": { "engine_data": { "routed_experts": routes } } });
    reply.to_string()
}

/// Tokens and layers by name, the last token first.
pub(super) fn router_data() -> String {
    let token = |row: usize| {
        let of = |layer: usize| {
            let selected: [u8; 2] = cell(row, layer);
            json!({ "selected_probs": [0.75, 0.25], "selected_experts": selected })
        };
        (format!("token_{}", 7 + row), json!({ "layer_1": of(1), "layer_0": of(0) }))
    };
    let data: serde_json::Map<String, Value> = (0..IDS.len()).rev().map(token).collect();
    serde_json::to_string_pretty(&json!({ "router_data": [data] })).unwrap_or_default()
}

/// One entry a selection.
pub(super) fn activations() -> String {
    let mut entries = Vec::new();
    for row in 0..IDS.len() {
        for layer in 0..2 {
            for id in cell(row, layer) {
                entries.push(json!({ "layer": layer, "token_idx": row, "expert_idx": id,
                    "gate_weight": 0.5 }));
            }
        }
    }
    json!({ "num_experts": 8, "activations": entries }).to_string()
}

/// Forward passes of rows of layers.
pub(super) fn forwards() -> String {
    let pass = |(number, rows): (usize, std::ops::Range<usize>)| {
        let row = |(index, row): (usize, usize)| {
            let layer = |layer: usize| json!({ "expert_ids": cell(row, layer), "layer": layer });
            json!({ "row": index, "layers": [layer(0), layer(1)], "token_position": row })
        };
        let rows: Vec<Value> = rows.enumerate().map(row).collect();
        json!({ "rows": rows, "forward": number, "phase": "decode" })
    };
    let passes: Vec<Value> = [0..3, 3..5].into_iter().enumerate().map(pass).collect();
    json!({ "forwards": passes }).to_string()
}

/// A list of tokens for each layer.
pub(super) fn layer_lists() -> String {
    let of =
        |layer: usize| -> Vec<[u8; 2]> { (0..IDS.len()).map(|row| cell(row, layer)).collect() };
    json!({ "layer_1": of(1), "layer_0": of(0) }).to_string()
}

/// Tokens, layers, experts.
pub(super) fn bare_lists() -> String {
    json!(IDS).to_string()
}
