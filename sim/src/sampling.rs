//! Some of a trace's sequences for all of them, and how far their figures can be off.
//!
//! Whole sequences are chosen, each as likely as any other, and replayed in their order from an empty
//! cache. What each of them counts in that one replay is the unit that intervals are drawn over: what
//! a sequence leaves in the cache for the next is in its neighbour's counts, as it would be in the
//! whole trace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hotset_traces::{Phase, Trace};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::prepare::Preparation;
use crate::sequences::SequenceCounts;
use crate::{Compare, Interval, LinkPrice, Resamples, Semantics, SimError, Steps, Window};

/// Resamples of an interval.
const RESAMPLES: usize = 1000;
/// More sequences than this are drawn in as many groups of neighbours.
const MOST_UNITS: usize = 500;
/// What tells the choice of sequences from the draws of the interval, which have the same seed.
const CHOICE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which part of a trace was replayed for the whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleSummary {
    /// Share of the sequences asked for.
    pub percent: f64,
    /// Sequences that were chosen.
    pub sequences: usize,
    /// Sequences of the trace.
    pub of_sequences: usize,
    /// Digest of the chosen sequences' routing.
    pub digest: String,
    /// So many more sequences like these would halve the intervals.
    pub more_to_halve: usize,
    /// How often the sequences were drawn for an interval.
    pub resamples: usize,
}

/// A row's figures with what 95% of the draws of its sequences lie in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sampled {
    /// Sequences with tokens in this phase and window.
    pub sequences: usize,
    /// hits / accesses.
    pub hit_rate: Interval,
    /// Over each link.
    pub links: Vec<SampledPrice>,
}

/// A link's time with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampledPrice {
    /// The link.
    pub link: String,
    /// `timeline`, or `serial` where there is none.
    pub price: &'static str,
    /// That price.
    pub ms_per_token: Interval,
}

/// How many sequences stand for a trace, and these in its order if they are not all.
pub(crate) fn choose(
    trace: &Trace,
    percent: f64,
    seed: u64,
) -> Result<(usize, Option<Trace>), SimError> {
    if !(percent > 0.0 && percent <= 100.0) {
        return Err(SimError::SampleShare { percent });
    }
    let sequences = trace.sequences().len();
    if sequences < 2 {
        return Err(SimError::SampleOfOne);
    }
    let chosen = (percent * sequences as f64 / 100.0).round() as usize;
    if chosen < 2 {
        // Rounding gives two from one and a half on.
        let least = (150.0 / sequences as f64).ceil() as u64;
        return Err(SimError::SampleTooSmall { percent, sequences, chosen, least });
    }
    if chosen == sequences {
        return Ok((chosen, None));
    }
    let sample = trace.select_sequences(&drawn(sequences, chosen, seed))?;
    Ok((chosen, Some(sample)))
}

/// `chosen` of so many, ascending, each as likely as any other.
fn drawn(sequences: usize, chosen: usize, seed: u64) -> Vec<usize> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ CHOICE);
    let mut all: Vec<usize> = (0..sequences).collect();
    for place in 0..chosen.min(sequences) {
        all.swap(place, rng.random_range(place..sequences));
    }
    all.truncate(chosen);
    all.sort_unstable();
    all
}

impl SampleSummary {
    /// Of `sample`, `sequences` of those of `whole`.
    pub(crate) fn of(percent: f64, sequences: usize, sample: &Trace, whole: &Trace) -> Self {
        Self {
            percent,
            sequences,
            of_sequences: whole.sequences().len(),
            digest: sample.digest().to_owned(),
            more_to_halve: 3 * sequences,
            resamples: RESAMPLES,
        }
    }

    /// What was sampled and what would make it surer, in words.
    #[must_use]
    pub fn told(&self) -> String {
        let Self { percent, sequences, of_sequences, more_to_halve, .. } = self;
        let left = of_sequences - sequences;
        let where_from = match left {
            0 => "the trace has no more".to_owned(),
            _ if left < *more_to_halve => format!("the trace has {left} more"),
            _ => {
                let share = 100.0 * (sequences + more_to_halve) as f64 / *of_sequences as f64;
                format!("`Compare::sample` {:.0}%", share.ceil())
            }
        };
        format!(
            "a sample of {sequences} of {of_sequences} sequences ({percent}%), with the 95% that resampling \
             them gives; {more_to_halve} more sequences would halve the intervals ({where_from})"
        )
    }
}

/// Refuses steps that hold several sequences: what such a step counts is nobody's own.
pub(crate) fn check_steps(trace: &Trace, steps: &Steps, request: &Compare) -> Result<(), SimError> {
    if request.sample.is_none() || request.semantics == Semantics::Sequential {
        return Ok(());
    }
    let of = |place: usize| trace.sequence_of(steps.row(place));
    let single = |step: usize| {
        let mut places = steps.places(step);
        places.next().is_none_or(|first| places.all(|place| of(place) == of(first)))
    };
    if (0..steps.len()).all(single) {
        return Ok(());
    }
    Err(SimError::SampleOfBatches { recorded: request.serving.composition.is_none() })
}

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
            let end = |end: f64| (estimate + (end * scale - estimate) * wider).max(0.0);
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
    fn every_sequence_is_as_likely_and_the_order_is_kept() {
        let mut often = [0u32; 8];
        for seed in 0..4000 {
            let drawn = drawn(8, 2, seed);
            assert!(drawn.len() == 2 && drawn[0] < drawn[1] && drawn[1] < 8);
            drawn.iter().for_each(|&sequence| often[sequence] += 1);
        }
        // 1,000 each, with a standard deviation of 27.
        assert!(often.iter().all(|times| (900..1100).contains(times)), "{often:?}");
        assert_eq!(drawn(5, 5, 9), [0, 1, 2, 3, 4]);
        assert_eq!(drawn(100, 10, 3), drawn(100, 10, 3));
        assert_ne!(drawn(100, 10, 3), drawn(100, 10, 4));
    }

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
