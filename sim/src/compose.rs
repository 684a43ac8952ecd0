//! Composing the steps of an engine that serves several requests at once.
//!
//! A trace of single requests does not say which tokens ran together. Composition does, by the
//! rule of a continuous batch: so many sequences run at any time, in order of arrival, and when
//! one ends the next begins. In each round one chunk of prompt tokens runs, if a running sequence
//! has any left (the earliest arrived first; a chunk may hold tokens of several), then one decode
//! step with a token of every sequence that is past its prompt, then one verify step likewise.

use hotset_traces::{Phase, Trace};
use serde::{Deserialize, Serialize};

use crate::{PREFILL_CHUNK, SimError, Steps};

/// In which order sequences arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// As they lie in the trace.
    #[default]
    Recorded,
    /// Shuffled with this seed.
    Shuffled(u64),
}

/// How requests are run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composition {
    /// Sequences that run at once.
    pub concurrency: u32,
    /// Prompt tokens a prefill step, at least 1.
    pub chunk: u32,
    /// Tokens that a sequence's verify step checks, at least 1: one more than were drafted.
    pub verify: u32,
    /// Order of arrival.
    pub arrival: Arrival,
}

impl Default for Composition {
    fn default() -> Self {
        Self { concurrency: 1, chunk: PREFILL_CHUNK, verify: 1, arrival: Arrival::Recorded }
    }
}

/// A sequence that runs: the next row and the one behind its last.
struct Running {
    next: usize,
    end: usize,
}

impl Steps {
    /// Runs the trace's sequences together, whatever steps it recorded.
    ///
    /// # Errors
    /// Concurrency 0, or more than there are sequences with tokens.
    pub fn compose(trace: &Trace, how: &Composition) -> Result<Self, SimError> {
        let mut arrivals: Vec<Running> = trace
            .sequences()
            .iter()
            .filter(|sequence| !sequence.rows.is_empty())
            .map(|sequence| Running { next: sequence.rows.start, end: sequence.rows.end })
            .collect();
        if how.concurrency == 0 {
            return Err(SimError::ConcurrencyZero);
        }
        if how.concurrency as usize > arrivals.len() {
            let (asked, sequences) = (how.concurrency, arrivals.len());
            return Err(SimError::ConcurrencyOver { asked, sequences });
        }
        if let Arrival::Shuffled(seed) = how.arrival {
            shuffle(&mut arrivals, seed);
        }
        let mut arrivals = arrivals.into_iter();
        let mut running: Vec<Running> = Vec::with_capacity(how.concurrency as usize);
        let mut composed = Composed { phases: trace.phases(), order: Vec::new(), bounds: vec![0] };
        composed.order.reserve_exact(trace.tokens());
        loop {
            running.retain(|sequence| sequence.next < sequence.end);
            let free = how.concurrency as usize - running.len();
            running.extend(arrivals.by_ref().take(free));
            if running.is_empty() {
                return Ok(Self::from_order(composed.order, composed.bounds));
            }
            let chunk = how.chunk.max(1) as usize;
            composed.step(&mut running, Phase::Prefill, chunk, chunk);
            composed.step(&mut running, Phase::Decode, 1, usize::MAX);
            composed.step(&mut running, Phase::Verify, how.verify.max(1) as usize, usize::MAX);
        }
    }
}

struct Composed<'a> {
    phases: &'a [u8],
    order: Vec<u32>,
    bounds: Vec<u32>,
}

impl Composed<'_> {
    /// One step of `phase`, if any sequence is in it: at most `each` tokens of a sequence and
    /// `most` in all.
    fn step(&mut self, running: &mut [Running], phase: Phase, each: usize, most: usize) {
        let start = self.order.len();
        for sequence in running {
            let room = each.min(most - (self.order.len() - start));
            let from = sequence.next;
            while sequence.next < sequence.end
                && sequence.next - from < room
                && self.phases[sequence.next] == phase as u8
            {
                self.order.push(sequence.next as u32);
                sequence.next += 1;
            }
        }
        if self.order.len() > start {
            self.bounds.push(self.order.len() as u32);
        }
    }
}

