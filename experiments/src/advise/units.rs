//! What is drawn in resamples: sequences, or stretches of the run where steps mix them.

use hotset_sim::{PhaseFilter, Steps};
use hotset_traces::{Phase, Trace};

use crate::Resamples;

/// No more units than this: sequences beyond are drawn in groups.
const MOST: usize = 256;
/// Stretches that a run is cut into where sequences cannot be told apart.
const STRETCHES: usize = 20;

/// The unit of each step whose tokens count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Units {
    pub what: &'static str,
    pub count: usize,
    /// By replayed step, whichever phase; `None`: its tokens do not count.
    of_step: Vec<Option<usize>>,
}

impl Units {
    /// The units of a run over the steps that `filter` wants, of which `phase` counts.
    pub fn of(trace: &Trace, steps: &Steps, filter: PhaseFilter, phase: Phase) -> Self {
        let rows = |step: usize| steps.places(step).map(|place| steps.row(place));
        let first = |step: usize| steps.row(steps.places(step).start);
        let replayed: Vec<usize> =
            (0..steps.len()).filter(|&step| filter.wants(trace.phase(first(step)))).collect();
        let counted = |step: usize| trace.phase(first(step)) == phase;
        let single = |step: &usize| {
            let of = trace.sequence_of(first(*step));
            rows(*step).all(|row| trace.sequence_of(row) == of)
        };
        let mut sequences: Vec<usize> = replayed
            .iter()
            .filter(|&&step| counted(step))
            .map(|&step| trace.sequence_of(first(step)))
            .collect();
        sequences.sort_unstable();
        sequences.dedup();
        if sequences.len() >= Resamples::FEWEST && replayed.iter().all(single) {
            let groups = sequences.len().min(MOST);
            let unit = |step: usize| {
                let place = sequences.binary_search(&trace.sequence_of(first(step))).ok()?;
                Some(place * groups / sequences.len())
            };
            let what = if groups < sequences.len() { "groups of sequences" } else { "sequences" };
            let of_step = replayed.iter().map(|&step| counted(step).then(|| unit(step))?).collect();
            return Self { what, count: groups, of_step };
        }
        let all = replayed.iter().filter(|&&step| counted(step)).count();
        let count = all.min(STRETCHES);
        let mut before = 0;
        let stretch = |&step: &usize| {
            counted(step).then(|| {
                before += 1;
                (before - 1) * count / all
            })
        };
        let of_step = replayed.iter().map(stretch).collect();
        Self { what: "stretches of steps", count, of_step }
    }

    /// Sums of the steps' times, in order, by unit.
    pub fn sums(&self, times: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut sums = vec![0u64; self.count];
        for (unit, ps) in self.of_step.iter().zip(times) {
            if let Some(unit) = unit {
                sums[*unit] = sums[*unit].saturating_add(ps);
            }
        }
        sums
    }

    /// Tokens that count, by unit.
    pub fn tokens(&self, trace: &Trace, steps: &Steps, filter: PhaseFilter) -> Vec<u64> {
        let phase = |step: usize| trace.phase(steps.row(steps.places(step).start));
        let replayed = (0..steps.len()).filter(|&step| filter.wants(phase(step)));
        self.sums(replayed.map(|step| steps.places(step).len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use hotset_sim::Composition;

    use super::*;

    fn units(trace: &Trace, users: u32) -> (Units, Vec<u64>) {
        let how = Composition { concurrency: users, ..Composition::default() };
        let steps = Steps::compose(trace, &how).unwrap();
        let units = Units::of(trace, &steps, PhaseFilter::All, Phase::Decode);
        let tokens = units.tokens(trace, &steps, PhaseFilter::All);
        (units, tokens)
    }

    #[test]
    fn sequences_are_units_where_each_has_steps_of_its_own() {
        // 48 sequences of 448 tokens, 12,288 of them decoded: 256 each.
        let trace = hotset_traces::bundled().unwrap();
        let (alone, tokens) = units(&trace, 1);
        assert_eq!((alone.what, alone.count), ("sequences", 48));
        assert_eq!(tokens, vec![256; 48]);
        // Eight at a time share steps: 20 stretches of the decode steps, and no token is lost.
        let (shared, tokens) = units(&trace, 8);
        assert_eq!((shared.what, shared.count), ("stretches of steps", 20));
        assert_eq!(tokens.iter().sum::<u64>(), 12_288);
        assert!(tokens.iter().all(|&tokens| tokens > 0), "{tokens:?}");
    }
}
