//! Inputs that hold arrays: npz, npy, safetensors, GGUF.

use serde_json::json;

use super::{Contents, IDS, flat, npy, tokens, u32s, weights, wide};

pub(super) fn hotset_npz() -> Contents {
    let info = br#"{"model": "m", "experts": 8, "sequence_labels": ["a", "b"], "doc": [4, null]}"#;
    let predicted: Vec<u8> = IDS.iter().flat_map(|token| [255, 255, token[1][0], 255]).collect();
    let arrays = [
        ("expert_ids", npy("|u1", "(5, 2, 2)", &flat())),
        ("sequence", npy("<u4", "(5,)", &u32s(tokens().map(|t| t.1 as u32)))),
        ("position", npy("<u4", "(5,)", &u32s(tokens().map(|t| t.2 as u32)))),
        ("phase", npy("|u1", "(5,)", &tokens().map(|t| u8::from(!t.3)).collect::<Vec<u8>>())),
        ("token_id", npy("<u4", "(5,)", &u32s(0..5))),
        ("expert_weights", npy("<f4", "(5, 2, 2)", &weights())),
        ("predicted_ids", npy("|u1", "(1, 5, 2, 2)", &predicted)),
        ("prompt_embedding_in", npy("<f2", "(2, 2)", &[1; 8])),
        ("prompt_embedding_out", npy("<f2", "(2, 2)", &[2; 8])),
        ("info", npy("|u1", &format!("({},)", info.len()), info)),
    ];
    Contents::Zip(arrays.map(|(name, bytes)| (format!("{name}.npy"), bytes)).to_vec())
}

pub(super) fn hf_npz() -> Contents {
    let ids = wide(&flat(), |id| u16::from(id).to_le_bytes());
    let arrays = [
        ("topk_ids", npy("<u2", "(5, 2, 2)", &ids)),
        ("seq_id", npy("<i4", "(5,)", &u32s(tokens().map(|t| t.1 as u32)))),
        ("position", npy("<i4", "(5,)", &u32s(tokens().map(|t| t.2 as u32)))),
        ("is_decode", npy("|u1", "(5,)", &tokens().map(|t| u8::from(!t.3)).collect::<Vec<u8>>())),
        ("moe_layer_ids", npy("<i4", "(2,)", &u32s(3..5))),
    ];
    Contents::Zip(arrays.map(|(name, bytes)| (format!("{name}.npy"), bytes)).to_vec())
}

/// A file of these tensors.
fn tensors(list: &[(&str, &str, &[u64], Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), json!({ "model": "m", "top_k": "2" }));
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in list {
        let start = data.len();
        data.extend_from_slice(bytes);
        let offsets = [start, data.len()];
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
        header.insert((*name).to_owned(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

pub(super) fn safetensors() -> Vec<u8> {
    let decode = tokens().map(|t| u8::from(!t.3)).collect();
    tensors(&[
        ("topk_ids", "U8", &[5, 2, 2], flat()),
        ("seq_id", "I32", &[5], u32s(tokens().map(|t| t.1 as u32))),
        ("position", "I32", &[5], u32s(tokens().map(|t| t.2 as u32))),
        ("is_decode", "U8", &[5], decode),
        ("topk_weights", "F32", &[5, 2, 2], weights()),
    ])
}

pub(super) fn tensorrt_llm() -> Vec<u8> {
    let counts = |n: i64| (0..8).flat_map(|expert| (expert * n).to_le_bytes()).collect();
    tensors(&[
        ("7_0", "I64", &[8], counts(1)),
        ("7_1", "I64", &[8], counts(2)),
        ("8_0", "I64", &[8], counts(3)),
    ])
}

pub(super) fn moe_infinity() -> Vec<u8> {
    // Every layer has the same sum: a token uses as many experts in each.
    let counts: Vec<u8> =
        (0..8).chain((0..8).rev()).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    npy("<f8", "(1, 2, 8)", &counts)
}

pub(super) fn imatrix() -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(4u64.to_le_bytes());
    file.extend(3u64.to_le_bytes());
    file.extend([text("general.type"), 8u32.to_le_bytes().to_vec(), text("imatrix")].concat());
    for key in ["imatrix.chunk_count", "imatrix.chunk_size"] {
        let number = [4u32.to_le_bytes(), 2u32.to_le_bytes()].concat();
        file.extend([text(key), number].concat());
    }
    let names = (0..2).flat_map(|layer| {
        ["gate", "down"].map(|part| format!("blk.{layer}.ffn_{part}_exps.weight.counts"))
    });
    for (index, name) in names.enumerate() {
        file.extend(text(&name));
        file.extend(2u32.to_le_bytes());
        file.extend([1u64.to_le_bytes(), 8u64.to_le_bytes()].concat());
        file.extend(0u32.to_le_bytes());
        file.extend((32 * index as u64).to_le_bytes());
    }
    file.resize(file.len().next_multiple_of(32), 0);
    for layer in 0..2u8 {
        for _ in 0..2 {
            file.extend((0..8u8).flat_map(|expert| f32::from(expert + layer).to_le_bytes()));
        }
    }
    file
}
