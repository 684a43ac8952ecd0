//! What a model loses by going without experts, as far as it was measured.
//!
//! Between two measured points the loss is interpolated; beyond them nothing is said.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

const MMLU_PRO: &str = include_str!("../quality/mmlu-pro.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    source: String,
    caveat: String,
    /// By what is done: share of the accesses, points lost; ascending.
    points: BTreeMap<String, Vec<(f64, f64)>>,
}

fn mmlu_pro() -> Option<&'static Measured> {
    static MEASURED: OnceLock<Option<Measured>> = OnceLock::new();
    MEASURED.get_or_init(|| toml::from_str(MMLU_PRO).ok()).as_ref()
}

/// What was measured to be lost at a share of the accesses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QualityLoss {
    /// Points of MMLU-Pro; absent where the share lies outside of what was measured.
    pub mmlu_pro_points: Option<f64>,
    /// The share of the accesses that is gone without, 0 to 1.
    pub share: f64,
    /// The shares between which it was measured.
    pub measured: (f64, f64),
    /// Who measured.
    pub source: &'static str,
    /// What it is worth.
    pub caveat: &'static str,
}

/// What is lost by doing `what` (`drop`, `substitute`) with this share of the accesses.
///
/// ```
/// use hotset_cost_models::quality_lost;
///
/// // Half-way between the two points that were measured.
/// let lost = quality_lost("drop", 0.133);
/// assert!((lost.mmlu_pro_points.unwrap() - 26.75).abs() < 1e-9);
/// assert_eq!(quality_lost("drop", 0.05).mmlu_pro_points, None);
/// ```
#[must_use]
pub fn quality_lost(what: &str, share: f64) -> QualityLoss {
    let Some(measured) = mmlu_pro() else {
        return QualityLoss {
            mmlu_pro_points: None,
            share,
            measured: (0.0, 0.0),
            source: "",
            caveat: "",
        };
    };
    let points = measured.points.get(what).map(Vec::as_slice).unwrap_or_default();
    let share_of = |point: Option<&(f64, f64)>| point.map_or(0.0, |&(share, _)| share);
    QualityLoss {
        mmlu_pro_points: interpolated(points, share),
        share,
        measured: (share_of(points.first()), share_of(points.last())),
        source: &measured.source,
        caveat: &measured.caveat,
    }
}

/// The value at `share` on the lines between the points; `None` beyond the first and the last.
fn interpolated(points: &[(f64, f64)], share: f64) -> Option<f64> {
    if let Some(&(_, lost)) = points.iter().find(|&&(at, _)| at == share) {
        return Some(lost);
    }
    let pair = points.windows(2).find(|pair| pair[0].0 < share && share < pair[1].0)?;
    let ((from, low), (to, high)) = (pair[0], pair[1]);
    Some(low + (high - low) * (share - from) / (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_beyond_what_was_measured() {
        let lost = |what, share| quality_lost(what, share).mmlu_pro_points;
        assert_eq!([0.085, 0.181].map(|share| lost("drop", share)), [Some(18.5), Some(35.0)]);
        assert_eq!([0.0, 0.0849, 0.1811, f64::NAN].map(|share| lost("drop", share)), [None; 4]);
        assert_eq!((lost("substitute", 0.081), lost("substitute", 0.08)), (Some(24.0), None));
        assert_eq!(lost("top", 0.1), None);
        let of = quality_lost("drop", 0.1);
        assert_eq!(of.measured, (0.085, 0.181));
        assert!(of.caveat.contains("one run an arm"));
    }
}