/// Fisher and Yates with SplitMix64: the same order on every machine.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        // The high half of the product is uniform to within one part in 2^64 over the length.
        let pick = (u128::from(word) * (last as u128 + 1)) >> 64;
        items.swap(last, pick as usize);
    }
}

#[cfg(test)]
mod tests {
    use hotset_traces::{Ids, Sequence, Shape, TraceBuilder, testing::full_trace};

    use super::*;

    fn rows(steps: &Steps) -> Vec<Vec<usize>> {
        let row = |step| steps.places(step).map(|place| steps.row(place)).collect();
        (0..steps.len()).map(row).collect()
    }

    /// Sequences with these phases, one id a token.
    fn trace(phases: &[&[u8]]) -> Trace {
        let all: Vec<u8> = phases.concat();
        let mut start = 0;
        let sequences = phases.iter().zip(0..).map(|(phases, id)| {
            let rows = start..start + phases.len();
            start = rows.end;
            let label = String::new();
            let (document, has_repetition) = (None, None);
            Sequence { id, label, document, prompt_tokens: 0, has_repetition, rows }
        });
        let ids = Ids::U8(vec![0; all.len()]);
        TraceBuilder::new("t", Shape::uniform(1, 2, 1).unwrap(), ids)
            .sequences(sequences.collect())
            .phases(all)
            .build()
            .unwrap()
    }

    #[test]
    fn one_at_a_time_is_one_request_after_another() {
        let trace = hotset_traces::bundled().unwrap();
        let composed = Steps::compose(&trace, &Composition { chunk: 100, ..Default::default() });
        assert_eq!(rows(&composed.unwrap()), rows(&Steps::of(&trace, 100)));
    }

    #[test]
    fn two_at_a_time_by_hand() {
        // Rows: 0-3 (three prompt tokens, an answer), 4-5 (a prompt token, an answer), 6-7 (two
        // answers). Chunks of two prompt tokens.
        let trace = trace(&[&[0, 0, 0, 1], &[0, 1], &[1, 1]]);
        let how = Composition { concurrency: 2, chunk: 2, ..Default::default() };
        let steps = Steps::compose(&trace, &how).unwrap();
        let expected: [&[usize]; 5] = [
            &[0, 1], // the first prompt fills a chunk; nobody decodes yet
            &[2, 4], // its rest and the second prompt share one
            &[3, 5], // both answer, and end
            &[6],    // the third begins
            &[7],
        ];
        assert_eq!(rows(&steps), expected);
    }

    #[test]
    fn verify_steps_hold_what_was_drafted() {
        let trace = trace(&[&[2, 2, 2, 2, 2], &[2, 2]]);
        let how = Composition { concurrency: 2, verify: 3, ..Default::default() };
        let steps = Steps::compose(&trace, &how).unwrap();
        assert_eq!(rows(&steps), [vec![0, 1, 2, 5, 6], vec![3, 4]]);
    }

    #[test]
    fn every_token_runs_once_and_the_seed_decides_the_order() {
        let trace = hotset_traces::bundled().unwrap();
        let composed = |seed| {
            let arrival = Arrival::Shuffled(seed);
            let how = Composition { concurrency: 7, chunk: 64, arrival, ..Default::default() };
            Steps::compose(&trace, &how).unwrap()
        };
        let mut all: Vec<usize> = rows(&composed(1)).concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..trace.tokens()));
        assert_eq!(composed(1), composed(1));
        assert_ne!(composed(1), composed(2));
    }

    #[test]
    fn impossible_concurrency_is_refused() {
        let told = |concurrency| {
            let how = Composition { concurrency, ..Default::default() };
            Steps::compose(&full_trace(), &how).unwrap_err().to_string()
        };
        assert_eq!(told(0), "concurrency 0 runs nothing: give at least 1");
        assert_eq!(told(4), "concurrency 4 is more than the trace's 3 sequences");
    }
}
