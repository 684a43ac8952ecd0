//! Going without by the router's weights: smaller copies, and a router that favours residents.

use serde::Deserialize;

use super::absent::Absent;
use super::{Asked, MissHandler};

const WHOLE: u32 = 600_000;
const LOW: u32 = 900_000;
const SIZE: u32 = 250_000;
const LAMBDA: u32 = 500_000;
const KEEP: u32 = 1;

/// Its defaults.
pub(super) const LOW_PRECISION: MissHandler =
    MissHandler::LowPrecision { whole_ppm: WHOLE, low_ppm: LOW, size_ppm: SIZE };
pub(super) const BIAS: MissHandler = MissHandler::Bias { lambda_ppm: LAMBDA, keep: KEEP };

/// The largest bias that is taken.
const MOST_LAMBDA: f64 = 10.0;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LowPrecisionConfig {
    whole: Option<f64>,
    low: Option<f64>,
    size: Option<f64>,
}

impl LowPrecisionConfig {
    /// The rule, defaults filled in.
    pub fn rule(&self) -> Result<MissHandler, String> {
        let of = |name, given: Option<f64>, default| {
            given.map_or(Ok(default), |share| millionths(name, share))
        };
        let whole_ppm = of("whole", self.whole, WHOLE)?;
        let low_ppm = of("low", self.low, LOW.max(whole_ppm))?;
        let size_ppm = of("size", self.size, SIZE)?;
        if low_ppm < whole_ppm {
            return Err(
                "low is less than whole: smaller copies begin where whole ones end".to_owned()
            );
        }
        if size_ppm == 0 {
            return Err("size = 0 is no copy: give more than 0, or miss handler 'drop'".to_owned());
        }
        Ok(MissHandler::LowPrecision { whole_ppm, low_ppm, size_ppm })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BiasConfig {
    lambda: Option<f64>,
    keep: Option<u32>,
}

impl BiasConfig {
    /// The rule, defaults filled in.
    pub fn rule(&self) -> Result<MissHandler, String> {
        if let Some(lambda) = self.lambda {
            crate::registry::share("lambda", lambda, 0.0..=MOST_LAMBDA)?;
        }
        let lambda_ppm = self.lambda.map_or(LAMBDA, |lambda| (lambda * 1e6).round() as u32);
        Ok(MissHandler::Bias { lambda_ppm, keep: self.keep.unwrap_or(KEEP) })
    }
}

/// A share as it was given.
pub(super) fn within(name: &str, share: f64) -> Result<f64, String> {
    crate::registry::share(name, share, 0.0..=1.0).map(|()| share)
}

/// A share in millionths.
pub(super) fn millionths(name: &str, share: f64) -> Result<u32, String> {
    within(name, share).map(|share| (share * 1e6).round() as u32)
}

/// The mean weight of the expert at a place over the tokens that want it; 0 without weights.
pub(super) fn mean_weight<E>(asked: &Asked<'_, E>, place: usize) -> f64 {
    let weight = asked.weights.get(place).map_or(0.0, |&weight| f64::from(weight));
    weight / f64::from(asked.tokens_of(place).max(1))
}

/// Places of the event that come before this one by mean weight, ties to the better rank.
fn better<'a, E>(asked: &'a Asked<'_, E>, place: usize) -> impl Iterator<Item = usize> + 'a {
    let own = mean_weight(asked, place);
    (0..asked.experts.len()).filter(move |&other| {
        let mean = mean_weight(asked, other);
        mean > own || mean == own && other < place
    })
}

/// Sorts missing experts into those that come whole, those that come smaller, and the rest, each part in
/// its order. Returns how many there are of the first two.
pub(super) fn by_precision<E>(
    asked: &Asked<'_, E>,
    absent: &mut [Absent],
    whole_ppm: u32,
    low_ppm: u32,
) -> (usize, usize) {
    let weight = |place: usize| asked.weights.get(place).map_or(0.0, |&weight| f64::from(weight));
    let all: f64 = (0..asked.experts.len()).map(weight).sum();
    for of in absent.iter_mut() {
        let before: f64 = better(asked, of.place).map(weight).sum();
        let within = |ppm: u32| before * 1e6 <= f64::from(ppm) * all;
        of.class = u8::from(!within(whole_ppm)) + u8::from(!within(low_ppm));
    }
    absent.sort_by_key(|of| of.class);
    let of = |class: u8| absent.iter().filter(|of| of.class == class).count();
    (of(0), of(1))
}

/// The running mean of each layer's range of logits.
#[derive(Debug, Clone)]
pub(super) struct Ranges {
    /// By layer: sum and number.
    layers: Vec<(f64, u64)>,
}

impl Ranges {
    pub fn new(layers: usize) -> Self {
        Self { layers: vec![(0.0, 0); layers] }
    }

    /// An event is over.
    pub fn learn<E>(&mut self, asked: &Asked<'_, E>) {
        let means = || (0..asked.experts.len()).map(|place| mean_weight(asked, place));
        let most = means().fold(0.0, f64::max);
        let least = least(asked);
        if least > 0.0 && most.is_finite() {
            let (sum, events) = &mut self.layers[asked.layer];
            *sum += libm::log(most / least);
            *events += 1;
        }
    }

    /// Whether a missing expert gives way to a resident that scores as the event's last.
    pub fn gives_way<E>(
        &self,
        asked: &Asked<'_, E>,
        of: &Absent,
        lambda_ppm: u32,
        keep: u32,
    ) -> bool {
        let (sum, events) = self.layers[asked.layer];
        if events == 0 || better(asked, of.place).take(keep as usize).count() < keep as usize {
            return false;
        }
        let (own, last) = (mean_weight(asked, of.place), least(asked));
        let over = match (own > last, last > 0.0) {
            (false, _) => 0.0,
            (true, false) => f64::INFINITY,
            (true, true) => libm::log(own / last),
        };
        over < f64::from(lambda_ppm) / 1e6 * (sum / events as f64)
    }
}

fn least<E>(asked: &Asked<'_, E>) -> f64 {
    let means = (0..asked.experts.len()).map(|place| mean_weight(asked, place));
    means.fold(f64::INFINITY, f64::min)
}
