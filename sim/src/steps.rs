//! Which tokens an engine runs together: the steps of a trace.
//!
//! Where the engine recorded its steps they are taken as they are. Otherwise they are composed as
//! one request after another would run: prompts in chunks, generated tokens one at a time.

use std::ops::Range;

use hotset_traces::{Phase, Trace};

/// Prompt tokens that run as one step where the trace does not say: llama.cpp's default
/// micro-batch.
pub const PREFILL_CHUNK: u32 = 512;

/// A trace's steps, in the order in which they run. All tokens of a step have one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Token rows in order of execution; `None`: as they lie in the trace.
    order: Option<Vec<u32>>,
    /// Start of each step in that order, and the end of the last.
    bounds: Vec<u32>,
}

impl Steps {
    /// The recorded steps, else one request after another with prompts in chunks of `chunk`
    /// tokens (at least 1).
    #[must_use]
    pub fn of(trace: &Trace, chunk: u32) -> Self {
        match trace.steps() {
            Some(steps) => Self::recorded(steps, trace.phases()),
            None => Self::one_after_another(trace, chunk.max(1)),
        }
    }

    fn one_after_another(trace: &Trace, chunk: u32) -> Self {
        let phases = trace.phases();
        let mut bounds = vec![0];
        for sequence in trace.sequences() {
            let mut start = sequence.rows.start;
            for row in sequence.rows.clone() {
                let full = (row - start) as u32 == chunk;
                let single = phases[row] != Phase::Prefill as u8;
                if row > start && (full || single || phases[row] != phases[start]) {
                    bounds.push(row as u32);
                    start = row;
                }
            }
            bounds.push(sequence.rows.end as u32);
        }
        Self { order: None, bounds }
    }

    /// Steps as the engine numbered them; of one step, each phase runs by itself, prefill first.
    fn recorded(steps: &[u32], phases: &[u8]) -> Self {
        let key = |row: u32| (steps[row as usize], phases[row as usize]);
        let mut order: Vec<u32> = (0..steps.len() as u32).collect();
        order.sort_by_key(|&row| key(row));
        let mut bounds = vec![0];
        for place in 1..order.len() {
            if key(order[place]) != key(order[place - 1]) {
                bounds.push(place as u32);
            }
        }
        bounds.push(order.len() as u32);
        Self { order: Some(order), bounds }
    }

    /// Steps of the rows in `order`, each from one bound to the next: `bounds` ascends from 0 to the
    /// length of `order`, and all rows of a step have one phase.
    #[must_use]
    pub fn from_order(order: Vec<u32>, bounds: Vec<u32>) -> Self {
        Self { order: Some(order), bounds }
    }

    /// Number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether there is no step.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The places of a step's tokens in the order of execution.
    #[must_use]
    #[inline(always)]
    pub fn places(&self, step: usize) -> Range<usize> {
        self.bounds[step] as usize..self.bounds[step + 1] as usize
    }

    /// The token row at a place.
    #[must_use]
    #[inline(always)]
    pub fn row(&self, place: usize) -> usize {
        match &self.order {
            Some(order) => order[place] as usize,
            None => place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_run_in_chunks_and_answers_token_by_token() {
        let trace = hotset_traces::bundled().unwrap();
        let steps = Steps::of(&trace, 100);
        // 192 prompt tokens in two chunks, then 256 steps, for each sequence.
        assert_eq!(steps.len(), 48 * 258);
        assert_eq!(steps.places(0), 0..100);
        assert_eq!(steps.places(1), 100..192);
        assert_eq!(steps.places(2), 192..193);
        assert_eq!(steps.places(258), 448..548);
        assert_eq!(Steps::of(&trace, PREFILL_CHUNK).len(), 48 * 257);
    }

    #[test]
    fn recorded_steps_gather_their_tokens() {
        let steps = Steps::recorded(&[1, 2, 2, 1, 2], &[1, 1, 0, 1, 1]);
        let rows: Vec<Vec<usize>> = (0..steps.len())
            .map(|step| steps.places(step).map(|place| steps.row(place)).collect())
            .collect();
        assert_eq!(rows, [vec![0, 3], vec![2], vec![1, 4]]);
    }
}
