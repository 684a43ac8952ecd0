//! Sizes of GGUF files that people reported, against the bytes of a mix.

use hotset_cost_models::model::{Basis, Parallel};
use hotset_cost_models::{Mix, Model, SlotLayout};

use crate::shared::shared;

/// A reported file size in bytes, with the figure for its mix.
struct Row {
    id: String,
    model: String,
    format: String,
    reported: f64,
    predicted: f64,
    inside: bool,
    basis: Basis,
}

impl Row {
    fn error(&self) -> f64 {
        self.predicted / self.reported - 1.0
    }
}

fn rows() -> Option<(Vec<Row>, Vec<String>)> {
    let path = shared("reported/memory.csv")?;
    let mut reader = csv::Reader::from_path(path).expect("a readable table");
    let headers = reader.headers().expect("columns").clone();
    let column = |name| headers.iter().position(|header| header == name).expect("a column");
    let [id, model, kind, format, value, unit] =
        ["id", "model", "kind", "format", "value", "unit"].map(column);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.expect("a row");
        if &record[kind] != "file_size" {
            continue;
        }
        let (id, name, format) = (&record[id], &record[model], &record[format]);
        // A remark says how it is known.
        let name = name.split(" (").next().unwrap_or(name);
        let scale = match &record[unit] {
            "GiB" => f64::from(1 << 30),
            "MiB" => f64::from(1 << 20),
            _ => 1.0,
        };
        let reported = record[value].parse::<f64>().expect("a size") * scale;
        match (Model::builtin(name), Mix::parse(format)) {
            (Ok(model), Ok(mix)) => {
                let bytes = model.gguf_bytes(&mix);
                rows.push(Row {
                    id: id.into(),
                    model: name.into(),
                    format: format.into(),
                    reported,
                    predicted: bytes.total() as f64,
                    inside: (bytes.low as f64 * 0.995..=bytes.high as f64 * 1.005)
                        .contains(&reported),
                    basis: bytes.basis,
                });
            }
            (Err(_), _) => left_out.push(format!("{id}: no model {name}")),
            (_, Err(error)) => left_out.push(format!("{id}: {error}")),
        }
    }
    Some((rows, left_out))
}

/// The middle of absolute errors, and how many are within 0.5%.
fn spread(rows: &[Row], basis: Basis) -> (f64, usize, usize) {
    let mut errors: Vec<f64> =
        rows.iter().filter(|row| row.basis == basis).map(|row| row.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| **error <= 0.005).count();
    (errors[errors.len() / 2], within, errors.len())
}

#[test]
fn reported_file_sizes() {
    let Some((rows, left_out)) = rows() else { return };
    for row in &rows {
        println!(
            "{:5} {:+7.2}% {:6} {:6} {:24} {}",
            row.id,
            row.error() * 100.0,
            format!("{:?}", row.basis),
            if row.inside { "" } else { "OUT" },
            row.model,
            row.format
        );
    }
    println!("left out: {left_out:#?}");
    assert!(left_out.len() * 10 <= rows.len(), "{left_out:?}");
    // Rules: all but a file of older rules, and one whose importance matrix is not told.
    let (median, within, all) = spread(&rows, Basis::Rules);
    assert!(median <= 0.0005 && within + 2 >= all, "rules: {median}, {within} of {all}");
    // Tables of types: which tensors have which is a guess.
    let (median, within, all) = spread(&rows, Basis::Counts);
    assert!(median <= 0.005 && within * 10 >= all * 6, "tables: {median}, {within} of {all}");
    // Names without public rules.
    let (median, ..) = spread(&rows, Basis::Guess);
    assert!(median <= 0.06, "names: {median}");
    let inside = rows.iter().filter(|row| row.inside).count();
    assert!(inside * 100 >= rows.len() * 96, "{inside} of {} inside", rows.len());
}

#[test]
fn parts_of_a_file_add_up_and_a_plan_takes_them() {
    let model = Model::builtin("Qwen3-30B-A3B").unwrap();
    let mix = Mix::parse("Q4_K_M").unwrap();
    let file = model.gguf_bytes(&mix);
    assert_eq!((file.low, file.high, file.basis), (file.total(), file.total(), Basis::Rules));
    // 24 of 48 layers have q6_K down projections and values, and the head.
    let types: Vec<(&str, u32)> =
        file.types.iter().map(|(kind, count)| (kind.name(), *count)).collect();
    assert_eq!(types, [("f32", 241), ("q4_k", 289), ("q6_k", 49)]);
    assert_eq!(file.expert_types, ["24 x q4_k", "24 x q4_k + q6_k"]);
    let layers: u64 = file.layers.iter().sum();
    assert_eq!(
        file.total(),
        file.experts() + layers + file.embedding() + file.head() + file.outside
    );
    assert_eq!(file.dense_gpu(), layers + file.head() + file.outside);
    // 128 x 2048 x 768 x 3 weights, of which a third is q6_K in half of the layers.
    let (plain, better) = (file.weights.experts[10].stored, file.weights.experts[0].stored);
    assert_eq!(plain, 3 * 2048 * 768 / 256 * 144);
    assert_eq!(better, 2048 * 768 / 256 * (2 * 144 + 210));
    let whole = model.quantised(&mix);
    let weights = whole
        .weights_or_native(None, SlotLayout::CHECKPOINT, Parallel::NONE)
        .expect("stored weights need no formats");
    assert_eq!(weights, file.weights);
    assert!(whole.notes.is_empty());
}

#[test]
fn absurd_tables_are_figures_too() {
    let model = Model::builtin("DeepSeek-V3").unwrap();
    for text in ["f32:4294967295 q8_0:4294967295 q4_k:4294967295", "iq1_s:1", "f32:7", "q4_0:0"] {
        let file = model.gguf_bytes(&Mix::parse(text).unwrap());
        assert!(file.low <= file.high && file.total() > 0, "{text}");
    }
}

#[test]
fn a_mix_of_unknown_rules_is_a_range_and_says_so() {
    let model = Model::builtin("Qwen3-235B-A22B").unwrap();
    let file = model.gguf_bytes(&Mix::parse("UD-Q4_K_XL").unwrap());
    assert_eq!(file.basis, Basis::Guess);
    assert!(file.low < file.total() && file.total() <= file.high);
    let noted = model.quantised(&Mix::parse("UD-Q4_K_XL").unwrap()).notes;
    assert!(noted[0].contains("the rules of `UD-Q4_K_XL` are not public: between"), "{noted:?}");
}
