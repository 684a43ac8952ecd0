//! Sizes of GGUF files that people reported, against the bytes of a mix.

use hotset_cost_models::model::Basis;
use hotset_cost_models::{Mix, Model};

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
}
