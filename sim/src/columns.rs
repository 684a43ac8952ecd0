//! Columns that a policy needs of a trace.

use hotset_policies::miss::MissHandler;
use hotset_policies::{Need, PolicySpec};
use hotset_traces::Trace;

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

/// Refuses to go without experts by weights that the trace lacks.
///
/// # Errors
/// [`SimError::MissingColumn`].
pub(crate) fn check_misses(trace: &Trace, handler: MissHandler) -> Result<(), SimError> {
    if handler.loses_weight() && trace.weights().is_none() {
        let name = handler.info().name;
        return Err(SimError::missing_column(trace, "miss handler", name, "weights"));
    }
    Ok(())
}
