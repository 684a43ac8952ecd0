//! How far a sample's figures can be off: draws of its sequences, row by row.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hotset_traces::Phase;

use crate::prepare::Preparation;
use crate::sampling::{RESAMPLES, Sampled, SampledPrice};
use crate::sequence_counts::SequenceCounts;
use crate::{Interval, LinkPrice, Resamples, SimError, Window};

/// More sequences than this are drawn in as many groups of neighbours.
const MOST_UNITS: usize = 500;

/// Draws intervals over the sequences of a run; draws of as many units are the same.
pub(crate) struct Intervals<'p> {
    prepared: &'p Preparation<'p>,
    draws: BTreeMap<usize, Resamples>,
}

/// A row as a sample sees it.
pub(crate) struct RowFigures<'a> {
    pub phase: Phase,
    pub window: Window,
    pub hit_rate: Option<f64>,
    pub links: &'a [LinkPrice],
}

impl<'p> Intervals<'p> {
    /// `None` where nothing was sampled.
    pub fn of(prepared: &'p Preparation<'p>) -> Option<Self> {
        prepared.request().sample?;
        Some(Self { prepared, draws: BTreeMap::new() })
    }

    /// The figures of a row of a replay that counted its sequences.
    pub fn row(
        &mut self,
        counted: &[SequenceCounts],
        row: &RowFigures<'_>,
    ) -> Result<Sampled, SimError> {
        let of_row = |of: &&SequenceCounts| of.phase == row.phase && row.window.includes(of.steady);
        let units = units(counted.iter().filter(of_row));
        let sequences = units.sequences;
        let draws = match self.draws.entry(units.sums.len()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let seed = self.prepared.request().seed;
                new.insert(Resamples::new(units.sums.len(), RESAMPLES, seed)?)
            }
        };
        let wider = wider(units.sums.len());
        let interval = |estimate: f64,
                        part: &dyn Fn(&SequenceCounts) -> u64,
                        whole: &dyn Fn(&SequenceCounts) -> u64| {
            // A price may count a little that no step does, as what is drained at the end of a phase.
            let drawn = draws.interval(|drawn| units.sum(drawn, part) / units.sum(drawn, whole));
            let scale = if drawn.estimate > 0.0 { estimate / drawn.estimate } else { 1.0 };
            let end = |end: f64| {
                let moved = estimate + (end * scale - estimate) * wider;
                // No rate and no time is below nothing; what is no number stays none.
                if moved < 0.0 { 0.0 } else { moved }
            };
            Interval { estimate, low: end(drawn.low), high: end(drawn.high) }
        };
        let price = |(index, link): (usize, &LinkPrice)| {
            let (price, ms) = match link.timeline_ms_per_token {
                Some(ms) => ("timeline", ms),
                None => ("serial", link.serial_ms_per_token),
            };
            let ps = |of: &SequenceCounts| of.ps.get(index).copied().unwrap_or(0);
            let ms_per_token = interval(ms, &ps, &|of| of.tokens);
            SampledPrice { link: link.link.clone(), price, ms_per_token }
        };
        Ok(Sampled {
            sequences,
            hit_rate: interval(row.hit_rate.unwrap_or(f64::NAN), &|of| of.hits, &|of| of.accesses),
            links: row.links.iter().enumerate().map(price).collect(),
        })
    }
}

/// How much wider than the resamples' own an interval of so few units is. The resamples of *n* units
/// differ by a standard error that is *sqrt((n - 1) / n)* of what it should be, and is itself known from
/// *n* alone: Student's *t* instead of the normal quantile (T. Hesterberg, The American Statistician
/// 69, 2015, section 4).
fn wider(units: usize) -> f64 {
    const NORMAL: f64 = 1.959_963_985;
    let (n, free) = (units as f64, units.saturating_sub(1).max(1) as f64);
    let (z, z3, z5) = (NORMAL, NORMAL.powi(3), NORMAL.powi(5));
    let t = z + (z3 + z) / (4.0 * free) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * free * free);
    t / z * (n / free).sqrt()
}

/// What is drawn: sequences, or groups of neighbours where there are many.
struct Units {
    sequences: usize,
    sums: Vec<SequenceCounts>,
}

fn units<'a>(counted: impl Iterator<Item = &'a SequenceCounts>) -> Units {
    let mut each: Vec<SequenceCounts> = Vec::new();
    for of in counted {
        match each.last_mut().filter(|last| last.sequence == of.sequence) {
            Some(last) => last.add(of),
            None => each.push(of.clone()),
        }
    }
    let sequences = each.len();
    if sequences <= MOST_UNITS {
        return Units { sequences, sums: each };
    }
    let mut sums: Vec<SequenceCounts> = Vec::with_capacity(MOST_UNITS);
    for (place, of) in each.iter().enumerate() {
        let group = place * MOST_UNITS / sequences;
        match sums.get_mut(group) {
            Some(sum) => sum.add(of),
            None => sums.push(of.clone()),
        }
    }
    Units { sequences, sums }
}

impl Units {
    fn sum(&self, drawn: &[u32], of: &dyn Fn(&SequenceCounts) -> u64) -> f64 {
        drawn.iter().zip(&self.sums).map(|(&n, unit)| f64::from(n) * of(unit) as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_few_sequences_are_wider() {
        // t of 9 and of 99 degrees of freedom: 2.2622 and 1.9842.
        assert!((wider(10) - 2.2622 / 1.96 * (10f64 / 9.0).sqrt()).abs() < 3e-3);
        assert!((wider(100) - 1.9842 / 1.96 * (100f64 / 99.0).sqrt()).abs() < 1e-3);
        assert!(wider(0).is_finite() && wider(500) < 1.004);
    }

    #[test]
    fn many_sequences_are_drawn_in_groups_that_lose_nothing() {
        let of = |sequence: u32| SequenceCounts {
            sequence,
            phase: Phase::Decode,
            steady: true,
            tokens: 2,
            accesses: 8,
            hits: u64::from(sequence % 9),
            ps: vec![7],
        };
        let all: Vec<_> = (0..1234).map(of).collect();
        let units = units(all.iter());
        assert_eq!((units.sequences, units.sums.len()), (1234, MOST_UNITS));
        let sum = |field: fn(&SequenceCounts) -> u64| units.sums.iter().map(field).sum::<u64>();
        assert_eq!((sum(|of| of.tokens), sum(|of| of.ps[0])), (2 * 1234, 7 * 1234));
        assert!(units.sums.iter().all(|of| of.tokens == 4 || of.tokens == 6));
    }
}
