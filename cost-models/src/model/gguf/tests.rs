//! GGUF files written by hand: mixed types, shards, unknown types, and files that must be refused.

use std::path::PathBuf;

use super::*;
use crate::model::{AttentionSpan, KvFormat, Mixer, Parallel};
use crate::{GgmlType, SlotLayout};

/// Builds a file: keys, then tensors whose offsets follow from their sizes.
struct Builder {
    keys: Vec<u8>,
    key_count: u64,
    tensors: Vec<(String, Vec<u64>, u32, u64)>,
}

impl Builder {
    fn new(architecture: &str) -> Self {
        let builder = Self { keys: vec![], key_count: 0, tensors: vec![] };
        builder.text("general.architecture", architecture)
    }

    fn key(mut self, name: &str, kind: u32, value: &[u8]) -> Self {
        self.keys.extend((name.len() as u64).to_le_bytes());
        self.keys.extend(name.as_bytes());
        self.keys.extend(kind.to_le_bytes());
        self.keys.extend(value);
        self.key_count += 1;
        self
    }

    fn text(self, name: &str, value: &str) -> Self {
        let mut bytes = (value.len() as u64).to_le_bytes().to_vec();
        bytes.extend(value.as_bytes());
        self.key(name, 8, &bytes)
    }

    fn number(self, name: &str, value: u32) -> Self {
        self.key(name, 4, &value.to_le_bytes())
    }

    fn list(self, name: &str, values: &[u32]) -> Self {
        let mut bytes = 4u32.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.key(name, 9, &bytes)
    }

    /// A tensor of a known type.
    fn tensor(self, name: &str, dimensions: &[u64], kind: GgmlType) -> Self {
        let elements: u64 = dimensions.iter().product();
        self.raw(name, dimensions, kind.id(), elements / kind.block() * kind.block_bytes())
    }

    /// A tensor of so many bytes, whatever its type.
    fn raw(mut self, name: &str, dimensions: &[u64], kind: u32, bytes: u64) -> Self {
        self.tensors.push((name.into(), dimensions.into(), kind, bytes));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend(self.key_count.to_le_bytes());
        file.extend(&self.keys);
        let mut offset = 0u64;
        for (name, dimensions, kind, bytes) in &self.tensors {
            file.extend((name.len() as u64).to_le_bytes());
            file.extend(name.as_bytes());
            file.extend((dimensions.len() as u32).to_le_bytes());
            file.extend(dimensions.iter().flat_map(|side| side.to_le_bytes()));
            file.extend(kind.to_le_bytes());
            file.extend(offset.to_le_bytes());
            offset += bytes.next_multiple_of(32);
        }
        file.resize(file.len().next_multiple_of(32) + offset as usize, 0);
        file
    }

    fn write(&self, name: &str) -> File {
        File::new(name, &self.bytes())
    }
}

/// A file that is gone afterwards.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("hotset-gguf-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn refusal(&self) -> String {
        Model::from_gguf_path(&self.0).unwrap_err().to_string()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A model of 2 layers of 4 experts, 256 wide both ways, with a window on the first.
fn keys() -> Builder {
    Builder::new("gpt-oss")
        .number("gpt-oss.block_count", 2)
        .number("gpt-oss.embedding_length", 256)
        .number("gpt-oss.expert_count", 4)
        .number("gpt-oss.expert_used_count", 2)
        .number("gpt-oss.context_length", 4096)
        .number("gpt-oss.attention.head_count", 4)
        .list("gpt-oss.attention.head_count_kv", &[2, 1])
        .number("gpt-oss.attention.key_length", 64)
        .number("gpt-oss.attention.value_length", 64)
        .number("gpt-oss.attention.sliding_window", 16)
        .list("tokenizer.ggml.token_type", &[7; 5000])
}

fn layer(builder: Builder, number: u32, down: GgmlType) -> Builder {
    let name = |part: &str| format!("blk.{number}.{part}");
    builder
        .tensor(&name("attn_q.weight"), &[256, 256], GgmlType::Q8_0)
        .tensor(&name("attn_k.weight"), &[256, 128], GgmlType::Q8_0)
        .tensor(&name("attn_norm.weight"), &[256], GgmlType::F32)
        .tensor(&name("ffn_gate_inp.weight"), &[256, 4], GgmlType::F32)
        .tensor(&name("ffn_gate_exps.weight"), &[256, 256, 4], GgmlType::Q4K)
        .tensor(&name("ffn_up_exps.weight"), &[256, 256, 4], GgmlType::Q4K)
        .tensor(&name("ffn_down_exps.weight"), &[256, 256, 4], down)
}

