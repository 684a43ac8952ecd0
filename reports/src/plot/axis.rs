//! Axes: round ticks, and places between them.

/// A range with ticks at both ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// In ascending order, two at least.
    pub ticks: Vec<f64>,
    decimals: usize,
}

impl Axis {
    /// About `most` ticks over all `values`, which are finite; from 0 where `zero` says so.
    pub fn over(values: impl Iterator<Item = f64>, zero: bool, most: usize) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-12 * high.abs().max(1e-9) {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let rough = (high - low) / most as f64;
        let power = rough.log10().floor();
        let unit = 10f64.powi(power as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * unit);
        let step = step.into_iter().find(|&step| step >= rough).unwrap_or(10.0 * unit);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        // `most` and a step at each end.
        let count = ((last - first) as usize).min(most + 2);
        let ticks = (0..=count).map(|n| (first + n as f64) * step).collect();
        let decimals = if step >= 1.0 { 0 } else { (-step.log10().floor()) as usize };
        Self { ticks, decimals }
    }

    /// From 0 at the first tick to 1 at the last.
    pub fn place(&self, value: f64) -> f64 {
        match &self.ticks[..] {
            [first, .., last] => (value - first) / (last - first),
            _ => 0.0,
        }
    }

    /// A tick as it is written.
    pub fn text(&self, tick: f64) -> String {
        // No "-0".
        format!("{:.*}", self.decimals, tick + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[f64], zero: bool) -> Vec<String> {
        let axis = Axis::over(values.iter().copied(), zero, 5);
        axis.ticks.iter().map(|&tick| axis.text(tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_all() {
        assert_eq!(texts(&[0.21, 0.84], false), ["0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&[3.1, 0.7], true), ["0", "1", "2", "3", "4"]);
        assert_eq!(texts(&[], true), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            texts(&[512.0], false),
            ["511.4", "511.6", "511.8", "512.0", "512.2", "512.4", "512.6"]
        );
        let axis = Axis::over([0.0, 10.0].into_iter(), true, 5);
        assert_eq!((axis.place(0.0), axis.place(5.0), axis.place(10.0)), (0.0, 0.5, 1.0));
    }
}
