//! One token a line, with a header line: what `--from jsonl` reads.
//!
//! `{"seq", "pos", "tok", "phase", "step", "experts": {"<layer>": [ids, best first]}, "weights":
//! {"<layer>": [...]}}`; what the trace does not have is left out. Layers may differ in top-k.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{ExportFormat, ExportInfo, Out, refused};
use crate::error::Result;
use crate::trace::Trace;

pub(super) const INFO: ExportInfo = ExportInfo {
    name: "jsonl",
    description: "one token a line: seq, pos, tok, phase, experts by layer, best first",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    format: ExportFormat::Jsonl,
    exporter: export,
};

fn export(trace: &Trace, out: Out<'_, '_>, path: &Path) -> Result<()> {
    let header = header(trace);
    writeln!(out, "{header}").map_err(refused(path))?;
    let distinct = super::npz::sequence_numbers(trace);
    let mut line = String::new();
    for (sequence, number) in trace.sequences().iter().zip(distinct) {
        for row in sequence.rows.clone() {
            line.clear();
            token(trace, row, number, &mut line);
            out.write_all(line.as_bytes()).map_err(refused(path))?;
        }
    }
    Ok(())
}

/// What the ids do not tell: the first line, and a note in other files.
pub(super) fn header(trace: &Trace) -> Value {
    let layers = trace.shape().layers();
    let sizes: Map<String, Value> = layers
        .iter()
        .filter(|layer| layer.expert_bytes > 0)
        .map(|layer| (layer.number.to_string(), json!(layer.expert_bytes)))
        .collect();
    json!({
        "type": "header",
        "model": trace.name(),
        "moe_layer_ids": layers.iter().map(|layer| layer.number).collect::<Vec<_>>(),
        "num_experts": trace.shape().max_experts(),
        "top_k": trace.shape().as_uniform().map(|(_, top_k)| top_k),
        "expert_bytes": sizes,
        "digest": trace.digest(),
    })
}

/// Appends the line of one token; writing to text cannot fail.
fn token(trace: &Trace, row: usize, sequence: u32, line: &mut String) {
    let shape = trace.shape();
    let position = trace.positions()[row];
    let _ = write!(line, "{{\"seq\": {sequence}, \"pos\": {position}");
    if let Some(token_ids) = trace.token_ids() {
        let _ = write!(line, ", \"tok\": {}", token_ids[row]);
    }
    let _ = write!(line, ", \"phase\": \"{}\"", trace.phase(row).name());
    if let Some(steps) = trace.steps() {
        let _ = write!(line, ", \"step\": {}", steps[row]);
    }
    line.push_str(", \"experts\": ");
    by_layer(trace, line, |layer, line| {
        for (rank, id) in trace.layer_ids(row, layer).iter().enumerate() {
            let _ = write!(line, "{}{id}", if rank == 0 { "" } else { ", " });
        }
    });
    if let Some(weights) = trace.weights() {
        line.push_str(", \"weights\": ");
        by_layer(trace, line, |layer, line| {
            let start = row * shape.row_len() + shape.row_offset(layer);
            for rank in 0..shape.layers()[layer].top_k as usize {
                let comma = if rank == 0 { "" } else { ", " };
                let _ = write!(line, "{comma}{}", weights.get(start + rank));
            }
        });
    }
    line.push_str("}\n");
}

/// `{"<layer>": [...], ...}`
fn by_layer(trace: &Trace, line: &mut String, list: impl Fn(usize, &mut String)) {
    line.push('{');
    for (index, layer) in trace.shape().layers().iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(line, "{comma}\"{}\": [", layer.number);
        list(index, line);
        line.push(']');
    }
    line.push('}');
}