fn whole() -> Builder {
    let builder = keys().tensor("token_embd.weight", &[256, 100], GgmlType::Q8_0);
    layer(layer(builder, 0, GgmlType::Q6K), 1, GgmlType::Q4K)
}

#[test]
fn mixed_types_give_slots_of_their_own() {
    let file = whole().write("mixed.gguf");
    let model = Model::open(file.0.to_str().unwrap()).unwrap();
    let weights = model.stored_weights(SlotLayout::CHECKPOINT, Parallel::NONE).unwrap();
    let stored: Vec<u64> = weights.experts.iter().map(|layer| layer.stored).collect();
    assert_eq!(stored, [256 * (2 * 144 + 210), 256 * 3 * 144]);
    assert!(weights.slots_differ());
    assert_eq!(weights.largest_slot(), stored[0]);
    assert_eq!(weights.embed, 256 * 100 / 32 * 34);
    assert_eq!(weights.lm_head, 0);
    assert!(model.tied, "no output tensor");
    let dense = 2 * ((256 * 256 + 256 * 128) / 32 * 34 + 256 * 4 + 256 * 4 * 4);
    assert_eq!(weights.dense, dense);
    assert_eq!(model.parameters().routed, 2 * 4 * 3 * 256 * 256);
    assert_eq!(model.active_parameters(), model.parameters().always() + 2 * 2 * 3 * 256 * 256);
    assert_eq!(model.vocab, 100);
    let types = &model.stored.as_ref().unwrap().expert_types;
    assert_eq!(types, &["1 x q4_k", "1 x q4_k + q6_k"]);
    // A window on even layers, key-value heads that differ by layer.
    let kv: Vec<u64> =
        model.layers.iter().map(|layer| layer.mixer.kv(100, KvFormat::Q8_0, 1).tokens).collect();
    assert_eq!(kv, [16 * 2 * 4 * 34, 100 * 2 * 2 * 34]);
    assert!(
        matches!(&model.layers[0].mixer, Mixer::Heads(heads) if heads.span == AttentionSpan::Sliding(16))
    );
}

#[test]
fn unknown_types_are_sized_by_the_next_offset_and_said_so() {
    let mut builder = whole();
    // A fork's own type under an id that means something else here.
    for tensor in &mut builder.tensors {
        if tensor.0 == "blk.1.ffn_up_exps.weight" {
            (tensor.2, tensor.3) = (42, 4 * 1024);
        }
    }
    let file = builder.write("fork.gguf");
    let model = Model::from_gguf_path(&file.0).unwrap();
    let experts = &model.stored.as_ref().unwrap().weights.experts;
    assert_eq!(experts[1].stored, 256 * 2 * 144 + 1024);
    assert!(model.notes[0].contains("tensor type 42 is not known"), "{:?}", model.notes);
    assert!(model.stored.unwrap().expert_types.iter().any(|kind| kind.contains("type 42")));
    // The same id with the size that it has here is known.
    let mut builder = whole();
    for tensor in &mut builder.tensors {
        if tensor.0 == "blk.1.ffn_up_exps.weight" {
            (tensor.2, tensor.3) = (42, 4 * 256 * 256 / 64 * 18);
        }
    }
    let model = Model::from_gguf_path(&builder.write("known.gguf").0).unwrap();
    assert!(model.notes.is_empty());
}

#[test]
fn shards_are_read_together() {
    let folder = std::env::temp_dir();
    let name =
        |shard: u32| format!("hotset-gguf-{}-s-{shard:05}-of-00002.gguf", std::process::id());
    let one = layer(keys().number("split.count", 2), 0, GgmlType::Q6K);
    let two = layer(Builder::new("gpt-oss").number("split.count", 2), 1, GgmlType::Q4K).tensor(
        "token_embd.weight",
        &[256, 100],
        GgmlType::Q8_0,
    );
    let first = File(folder.join(name(1)));
    std::fs::write(&first.0, one.bytes()).unwrap();
    let missing = Model::from_gguf_path(&first.0).unwrap_err().to_string();
    assert!(missing.contains("s-00002-of-00002.gguf"), "{missing}");
    let second = File(folder.join(name(2)));
    std::fs::write(&second.0, two.bytes()).unwrap();
    let model = Model::from_gguf_path(&first.0).unwrap();
    let whole = Model::from_gguf_path(&whole().write("same.gguf").0).unwrap();
    assert_eq!(model.stored.unwrap().weights, whole.stored.unwrap().weights);
    let renamed = File::new("renamed.gguf", &one.bytes());
    assert!(renamed.refusal().contains("keep the shards' names"));
}

