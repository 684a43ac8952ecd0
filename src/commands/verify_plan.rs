//! `hotset verify-plan`: reports beside predictions.

use hotset::cost_models::Model;
use hotset::planning::PlanError;
use hotset::planning::engine::Engine;
use hotset::planning::verify::{Known, Reports, verify};

use crate::cli::VerifyPlanArgs;
use crate::fault::{Ending, Fault};
use crate::input::{MOST_MEASUREMENT_BYTES, read_bytes};
use crate::output;

/// Reads the reports, predicts every one and gives the tables.
pub fn run(args: &VerifyPlanArgs) -> Result<Ending, Fault> {
    let mut known = Known::builtin();
    for path in args.engine.iter().rev() {
        known.engines.insert(0, Engine::from_toml_path(path)?);
    }
    for spec in &args.model {
        known.models.add(Model::open(spec).map_err(PlanError::from)?);
    }
    let mut reports = Reports::default();
    for path in &args.reported {
        let bytes = read_bytes(path, MOST_MEASUREMENT_BYTES)?;
        reports.add(&bytes, &path.display().to_string())?;
    }
    let output = hotset::reports::verified(&verify(&reports, &known))?;
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}
