//! Some of a trace's sequences for all of them, and how far their figures can be off.
//!
//! Whole sequences are chosen, each as likely as any other, and replayed in their order from an empty
//! cache. What each of them counts in that one replay is the unit that intervals are drawn over: what
//! a sequence leaves in the cache for the next is in its neighbour's counts, as it would be in the
//! whole trace.

use hotset_traces::Trace;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::{Compare, Interval, Semantics, SimError, Steps};

/// Resamples of an interval.
pub(crate) const RESAMPLES: usize = 1000;
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
}