#[test]
fn dense_and_incomplete_models() {
    let dense = keys().tensor("token_embd.weight", &[256, 100], GgmlType::Q8_0);
    assert!(dense.write("dense.gguf").refusal().contains("is a dense model"));
    let bare = layer(Builder::new("qwen3moe").number("qwen3moe.block_count", 1), 0, GgmlType::Q4K);
    let said = bare.write("bare.gguf").refusal();
    assert!(said.contains("architecture `qwen3moe` needs qwen3moe.expert_count"), "{said}");
    let none = Builder { keys: vec![], key_count: 0, tensors: vec![] };
    assert!(none.write("none.gguf").refusal().contains("general.architecture is absent"));
    let mut wrong = whole();
    wrong.tensors.retain(|tensor| tensor.0 != "blk.0.ffn_down_exps.weight");
    let wrong = wrong.tensor("blk.0.ffn_down_exps.weight", &[256, 256, 3], GgmlType::Q4K);
    assert!(wrong.write("count.gguf").refusal().contains("holds 3 experts, expert_count says 4"));
}

#[test]
fn every_cut_is_refused_or_has_its_header() {
    let file = whole().bytes();
    let header = file.len() - 400_000;
    for length in (0..header).step_by(97).chain([3, 4, 11, 23, 24, 25]) {
        let cut = File::new("cut.gguf", &file[..length]);
        if let Err(error) = Model::from_gguf_path(&cut.0) {
            let said = error.to_string();
            assert!(said.contains("cut.gguf: GGUF "), "{said}");
        }
    }
    for length in [10, 100, 300, 1500] {
        let cut = File::new("cut2.gguf", &file[..length]);
        assert!(cut.refusal().contains("is cut"), "{length}: {}", cut.refusal());
    }
}

#[test]
fn hostile_counts_and_lengths() {
    let with = |at: usize, bytes: &[u8]| {
        let mut file = whole().bytes();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        File::new(&format!("hostile-{at}.gguf"), &file).refusal()
    };
    assert!(with(0, b"GGML").contains("is not GGUF"));
    assert!(with(4, &9u32.to_le_bytes()).contains("version 9: 2 and 3 are known"));
    assert!(with(8, &u64::MAX.to_le_bytes()).contains("says 18446744073709551615 tensors"));
    assert!(with(16, &u64::MAX.to_le_bytes()).contains("says 18446744073709551615 keys"));
    assert!(with(24, &u64::MAX.to_le_bytes()).contains("has a name of 18446744073709551615 bytes"));
    let wide = whole().raw("extra.weight", &[1 << 40, 1 << 40], 0, 0).write("wide.gguf");
    assert!(wide.refusal().contains("more than 2^53 elements"), "{}", wide.refusal());
    let array = [&8u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()[..]].concat();
    let array = Builder::new("x").key("long", 9, &array).write("array.gguf");
    assert!(array.refusal().contains("says 18446744073709551615 entries"));
    let overlap = whole().raw("a.weight", &[64], 0, 0).raw("b.weight", &[64], 0, 256);
    let said = overlap.write("overlap.gguf").refusal();
    assert!(said.contains("takes 256 bytes as f32, the next begins after 0"), "{said}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    /// Bytes of the header changed at will give a model or an error, never a panic or an allocation that fails.
    #[test]
    fn any_change_is_a_model_or_an_error(changes in proptest::collection::vec((0usize..22_500, 0u8..), 1..6)) {
        let mut bytes = whole().bytes();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let file = File::new("changed.gguf", &bytes);
        if let Ok(model) = Model::from_gguf_path(&file.0) {
            let _ = (model.parameters(), model.kv(u64::MAX, KvFormat::Bf16, 3), model.mtp_parameters());
        }
    }
}
