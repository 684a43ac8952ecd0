//! What people are told of LIRS, and its parameter.

use serde::{Deserialize, Serialize};

use crate::registry::{Config, share};
use crate::{Need, Parameter, PolicyInfo};

/// What people are told of it.
pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "lirs",
    summary: "keeps experts whose last two uses were close together",
    definition: "Keys are LIR or HIR; h = max(1, floor(slots x hirs)) slots are for HIR. Stack S orders by last use LIR keys and HIR keys, gone ones too, used since the oldest LIR key; queue Q holds the resident HIR keys. A hit moves the key to S's top; an HIR key that was in S becomes LIR, leaves Q, and if LIR keys are now more than slots - h, S's bottom goes to Q's end as HIR; one that was not in S stays HIR, at Q's end. S is then pruned to an LIR bottom. When full, Q's oldest leaves (if it has none that may, the LIR key lowest in S, which S forgets). The missing key becomes LIR if it is in S (then as for a hit) or LIR keys are fewer than slots - h; else HIR, on S and Q. While S has more than 2 x slots keys, the gone one that left first is forgotten.",
    source: "S. Jiang and X. Zhang, LIRS, SIGMETRICS 2002; sizes of libCacheSim's LIRS",
    needs: Need::Nothing,
    parameters: &[Parameter {
        name: "hirs",
        default: "0.01",
        meaning: "share of the slots for HIR keys, 0 to 1; one slot at least",
    }],
};

/// Parameters of [`Lirs`](super::Lirs).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LirsConfig {
    /// Share of the slots for HIR keys, 0 to 1; they have one slot at least.
    pub hirs: f64,
}

impl Default for LirsConfig {
    fn default() -> Self {
        Self { hirs: 0.01 }
    }
}

impl Config for LirsConfig {
    fn check(&self) -> Result<(), String> {
        share("hirs", self.hirs, 0.0..=1.0)
    }
}
