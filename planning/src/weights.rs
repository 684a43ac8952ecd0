//! The model's weights on one accelerator, and where their sizes come from.

use hotset_cost_models::hardware::Basis;
use hotset_cost_models::model::{Formats, Parallel, RestFormat, WeightBytes};
use hotset_cost_models::{Model, SlotLayout, WeightFormat};

use crate::request::Checkpoint;
use crate::{PlanError, Request};

/// Weights on one accelerator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankWeights {
    pub bytes: WeightBytes,
    pub basis: Basis,
    pub source: String,
}

/// The weights that a request means.
pub(crate) fn weights(request: &Request) -> Result<RankWeights, PlanError> {
    let (model, parallel) = (&request.model, request.parallel);
    let slot = slot(request);
    let formats = formats(request, slot)?;
    if let Some(checkpoint) = request.storage.checkpoint {
        let whole = model.weights_or_native(formats.as_ref(), slot, Parallel::NONE)?;
        return Ok(RankWeights {
            bytes: divided(scaled(whole, checkpoint), request),
            basis: Basis::Published,
            source: format!(
                "`Storage::checkpoint`, in the formulas' proportions, divided evenly over {} accelerators",
                request.ranks()
            ),
        });
    }
    let bytes = model.weights_or_native(formats.as_ref(), slot, parallel)?;
    let (basis, source) = match (&formats, &model.stored) {
        (None, Some(stored)) if stored.by_rules => (Basis::Calculated, stored.source.clone()),
        (None, Some(stored)) => (Basis::Measured, stored.source.clone()),
        (None, None) => (Basis::Calculated, format!("formulas, {}", published(model))),
        (Some(formats), _) => (Basis::Calculated, format!("formulas, {}", in_words(formats))),
    };
    Ok(RankWeights { bytes, basis, source })
}

/// How slots are padded: as asked, else as the engine pads rows of the experts' format.
fn slot(request: &Request) -> SlotLayout {
    let asked = request.storage.slot;
    let memory = request.engine.as_ref().and_then(|engine| engine.memory.as_ref());
    let format = request.storage.format.or(request.model.native.map(|(experts, _)| experts));
    let (Some(memory), Some(format), true) = (memory, format, asked == SlotLayout::CHECKPOINT)
    else {
        return asked;
    };
    SlotLayout::multiplier(memory.padded(format, &request.model))
}

/// The formats that were asked for; `None` leaves it to what was published or read.
fn formats(request: &Request, slot: SlotLayout) -> Result<Option<Formats>, PlanError> {
    let native = request.model.native;
    let rest_of = |format| match format {
        // A GGUF file quantises embedding and head too, others keep them in bf16.
        WeightFormat::Gguf(_) => RestFormat::Everything(format),
        _ => RestFormat::Matrices(format),
    };
    let rest = request.storage.rest_format.map(rest_of);
    let of = |experts, rest| Formats { slot, ..Formats::new(experts, rest) };
    Ok(match (request.storage.format, rest) {
        (None, None) => None,
        (None, Some(rest)) => Some(of(request.model.native_formats()?.experts, rest)),
        (Some(format), rest) => {
            let published = native.map(|(_, rest)| rest);
            let bf16 = RestFormat::Matrices(WeightFormat::Bf16);
            Some(of(format, rest.or(published).unwrap_or(bf16)))
        }
    })
}

fn in_words(formats: &Formats) -> String {
    match formats.rest {
        RestFormat::Matrices(rest) => format!("experts {}, matrices {rest}", formats.experts),
        RestFormat::Everything(rest) => format!("experts {}, all else {rest}", formats.experts),
    }
}

fn published(model: &Model) -> String {
    let formats = model.native.map(|(experts, rest)| in_words(&Formats::new(experts, rest)));
    format!("as published: {}", formats.unwrap_or_default())
}

