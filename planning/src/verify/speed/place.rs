//! Where a report's experts are, from its settings.

use hotset_cost_models::Model;

use super::super::{SpeedRow, WhyNot};
use super::devices::number_before;
use super::quant::Weights;

/// Where a report's experts are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Share of the routed bytes of a token that the host computes.
    pub on_host: f64,
    /// Layers of which the host computes experts.
    pub layers: f64,
}

impl Place {
    const RESIDENT: Self = Self { on_host: 0.0, layers: 0.0 };
}

/// The number behind a setting, `ncmoe=26`.
pub(super) fn setting(settings: &str, name: &str) -> Option<f64> {
    let at = settings.find(name)? + name.len();
    let rest = settings[at..].trim_start_matches(['=', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// What is computed on the host: as counted, else by flags, else by what the cards hold.
pub(super) fn place(row: &SpeedRow, model: &Model, weights: Weights) -> Result<Place, WhyNot> {
    let settings = row.settings.as_str();
    let layers = model.moe_layers().count() as f64;
    let experts = model.moe_layers().map(|(_, experts)| experts.count).max().unwrap_or(1);
    let whole = |on: f64| Place { on_host: (on / layers).clamp(0.0, 1.0), layers: on.min(layers) };
    let shared = |on_host: f64| Place { on_host, layers };
    if ["resident", "unified-resident"].contains(&row.mode.as_str()) {
        return Ok(Place::RESIDENT);
    }
    if let Some(on_cards) = setting(settings, "kt-num-gpu-experts") {
        return Ok(shared((1.0 - on_cards / f64::from(experts)).clamp(0.0, 1.0)));
    }
    if let Some(percent) = number_before(settings, "% of experts on GPU") {
        let on_host = (1.0 - percent / 100.0).clamp(0.0, 1.0);
        // Placed by use, the experts left on the host are the least used: about the square of their share.
        return Ok(shared(if settings.contains("frequency") {
            on_host * on_host
        } else {
            on_host
        }));
    }
    if let Some(share) = row.assumed_cpu_expert_fraction {
        let counted = row.moe_layers_on_cpu.map(|on| on as f64);
        return Ok(Place { on_host: share, layers: counted.unwrap_or(share * layers) });
    }
    if let Some(on) = row.moe_layers_on_cpu {
        return Ok(whole(on as f64));
    }
    let dense = model.layers.iter().take_while(|layer| layer.experts.is_none()).count() as f64;
    for name in ["n-cpu-moe", "ncmoe"] {
        if let Some(first) = setting(settings, name) {
            return Ok(whole((first - dense).max(0.0)));
        }
    }
    let all = ["exps=CPU", "cpu-moe", "cmoe", "experts on CPU"];
    if all.iter().any(|flag| settings.contains(flag))
        || row.mode == "cmoe"
        || row.mode == "ktransformers"
    {
        return Ok(whole(layers));
    }
    if settings.contains("fit=on") {
        return Ok(whole(layers * (1.0 - held(row, model, weights)?)));
    }
    Err(WhyNot::new("which experts the host computes is not said"))
}

/// Of the routed experts, the share that an engine's own fit leaves on the cards.
fn held(row: &SpeedRow, model: &Model, weights: Weights) -> Result<f64, WhyNot> {
    let why = "how much memory the cards have is not said, so what fits on them is not known";
    let memory = row.gpu_mem_gib.ok_or_else(|| WhyNot::new(why))?;
    let context = setting(&row.settings, "c=").unwrap_or(4096.0) as u64;
    let kept = model.kv(context, super::kv_format(&row.settings), 1).total() as f64;
    let gib = f64::from(1u32 << 30);
    let room = memory * gib * row.gpu_count.unwrap_or(1) as f64 - 2.0 * gib - weights.dense - kept;
    Ok((room / weights.routed.max(1.0)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers_of(row: SpeedRow) -> Option<f64> {
        let model = Model::builtin("DeepSeek-V2-Lite").unwrap();
        place(&row, &model, Weights { dense: 1e9, routed: 8e9 }).ok().map(|place| place.layers)
    }

    #[test]
    fn settings_say_where_experts_are() {
        let row = |mode: &str, settings: &str| SpeedRow {
            mode: mode.to_owned(),
            settings: settings.to_owned(),
            ..SpeedRow::default()
        };
        // Its first layer has no experts: 16 layers leave 15.
        assert_eq!(layers_of(row("ncmoe", "ngl=99 ncmoe=16 c=4096")), Some(15.0));
        assert_eq!(layers_of(row("ncmoe", "ncmoe=99")), Some(26.0));
        assert_eq!(layers_of(row("ot", "ot: exps=CPU fa=1")), Some(26.0));
        assert_eq!(layers_of(row("resident", "ngl=99")), Some(0.0));
        assert_eq!(layers_of(row("ot", "something else")), None);
        let fitted = SpeedRow { gpu_mem_gib: Some(8.0), ..row("ot", "fit=on c=4096") };
        let on = layers_of(fitted).unwrap();
        assert!(on > 5.0 && on < 15.0, "{on}");
        assert_eq!(setting("tp=4, 30% of", "tp"), Some(4.0));
    }
}
