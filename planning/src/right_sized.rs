//! Models that fit a machine whole: beside a big model that does not, a smaller one may serve.

use std::sync::OnceLock;

use hotset_cost_models::model::{Formats, RestFormat, builtin_models};
use hotset_cost_models::{Model, WeightFormat};
use serde::Serialize;

use crate::Request;
use crate::fit::fit;
use crate::verdict::FitVerdict;

/// A model that fits whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// Its name.
    pub name: String,
    /// Format of its experts.
    pub format: String,
    /// Parameters.
    pub parameters: u64,
    /// Parameters of one token's way.
    pub active_parameters: u64,
    /// Bytes that one accelerator holds, keys and values with them.
    pub used_bytes: u64,
}

/// How many are listed.
const LISTED: usize = 5;

/// Built-in models that are resident on the request's machine with its users and its context (at
/// most their own): the largest first. As published, or with NVFP4 experts.
pub(crate) fn right_sized(request: &Request) -> Vec<Alternative> {
    let mut all: Vec<Alternative> = models()
        .iter()
        .filter(|known| known.name != request.model.name)
        .filter_map(|known| resident(request, known))
        .collect();
    all.sort_by(|a, b| b.parameters.cmp(&a.parameters).then(a.name.cmp(&b.name)));
    all.truncate(LISTED);
    all
}

/// The built-in models, read once.
fn models() -> &'static [Model] {
    static MODELS: OnceLock<Vec<Model>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let names = builtin_models().into_iter();
        let models = names.filter_map(|known| Model::builtin(&known.name).ok());
        // A table of n-grams lies somewhere too, and is not planned here.
        models.filter(|model| model.tables == 0).collect()
    })
}

fn resident(request: &Request, model: &Model) -> Option<Alternative> {
    let native = model.native.map(|(experts, rest)| Formats::new(experts, rest));
    let bf16 = RestFormat::Matrices(WeightFormat::Bf16);
    let small = Formats::new(WeightFormat::Nvfp4, native.map_or(bf16, |native| native.rest));
    native.into_iter().chain([small]).find_map(|formats| {
        let mut other = request.clone();
        other.context = request.context.min(model.max_context.unwrap_or(u64::MAX));
        other.model = model.clone();
        other.storage.format = Some(formats.experts);
        (other.storage.rest_format, other.storage.checkpoint, other.offload.bank) =
            (None, None, None);
        other.speculation = crate::request::Speculation::default();
        let fitted = fit(&other).ok()?;
        (fitted.verdict == FitVerdict::Resident).then(|| Alternative {
            name: model.name.clone(),
            format: formats.experts.name().to_owned(),
            parameters: model.parameters().total(),
            active_parameters: model.active_parameters(),
            used_bytes: fitted.used_bytes(),
        })
    })
}
