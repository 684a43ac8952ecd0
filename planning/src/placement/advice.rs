//! What one more of something would give.

use hotset_cost_models::hardware::Figure;
use serde::Serialize;

use super::Placing;

/// A change of the machine, and what it brings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worth {
    /// What changes.
    pub change: String,
    /// Layers whose experts the host then computes.
    pub host_layers: u32,
    /// Tokens a second then; absent where it still does not fit.
    pub tokens_per_s: Option<f64>,
}

const GB: u64 = 1_000_000_000;

/// One more GB of each memory, faster host memory, a faster accelerator memory.
pub(super) fn worth(placing: &Placing<'_>, on_host: u32, least: Option<u32>) -> Vec<Worth> {
    let automatic = least == Some(on_host) || least.is_none();
    let with = |change: &str, alter: &dyn Fn(&mut crate::Request)| {
        let mut request = placing.request.clone();
        alter(&mut request);
        let other = Placing { request: &request, ..*placing };
        let fewest = (0..=other.expert_layers()).find(|layers| other.at(*layers).fits());
        let layers = if automatic { fewest.unwrap_or(on_host) } else { on_host };
        let fits = other.at(layers).fits();
        Worth {
            change: change.to_owned(),
            host_layers: layers,
            tokens_per_s: fits.then(|| other.tokens_per_second(layers)),
        }
    };
    let scaled = |figure: &mut Figure<u64>, percent: u64| {
        figure.value = figure.value.saturating_mul(100 + percent) / 100;
    };
    vec![
        with("1 GB more of usable accelerator memory", &|request| {
            let usable = request.machine.usable_memory().saturating_add(GB);
            request.reserve.free =
                Some(request.reserve.free.map_or(usable, |free| free.saturating_add(GB)));
        }),
        with("1 GB more of host memory", &|request| {
            request.machine.host_memory.value =
                request.machine.host_memory.value.saturating_add(GB);
        }),
        with("host memory a quarter faster", &|request| scaled(&mut request.machine.host_rate, 25)),
        with("accelerator memory a quarter faster", &|request| {
            scaled(&mut request.machine.memory_rate, 25);
        }),
    ]
}
