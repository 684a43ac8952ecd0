//! Capacities as people give them (slots, a share, a size), and the slots that they mean.

use std::str::FromStr;

use hotset_cost_models::{ByteSize, ByteSizeError};
use hotset_policies::Slots;
use hotset_traces::Shape;
use serde::{Deserialize, Serialize};

use crate::SimError;

/// Whether slots are shared over layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// One pool over all layers.
    Global,
    /// The same number of slots for each layer.
    Layer,
    /// As many slots for each layer as do best on a training part of the trace.
    Adaptive,
}

impl Scope {
    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Layer => "layer",
            Self::Adaptive => "adaptive",
        }
    }
}

/// How much memory the cache has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// Expert slots over all layers.
    Slots(u32),
    /// Share of all experts, in percent.
    Percent(f64),
    /// Bytes of slots.
    Bytes(u64),
}

impl FromStr for Capacity {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, SimError> {
        let wrong = || SimError::CapacityText { text: text.to_owned() };
        let trimmed = text.trim();
        let share = |digits: &str, most: f64| {
            digits.trim_end().parse::<f64>().ok().filter(|share| (0.0..=most).contains(share))
        };
        if let Some(percent) = trimmed.strip_suffix('%') {
            return share(percent, f64::MAX).map(Self::Percent).ok_or_else(wrong);
        }
        if trimmed.ends_with('B') {
            return match trimmed.parse() {
                Ok(size) => Ok(Self::Bytes(ByteSize::bytes(size))),
                // More than any memory has is refused as more than all experts.
                Err(ByteSizeError::TooLarge { .. }) => Ok(Self::Bytes(u64::MAX)),
                Err(ByteSizeError::NotASize { .. }) => Err(wrong()),
            };
        }
        // Whole numbers are slots: a share written as one has a point, 0.25.
        if trimmed.contains('.') {
            let shifted = share(trimmed, 1.0).and_then(|_| share(&format!("{trimmed}e2"), 100.0));
            return shifted.map(Self::Percent).ok_or_else(wrong);
        }
        let slots: u64 = trimmed.parse().map_err(|_| wrong())?;
        Ok(Self::Slots(u32::try_from(slots).unwrap_or(u32::MAX)))
    }
}

impl std::fmt::Display for Capacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Slots(slots) => write!(f, "{slots}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Bytes(bytes) => write!(f, "{}GiB", *bytes as f64 / f64::from(1 << 30)),
        }
    }
}

impl Capacity {
    /// The slots that this means for a model in a scope. A share is rounded down: of all experts
    /// in global scope, of each layer's in layer scope. A number of slots in layer scope is spread
    /// evenly, the first layers taking what is left over. In adaptive scope the number is that of
    /// global scope, and stays one: only training tells how it is split.
    ///
    /// # Errors
    /// Less than one slot, more than all experts, or a size where the experts' size is unknown.
    pub fn slots(self, shape: &Shape, scope: Scope) -> Result<Slots, SimError> {
        let experts = shape.total_experts();
        let over = || SimError::CapacityOver { text: self.to_string(), experts };
        let zero = |detail: String| SimError::CapacityZero { text: self.to_string(), detail };
        let total = match self {
            Self::Slots(slots) => slots,
            Self::Percent(percent) if percent > 100.0 => return Err(over()),
            Self::Percent(percent) => match scope {
                Scope::Global | Scope::Adaptive => floor_share(percent, experts),
                Scope::Layer => {
                    let each: Vec<u32> = shape
                        .layers()
                        .iter()
                        .map(|layer| floor_share(percent, layer.experts))
                        .collect();
                    return match each.iter().any(|&slots| slots > 0) {
                        true => Ok(Slots::Layer(each)),
                        false => Err(zero(" of any layer".to_owned())),
                    };
                }
            },
            Self::Bytes(bytes) => {
                let largest =
                    shape.layers().iter().map(|layer| layer.expert_bytes).max().unwrap_or(0);
                if largest == 0 {
                    return Err(SimError::ExpertSizeUnknown { text: self.to_string() });
                }
                if bytes < largest {
                    return Err(zero(format!(": an expert has {largest} bytes")));
                }
                u32::try_from(bytes / largest).unwrap_or(u32::MAX)
            }
        };
        match (total, scope) {
            (0, _) => Err(zero(match self {
                Self::Percent(percent) if percent > 0.0 => {
                    // A slot's share, rounded up to a tenth of a percent.
                    let least = (1000.0 / f64::from(experts.max(1))).ceil() / 10.0;
                    format!(": the trace has {}; give at least {least}%", in_all(experts))
                }
                _ => String::new(),
            })),
            (total, _) if total > experts => Err(over()),
            (total, Scope::Global | Scope::Adaptive) => Ok(Slots::Global(total)),
            (total, Scope::Layer) => Ok(Slots::Layer(even_split(shape, total))),
        }
    }
}

fn in_all(experts: u32) -> String {
    if experts == 1 { "1 expert in all".to_owned() } else { format!("{experts} experts in all") }
}

