//! Predictions of memory figures: from the model's shape, its format and the engine's file.

mod case;
mod files;
mod kept;
mod loaded;
mod paged;
mod planned;
mod verdict;

use hotset_cost_models::Model;

use super::{Known, MemoryRow, Prediction, WhyNot};

pub use files::Files;

use case::Case;

/// What printing rounds away, and tensors of a few bytes that no formula has.
const EXACT: f64 = 0.01;

/// What publishers round to when they say how much of a model is active, with embeddings or without.
const PUBLISHED: f64 = 0.1;

/// Predicts what a report of memory gives, in the report's unit.
///
/// # Errors
/// [`WhyNot`]: what the row does not say, or what no rule is known for.
pub fn predict(row: &MemoryRow, known: &Known, files: &Files) -> Result<Prediction, WhyNot> {
    let model = known.models.find(&row.model)?;
    match row.kind.as_str() {
        "params_total" => return unit(row, total(row, &model)),
        "params_active" => return unit(row, Prediction::within(active(&model), PUBLISHED)),
        _ => {}
    }
    let engine = known.engine(&row.engine)?;
    let case = Case::new(row, engine, model, files)?;
    unit(
        row,
        match row.kind.as_str() {
            "file_size" => loaded::file(&case),
            "model_buffer_gpu" => loaded::on_accelerators(&case),
            "model_buffer_cpu" => loaded::on_host(&case),
            "kv" => kept::keys_and_values(&case),
            "recurrent_state" => kept::states(&case),
            "compute_buffer_gpu" => planned::device(&case),
            "compute_buffer_host" => planned::host(&case),
            "output_buffer" => planned::output(&case),
            "weights_per_rank" => paged::weights(&case),
            "kv_avail" => paged::available(&case),
            "kv_tokens" => paged::tokens(&case),
            "max_concurrency" => paged::concurrency(&case),
            "activation_peak" => paged::activations(&case),
            "graph_memory" => paged::graphs(&case),
            "nonweight" => paged::beside(&case),
            "total_used" => verdict::used(&case),
            "oom" => verdict::runs_out(&case),
            other => Err(WhyNot::new(format!("no rule for '{other}'"))),
        }?,
    )
}

/// A prediction in bytes, parameters or counts, in the unit of the row.
fn unit(row: &MemoryRow, prediction: Prediction) -> Result<Prediction, WhyNot> {
    let unit = match row.unit.to_ascii_lowercase().as_str() {
        "kib" => 1024.0,
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        "mb" => 1e6,
        "gb" | "b" => 1e9,
        "bytes" | "params" | "tokens" | "x" | "yes" | "no" | "" => 1.0,
        other => return Err(WhyNot::new(format!("unit '{other}' is not known"))),
    };
    let Prediction { predicted, low, high } = prediction;
    Ok(Prediction { predicted: predicted / unit, low: low / unit, high: high / unit })
}

/// Parameters as counted for publishing: draft layers where a note says so.
fn total(row: &MemoryRow, model: &Model) -> Prediction {
    let drafted = row.notes.contains("with draft")
        || row.notes.contains("and draft")
        || row.notes.contains("draft layers counted");
    let (mtp, experts) = model.mtp_parameters();
    let expert = model.moe_layers().last().map_or(0, |(_, experts)| {
        experts.shape.weights().saturating_add(experts.shape.bias_elements())
    });
    let mtp = if drafted { mtp.total() + experts.saturating_mul(expert) } else { 0 };
    Prediction::within((model.parameters().total() + mtp) as f64, EXACT)
}

fn active(model: &Model) -> f64 {
    model.active_parameters() as f64
}