/// `value * part / whole`, rounded up; `value` where nothing is known.
fn scale(value: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return value;
    }
    let exact = (u128::from(value) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// Brings the parts to a checkpoint's sums; draft layers go with the rest.
fn scaled(mut whole: WeightBytes, checkpoint: Checkpoint) -> WeightBytes {
    let (routed, rest) = (whole.routed(), whole.always());
    let experts = checkpoint.experts.unwrap_or_else(|| {
        scale(checkpoint.total, routed, routed.saturating_add(rest)).min(checkpoint.total)
    });
    let others = checkpoint.total - experts;
    for layer in &mut whole.experts {
        layer.stored = scale(layer.stored, experts, routed);
        layer.slot = scale(layer.slot, experts, routed);
    }
    for part in [
        &mut whole.dense,
        &mut whole.shared,
        &mut whole.embed,
        &mut whole.lm_head,
        &mut whole.mtp_dense,
    ] {
        *part = scale(*part, others, rest);
    }
    whole.mtp_experts = scale(whole.mtp_experts, experts, routed);
    whole
}

/// Everything divided evenly: what of a checkpoint each rank copies, its size does not tell.
fn divided(mut whole: WeightBytes, request: &Request) -> WeightBytes {
    let parallel = request.parallel;
    let tensor = u64::from(parallel.tensor.max(1));
    let slices = u64::from(parallel.expert_slices());
    for layer in &mut whole.experts {
        layer.count = parallel.experts_of(layer.count);
        layer.stored = layer.stored.div_ceil(slices);
        layer.slot = layer.slot.div_ceil(slices);
    }
    for part in [&mut whole.dense, &mut whole.embed, &mut whole.lm_head, &mut whole.mtp_dense] {
        *part = part.div_ceil(tensor);
    }
    whole.shared = whole.shared.div_ceil(slices);
    whole.mtp_experts = whole.mtp_experts.div_ceil(u64::from(request.ranks()));
    whole
}

#[cfg(test)]
mod tests {
    use hotset_cost_models::find_hardware;

    use super::*;

    fn request(model: &str) -> Request {
        Request::new(Model::builtin(model).unwrap(), find_hardware("8xh200").unwrap())
    }

    #[test]
    fn a_checkpoint_keeps_its_sums_and_is_divided() {
        let mut request = request("Kimi-K3");
        request.storage.format = Some(WeightFormat::Mxfp4);
        request.storage.checkpoint = Some(Checkpoint { total: 1 << 38, experts: None });
        let whole = weights(&request).unwrap().bytes;
        // Rounding up adds at most a byte a part and an expert.
        let over = whole.total() - (1 << 38);
        assert!(over < 100_000, "{over}");
        request.parallel = Parallel { tensor: 4, expert: 1 };
        let quarter = weights(&request).unwrap().bytes.total();
        assert!(quarter >= whole.total() / 4 && quarter < whole.total() / 4 + 100_000);
        request.storage.checkpoint =
            Some(Checkpoint { total: 1000 << 20, experts: Some(900 << 20) });
        request.parallel = Parallel::NONE;
        let split = weights(&request).unwrap().bytes;
        assert!((split.routed() as f64 / f64::from(900 << 20) - 1.0).abs() < 1e-3);
        assert!((split.always() as f64 / f64::from(100 << 20) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn formats_are_the_published_ones_unless_asked() {
        let mut request = request("gpt-oss-20b");
        let native = weights(&request).unwrap();
        assert_eq!(native.bytes.total(), 13_761_264_768);
        assert!(native.source.contains("as published: experts mxfp4"), "{}", native.source);
        request.storage.format = Some(WeightFormat::Bf16);
        let wide = weights(&request).unwrap();
        assert_eq!(wide.bytes.always(), native.bytes.always(), "the rest stays as published");
        assert!(wide.bytes.routed() > 3 * native.bytes.routed());
        let mut unpublished = self::request("Kimi-K3");
        let error = weights(&unpublished).unwrap_err().to_string();
        assert!(error.contains("give a format"), "{error}");
        unpublished.storage.rest_format = Some(WeightFormat::Bf16);
        assert!(weights(&unpublished).is_err(), "of the experts nothing is known still");
    }
}
