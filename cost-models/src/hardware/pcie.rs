//! Slots of PCI Express: generation and lanes, and what copies reach of the nominal rate.

use std::str::FromStr;

use toml::{Table, Value};

/// A slot, as `4.0x16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    generation: u32,
    lanes: u32,
}

/// Large copies reach about 0.80 of the nominal rate on PCIe 4.0 (25.2 of 31.5 GB/s) and 0.90 on 5.0 (57 of 63).
const REACHED: [(u32, f64); 2] = [(4, 0.80), (u32::MAX, 0.90)];

impl Slot {
    /// Bytes a second that large copies reach.
    #[must_use]
    pub fn rate(self) -> f64 {
        // 128 of 130 bits carry data from generation 3 on: 0.985 GB/s a lane, doubled by each.
        let lane = 0.984_6e9 * f64::from(1u32 << (self.generation - 3));
        let reached = REACHED.iter().find(|(last, _)| self.generation <= *last);
        lane * f64::from(self.lanes) * reached.map_or(0.9, |(_, share)| *share)
    }

    /// The same slot in a host of at most this generation.
    #[must_use]
    pub fn within(self, generation: u32) -> Self {
        Self { generation: self.generation.min(generation.max(3)), ..self }
    }

    /// The link as a machine's file writes it.
    pub(super) fn link_value(self) -> Value {
        let share = REACHED.iter().find(|(last, _)| self.generation <= *last);
        let mut link = Table::new();
        link.insert("name".into(), format!("pcie{}-x{}", self.generation, self.lanes).into());
        link.insert("kind".into(), "pcie".into());
        link.insert("gb_s".into(), (self.rate() / 1e9).into());
        let share = share.map_or(90.0, |(_, share)| share * 100.0);
        let source = format!("calculated: {share:.0}% of the nominal rate, as large copies reach");
        link.insert("source".into(), source.into());
        Value::Table(link)
    }
}

impl FromStr for Slot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("is '{text}': give generation and lanes, as 4.0x16 (3.0 to 7.0, x1 to x16)");
        let (generation, lanes) = text.trim().split_once('x').ok_or_else(wrong)?;
        let generation = generation.trim().trim_end_matches(".0").parse().map_err(|_| wrong())?;
        let lanes = lanes.trim().parse().map_err(|_| wrong())?;
        match (3..=7).contains(&generation) && [1, 2, 4, 8, 16].contains(&lanes) {
            true => Ok(Self { generation, lanes }),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_reach_what_was_measured_of_them() {
        let rate = |text: &str| text.parse::<Slot>().unwrap().rate() / 1e9;
        assert!((rate("4.0x16") - 25.2).abs() < 0.1);
        assert!((rate("5.0 x16") - 56.7).abs() < 0.1);
        assert!((rate("3x8") - 6.3).abs() < 0.1);
        for wrong in ["4.0", "2.0x16", "4x3", "x16", "4x1e9"] {
            assert!(wrong.parse::<Slot>().unwrap_err().contains("4.0x16"), "{wrong}");
        }
    }
}
