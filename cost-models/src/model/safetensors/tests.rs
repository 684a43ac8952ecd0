//! Headers written by hand: exact sizes, and files that must be refused.

use std::path::PathBuf;

use serde_json::json;

use super::*;

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hotset-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn file(json: &str, data: usize) -> Vec<u8> {
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// A header of tensors of these sizes, one after the other, and their sum.
fn header(tensors: &[(&str, &str, u64)]) -> (String, u64) {
    let mut entries = serde_json::Map::new();
    entries.insert("__metadata__".into(), json!({"format": "pt"}));
    let mut at = 0;
    for (name, dtype, bytes) in tensors {
        let entry = json!({"dtype": dtype, "shape": [bytes], "data_offsets": [at, at + bytes]});
        entries.insert((*name).into(), entry);
        at += bytes;
    }
    (serde_json::Value::Object(entries).to_string(), at)
}

const CONFIG: &str = r#"{"model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 64,
    "vocab_size": 100, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32}"#;

/// Two layers: experts one by one in the first, fused in the second, of different sizes.
const TENSORS: [(&str, &str, u64); 9] = [
    ("model.embed_tokens.weight", "BF16", 12_800),
    ("model.layers.0.self_attn.q_proj.weight", "BF16", 1000),
    ("model.layers.0.mlp.experts.0.up_proj.weight", "U8", 300),
    ("model.layers.0.mlp.experts.1.up_proj.weight", "U8", 300),
    ("model.layers.1.mlp.experts.up_proj_blocks", "U8", 800),
    ("model.layers.1.mlp.shared_expert.up_proj.weight", "BF16", 70),
    ("model.layers.2.mlp.experts.0.up_proj.weight", "BF16", 50),
    ("visual.patch_embed.weight", "BF16", 9),
    ("lm_head.weight", "BF16", 12_800),
];

#[test]
fn exact_bytes_by_part() {
    let folder = Folder::new("parts");
    folder.write("config.json", CONFIG);
    let (json, sum) = header(&TENSORS);
    folder.write("model.safetensors", file(&json, sum as usize));
    let model = Model::open(folder.0.to_str().unwrap()).unwrap();
    let stored = model.stored.as_ref().unwrap();
    let weights = &stored.weights;
    let experts: Vec<_> = weights.experts.iter().map(|layer| layer.stored).collect();
    assert_eq!(experts, [300, 400]);
    assert!(weights.slots_differ());
    assert_eq!((weights.embed, weights.lm_head), (12_800, 12_800));
    assert_eq!((weights.dense, weights.shared), (1000, 70));
    assert_eq!((weights.mtp_dense, weights.mtp_experts, stored.skipped), (0, 50, 9));
    assert_eq!(weights.with_mtp() + stored.skipped, sum);
    let rank =
        model.stored_weights(crate::SlotLayout::CHECKPOINT, Parallel { tensor: 2, expert: 1 });
    let rank = rank.unwrap();
    assert_eq!(rank.experts[1].stored, 200);
    assert_eq!(rank.embed, 6400);
    assert!(rank.dense > 500 && rank.dense < 1000, "norms and router are copied");
}

#[test]
fn shards_cut_after_their_headers_are_enough() {
    let folder = Folder::new("shards");
    folder.write("config.json", CONFIG);
    let (first, one) = header(&TENSORS[..4]);
    let (second, two) = header(&TENSORS[4..]);
    folder.write("a.safetensors", file(&first, 0));
    folder.write("b.safetensors", file(&second, two as usize));
    let map: serde_json::Map<_, _> = TENSORS
        .iter()
        .enumerate()
        .map(|(index, tensor)| {
            let shard = if index < 4 { "a.safetensors" } else { "b.safetensors" };
            (tensor.0.to_owned(), json!(shard))
        })
        .collect();
    let index = json!({"metadata": {"total_size": one + two}, "weight_map": map});
    folder.write(INDEX, index.to_string());
    let open = || Model::open(folder.0.to_str().unwrap());
    let model = open().unwrap();
    assert_eq!(model.stored.unwrap().weights.experts[0].stored, 300);
    // Without a shard there are formulas, and what the index says of them.
    std::fs::remove_file(folder.0.join("b.safetensors")).unwrap();
    let model = open().unwrap();
    assert_eq!(model.stored, None);
    assert!(model.notes[0].contains(&format!("the index says {} bytes", one + two)));
    assert!(model.notes[1].contains("1 of 2 shards"), "{:?}", model.notes);
    let elsewhere = json!({"metadata": {"total_size": 1}, "weight_map": {"a": "../a.safetensors"}});
    folder.write(INDEX, elsewhere.to_string());
    assert!(open().unwrap_err().to_string().contains("not a file beside it"));
}

#[test]
fn headers_that_do_not_fit_the_configuration() {
    let folder = Folder::new("misfit");
    folder.write("config.json", CONFIG);
    let refusal = |tensors: &[(&str, &str, u64)]| {
        let (json, _) = header(tensors);
        folder.write("model.safetensors", file(&json, 0));
        Model::open(folder.0.to_str().unwrap()).unwrap_err().to_string()
    };
    assert!(refusal(&TENSORS[..4]).contains("no expert tensors in layer 1"));
    let mut odd = TENSORS;
    odd[4].2 = 801;
    assert!(refusal(&odd).contains("801 bytes of 2 experts in layer 1: they are not equal"));
}

#[test]
fn hostile_headers() {
    let folder = Folder::new("hostile");
    let refusal = |bytes: Vec<u8>| {
        read_header(&folder.write("x.safetensors", bytes)).unwrap_err().to_string()
    };
    assert!(refusal(vec![1, 2, 3]).contains("the file has 3 bytes, a header begins with 8"));
    let huge = refusal(u64::MAX.to_le_bytes().to_vec());
    assert!(huge.contains("says 18446744073709551615 bytes of JSON; the format allows"), "{huge}");
    let mut cut = file("{}", 0);
    cut[0] = 50;
    assert!(refusal(cut).contains("is cut: 50 bytes of JSON, 2 are there"));
    assert!(refusal(file("{\"a\": 1}", 0)).contains("the header of"));
    let place = |from: u64, to: u64| {
        format!(r#"{{"a": {{"dtype": "U8", "shape": [1], "data_offsets": [{from}, {to}]}}}}"#)
    };
    assert!(
        refusal(file(&place(4, 8), 0)).contains("`a` lies at 4..8; the tensor before it ends at 0")
    );
    assert!(refusal(file(&place(0, 8), 4)).contains("its tensors take 8 bytes, the file has 4"));
    let backwards = r#"{"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 4]},
        "b": {"dtype": "U8", "shape": [], "data_offsets": [4, 2]}}"#;
    assert!(refusal(file(backwards, 0)).contains("`b` lies at 4..2"));
    let twice = r#"{"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 4]},
        "a": {"dtype": "U8", "shape": [], "data_offsets": [4, 8]}}"#;
    assert!(refusal(file(twice, 0)).contains("tensor `a` comes twice"));
    let negative = r#"{"a": {"dtype": "U8", "shape": [], "data_offsets": [-1, 4]}}"#;
    assert!(refusal(file(negative, 0)).contains("invalid value"));
    let past = format!(
        r#"{{"a": {{"dtype": "U8", "shape": [], "data_offsets": [0, {}]}}}}"#,
        (1u64 << 53) + 1
    );
    let header = read_header(&folder.write("x.safetensors", file(&past, 0))).unwrap();
    assert_eq!(header.data_bytes(), 9_007_199_254_740_993, "past 2^53 without a float");
}
