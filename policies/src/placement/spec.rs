//! What is placed before the run, as it follows a policy: `lru+pin:50%`, `lfu+seeded`.

use std::fmt;

use serde::Deserialize;

use super::Pinned;
use crate::registry::{Config, Info, NoConfig, NoNeeds, Parameter, read_config, share};
use crate::{AnyPolicy, PolicyError, PolicySpec, PoolShape};

/// The description of a placement, which needs counts.
pub type PlacementInfo = Info<NoNeeds>;

/// All placements.
pub static PLACEMENTS: &[&PlacementInfo] = &[&PIN, &SEEDED];

static PIN: PlacementInfo = PlacementInfo {
    name: "pin",
    summary: "a share of the slots for the experts used most, for good",
    definition: "Of a pool's slots floor(share x slots) hold the experts with the most uses in the counts (a training part of the trace, or an engine's), ties to the lower id. They are there before the first step and stay; the policy has the other slots, and the experts that are not pinned. lru+pin:50% is short for lru+pin:share=0.5.",
    source: "hot-expert lists: llama.cpp forks' profiles, KTransformers' placement beside a cache",
    needs: NoNeeds,
    parameters: &[Parameter {
        name: "share",
        default: "0.5",
        meaning: "share of the slots, 0 to 1, or in percent (50%)",
    }],
};

static SEEDED: PlacementInfo = PlacementInfo {
    name: "seeded",
    summary: "the slots begin full of the experts used most",
    definition: "Before the first step the experts with the most uses in the counts are brought in, ties to the lower id, until the pool is full; the one used least comes first, so that the one used most is the most recent. From then on the policy does as it always does.",
    source: "warm starts: caches that are filled from a saved histogram",
    needs: NoNeeds,
    parameters: &[],
};

/// What is resident before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlacementSpec {
    /// Share of the slots that is pinned, 0 to 1.
    pub pin: Option<f64>,
    /// Whether the slots that are not pinned begin full.
    pub seeded: bool,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PinConfig {
    share: f64,
}

impl Default for PinConfig {
    fn default() -> Self {
        Self { share: 0.5 }
    }
}

impl Config for PinConfig {
    fn check(&self) -> Result<(), String> {
        share("share", self.share, 0.0..=1.0)
    }
}

impl PlacementSpec {
    /// Pinned slots of a pool with `capacity` of them, rounded down.
    #[must_use]
    pub fn pins(&self, capacity: u32) -> u32 {
        // Shares come from decimal text: the nudge makes 0.55 of 100 the 55 that was meant.
        let pins = self.pin.unwrap_or(0.0) * f64::from(capacity) + 1e-9;
        (pins.floor() as u32).min(capacity)
    }

    /// Reads a suffix of a policy; `None` if it is none of these.
    ///
    /// # Errors
    /// Parameters that it does not have, or out of their range.
    pub(crate) fn read(text: &str) -> Option<Result<Self, PolicyError>> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let info = PLACEMENTS.iter().find(|info| info.name == name.trim())?;
        let wrong = |reason| PolicyError::Parameters { policy: info.name, reason };
        Some(if info.name == SEEDED.name {
            read_config::<NoConfig>(parameters)
                .map(|_| Self { pin: None, seeded: true })
                .map_err(wrong)
        } else {
            let percent = parameters.trim().strip_suffix('%').and_then(|digits| {
                digits
                    .trim()
                    .parse::<f64>()
                    .ok()
                    .map(|percent| PinConfig { share: percent / 100.0 })
            });
            let config = match percent {
                Some(config) => config.check().map(|()| config),
                None => read_config(parameters),
            };
            config.map(|config| Self { pin: Some(config.share), seeded: false }).map_err(wrong)
        })
    }

    /// Both together; `None` where both say the same.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let twice = self.pin.is_some() && other.pin.is_some() || self.seeded && other.seeded;
        (!twice).then(|| Self { pin: self.pin.or(other.pin), seeded: self.seeded || other.seeded })
    }

    /// The policy of one pool beside what is pinned.
    pub(crate) fn build(self, policy: &PolicySpec, pool: &PoolShape, counts: &[u64]) -> AnyPolicy {
        let inner = |pool: &PoolShape| match policy.build(pool) {
            Some(inner) => inner,
            None => unreachable!("placements stand only beside policies that can be built"),
        };
        match self.pin {
            Some(_) => AnyPolicy::new(Pinned::new(pool, counts, self.pins(pool.capacity), inner)),
            None => inner(pool),
        }
    }

    /// Bytes that it takes in such a pool beside the policy.
    pub(crate) fn memory(&self, pool: &PoolShape) -> u64 {
        match self.pin {
            Some(_) => Pinned::<AnyPolicy>::memory(pool, self.pins(pool.capacity)),
            None => 0,
        }
    }
}

impl fmt::Display for PlacementSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(share) = self.pin {
            write!(f, "pin:share={share}")?;
        }
        match (self.pin, self.seeded) {
            (Some(_), true) => write!(f, "+seeded"),
            (None, true) => write!(f, "seeded"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdmissionSpec;

    fn read(text: &str) -> Result<PolicySpec, String> {
        text.parse().map_err(|error: PolicyError| error.to_string())
    }

    #[test]
    fn placements_follow_a_policy_in_any_order() {
        let half = read("lru+pin:50%").unwrap();
        assert_eq!(read("lru+pin:share=0.5"), Ok(half.clone()));
        assert_eq!(read("lru+pin"), Ok(half));
        let both = read("lru+pin:25%+seeded").unwrap();
        assert_eq!(
            read("lru+seeded+pin:0.25").map(|_| ()),
            Err("policy 'pin': '0.25' is not key=value".into())
        );
        assert_eq!(read("lru+seeded+pin:25%"), Ok(both.clone()));
        let PolicySpec::Placed(inner, placement) = both else { panic!("it is placed") };
        assert_eq!(*inner, read("lru").unwrap());
        assert_eq!(placement.to_string(), "pin:share=0.25+seeded");
        let capped = read("lru+upload-cap:n=3+pin:50%").unwrap();
        assert_eq!(read("lru+pin:50%+upload-cap:n=3"), Ok(capped.clone()));
        assert!(matches!(capped.admission(), AdmissionSpec::UploadCap(_)));
        assert!(!capped.is_online());
    }

    #[test]
    fn what_cannot_be_placed_is_told() {
        assert!(read("static+pin:50%").unwrap_err().contains("placed already"));
        assert!(read("belady+seeded").unwrap_err().contains("bound"));
        assert!(read("lru+pin:101%").unwrap_err().contains("not within 0 to 1"));
        assert!(read("lru+pin:50%+pin:20%").unwrap_err().contains("twice"));
        assert!(read("lru+pni:50%").unwrap_err().contains("did you mean 'pin'?"));
    }

    #[test]
    fn every_placement_is_read_by_its_name_with_the_defaults_stated() {
        for info in PLACEMENTS {
            let spec = PlacementSpec::read(info.name).unwrap().unwrap();
            assert!(info.summary.len() <= 60, "{} has too long a summary", info.name);
            for parameter in info.parameters {
                let text = format!("{}:{}={}", info.name, parameter.name, parameter.default);
                assert_eq!(PlacementSpec::read(&text), Some(Ok(spec)), "{text}");
            }
        }
    }

    #[test]
    fn shares_are_rounded_down() {
        let pins = |share, slots| PlacementSpec { pin: Some(share), seeded: false }.pins(slots);
        assert_eq!([pins(0.5, 7), pins(0.55, 100), pins(1.0, 9), pins(0.0, 9)], [3, 55, 9, 0]);
    }
}