/// Experts and top-k of each layer.
pub(crate) fn dimensions(shape: &Shape) -> (Vec<u32>, Vec<u32>) {
    shape.layers().iter().map(|layer| (layer.experts, layer.top_k)).unzip()
}

/// `total` slots spread evenly over the layers, never more than a layer has experts.
#[must_use]
pub fn even_split(shape: &Shape, total: u32) -> Vec<u32> {
    let experts: Vec<u32> = shape.layers().iter().map(|layer| layer.experts).collect();
    let mut each = vec![0u32; experts.len()];
    let mut left = total.min(experts.iter().sum());
    while left > 0 {
        let open = each.iter().zip(&experts).filter(|(slots, experts)| slots < experts).count();
        let share = (left / open as u32).max(1);
        for (slots, &experts) in each.iter_mut().zip(&experts) {
            let given = share.min(experts - *slots).min(left);
            *slots += given;
            left -= given;
        }
    }
    each
}

/// `percent` of `count`, rounded down; exact where the product is whole in decimal.
fn floor_share(percent: f64, count: u32) -> u32 {
    // 12.5% of 1,024 is 128 exactly, but 55% of 100 is 55.00000000000001 in binary or 54.99..;
    // the nudge is far below any share that a person would type.
    (percent * f64::from(count) / 100.0 + 1e-9).floor() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::uniform(24, 32, 4).unwrap().with_expert_bytes(13_221_888)
    }

    fn slots(text: &str, scope: Scope) -> Result<Slots, String> {
        text.parse::<Capacity>()
            .and_then(|capacity| capacity.slots(&shape(), scope))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn counts_shares_and_sizes() {
        assert_eq!(slots("384", Scope::Global), Ok(Slots::Global(384)));
        assert_eq!(slots("12.5%", Scope::Global), Ok(Slots::Global(96)));
        assert_eq!(slots("55%", Scope::Global), Ok(Slots::Global(422))); // 422.4
        assert_eq!(slots("100%", Scope::Global), Ok(Slots::Global(768)));
        assert_eq!(slots("1GiB", Scope::Global), Ok(Slots::Global(81))); // 81.2
        assert_eq!(slots("1 GB", Scope::Global), Ok(Slots::Global(75))); // 75.6
        assert_eq!(slots("13221888B", Scope::Global), Ok(Slots::Global(1)));
        assert_eq!(slots("0.125", Scope::Global), Ok(Slots::Global(96)));
        assert_eq!(slots("30%", Scope::Layer), Ok(Slots::Layer(vec![9; 24]))); // 9.6
        let mut uneven = vec![16; 24];
        uneven[0] = 17;
        assert_eq!(slots("385", Scope::Layer), Ok(Slots::Layer(uneven)));
    }

    #[test]
    fn impossible_capacities_are_told() {
        let told = |text: &str, scope| slots(text, scope).unwrap_err();
        assert_eq!(told("0", Scope::Global), "capacity 0 is less than one slot");
        assert_eq!(told("0%", Scope::Global), "capacity 0% is less than one slot");
        let tenth = "capacity 0.1% is less than one slot: the trace has 768 experts in all; give at least 0.2%";
        assert_eq!(told("0.1%", Scope::Global), tenth);
        let one = Shape::uniform(1, 1, 1).unwrap();
        let of_one: SimError =
            "12.5%".parse::<Capacity>().unwrap().slots(&one, Scope::Global).unwrap_err();
        assert!(of_one.to_string().ends_with("the trace has 1 expert in all; give at least 100%"));
        assert_eq!(told("2%", Scope::Layer), "capacity 2% is less than one slot of any layer");
        assert!(told("101%", Scope::Global).starts_with("capacity 101% is more than all 768"));
        assert!(told("769", Scope::Global).contains("more than all 768 experts"));
        assert!(told("99999999999999", Scope::Layer).contains("more than all 768 experts"));
        assert!(told("1e300GiB", Scope::Global).contains("more than all 768 experts"));
        assert!(told("12MiB", Scope::Global).contains("an expert has 13221888 bytes"));
        for text in ["", "x", "-1", "nan%", "inf", "1XB", "-5%", "3.5", "-0.5"] {
            assert!(told(text, Scope::Global).contains("is not a number of slots"), "{text}");
        }
        let unknown = Shape::uniform(1, 4, 1).unwrap();
        let error = Capacity::Bytes(1 << 30).slots(&unknown, Scope::Global).unwrap_err();
        assert!(error.to_string().contains("`Compare::expert_bytes`"));
    }

    #[test]
    fn an_even_split_fills_small_layers_first() {
        let layer = |(number, experts)| hotset_traces::LayerShape {
            number,
            experts,
            top_k: 1,
            expert_bytes: 0,
        };
        let shape = Shape::new((0..).zip([2, 10, 10]).map(layer).collect()).unwrap();
        assert_eq!(even_split(&shape, 12), [2, 5, 5]);
        assert_eq!(even_split(&shape, 22), [2, 10, 10]);
        assert_eq!(even_split(&shape, 2), [1, 1, 0]);
    }
}
