//! Columns that a policy needs of a trace.

use hotset_policies::miss::MissHandler;
use hotset_policies::{Need, PolicySpec};
use hotset_traces::{LayerShape, Trace};

use crate::SimError;

/// Refuses a policy whose column the trace lacks, saying who gives it.
///
/// # Errors
/// [`SimError::MissingColumn`].
pub fn check_columns(trace: &Trace, policy: &PolicySpec) -> Result<(), SimError> {
    let guided = policy.guide().is_some_and(|guide| guide.needs_embeddings());
    let column = if guided && trace.embeddings().is_none() {
        "embeddings"
    } else if policy.info().needs == Need::Weights && trace.weights().is_none() {
        "weights"
    } else {
        return Ok(());
    };
    Err(SimError::missing_column(trace, "policy", policy.info().name, column))
}

/// Refuses a rule for misses that means more layers or experts than the trace has, or goes by weights
/// that it lacks.
///
/// # Errors
/// [`SimError::MissOver`], [`SimError::MissingColumn`].
pub(crate) fn check_misses(trace: &Trace, handler: MissHandler) -> Result<(), SimError> {
    let layers = trace.shape().layers();
    let widest = |of: fn(&LayerShape) -> u32| layers.iter().map(of).max().unwrap_or(0);
    let (asked, most, what) = match handler {
        MissHandler::CpuLayers { n: Some(n) } => (n, layers.len() as u32, "layers"),
        MissHandler::Top { k } => (k, widest(|layer| layer.top_k), "experts a token and layer"),
        MissHandler::Bias { keep, .. } => (keep, widest(|layer| layer.experts), "experts a layer"),
        _ => (0, 0, ""),
    };
    if asked > most {
        return Err(SimError::MissOver { handler: handler.to_string(), most, what });
    }
    if handler.loses_weight() && trace.weights().is_none() {
        let name = handler.info().name;
        return Err(SimError::missing_column(trace, "miss handler", name, "weights"));
    }
    Ok(())
}
