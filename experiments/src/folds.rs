//! Sequences to train on and sequences to test on, which are never the same.

use hotset_traces::{Repeat, Trace, Workload, WorkloadOrder};
use serde::Serialize;

use crate::ExperimentError;

/// How a trace is cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parts {
    /// Into this many blocks of sequences, as they lie; each is tested, the others trained on.
    Folds(usize),
    /// Once: the first share, in percent, is trained on and the rest tested.
    Train(f64),
}

/// One part to test on and the others to train on.
#[derive(Debug, Clone)]
pub struct Fold {
    /// What is trained on, in the order of the trace.
    pub training: Trace,
    /// What is tested, in the order of the workload.
    pub tested: Trace,
    /// The sequence of the whole trace that each tested one is.
    pub origins: Vec<usize>,
    /// How the workload came out; `None`: the sequences run as they lie.
    pub order: Option<WorkloadOrder>,
}

impl Fold {
    /// What a tested sequence has to do with those before it; all are new where they run as they lie.
    #[must_use]
    pub fn repeat(&self, run: usize) -> Repeat {
        self.order.as_ref().map_or(Repeat::New, |order| order.repeats[run])
    }
}

/// All folds of an experiment.
#[derive(Debug, Clone)]
pub struct Folds {
    /// One after another; every sequence that is tested is tested in one of them.
    pub folds: Vec<Fold>,
}

impl Folds {
    /// Cuts a trace, and lets the tested part of each fold arrive as `workload` says (`None`: as
    /// it lies). Repeats are of what the fold tests: nothing that is trained on is ever tested.
    ///
    /// # Errors
    /// A number of folds or a share that leaves a part without a sequence; a workload that cannot
    /// be arranged.
    pub fn of(
        trace: &Trace,
        parts: Parts,
        workload: Option<&Workload>,
    ) -> Result<Self, ExperimentError> {
        let sequences = trace.sequences().len();
        if sequences < 2 {
            return Err(ExperimentError::FewSequences { sequences });
        }
        let tested: Vec<std::ops::Range<usize>> = match parts {
            Parts::Folds(folds) if (2..=sequences).contains(&folds) => (0..folds)
                .map(|fold| fold * sequences / folds..(fold + 1) * sequences / folds)
                .collect(),
            Parts::Folds(folds) => return Err(ExperimentError::Folds { folds, sequences }),
            Parts::Train(percent) => {
                let first = (percent * sequences as f64 / 100.0 + 1e-9).floor() as usize;
                if first == 0 || first >= sequences {
                    return Err(hotset_sim::SimError::TrainingPart { percent, sequences }.into());
                }
                std::iter::once(first..sequences).collect()
            }
        };
        let cut = |indices: &[usize]| {
            trace.select_sequences(indices).map_err(|e| ExperimentError::Cut(e.to_string()))
        };
        let fold = |range: std::ops::Range<usize>| {
            let others: Vec<usize> =
                (0..sequences).filter(|index| !range.contains(index)).collect();
            let part = cut(&range.clone().collect::<Vec<_>>())?;
            let told = |error: hotset_traces::Error| ExperimentError::Workload(error.to_string());
            let order = workload.map(|workload| workload.order(&part)).transpose().map_err(told)?;
            let (tested, origins) = match &order {
                None => (part, range.collect()),
                Some(order) => (
                    order.arrange(&part).map_err(told)?,
                    order.indices.iter().map(|index| range.start + index).collect(),
                ),
            };
            Ok(Fold { training: cut(&others)?, tested, origins, order })
        };
        Ok(Self { folds: tested.into_iter().map(fold).collect::<Result<_, ExperimentError>>()? })
    }

    /// Share of the tested sequences that are repeats.
    #[must_use]
    pub fn repetition(&self) -> f64 {
        let repeats = self.tested() - self.count(Repeat::New);
        repeats as f64 / self.tested().max(1) as f64
    }

    /// How many of the tested sequences have this to do with those before them.
    #[must_use]
    pub fn count(&self, kind: Repeat) -> usize {
        let runs =
            |fold: &Fold| (0..fold.origins.len()).filter(|&run| fold.repeat(run) == kind).count();
        self.folds.iter().map(runs).sum()
    }

    /// Tested sequences, repeats included.
    #[must_use]
    pub fn tested(&self) -> usize {
        self.folds.iter().map(|fold| fold.origins.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_trained_on_and_tested() {
        let trace = hotset_traces::bundled().unwrap();
        let workload = Workload { repetition: 0.5, seed: 4, ..Workload::default() };
        for parts in [Parts::Folds(2), Parts::Folds(5), Parts::Folds(48), Parts::Train(75.0)] {
            let folds = Folds::of(&trace, parts, Some(&workload)).unwrap();
            let mut tested = Vec::new();
            for fold in &folds.folds {
                let ids: Vec<u32> = fold.training.sequences().iter().map(|s| s.id).collect();
                for (origin, sequence) in fold.origins.iter().zip(fold.tested.sequences()) {
                    let whole = &trace.sequences()[*origin];
                    assert!(!ids.contains(&whole.id), "{parts:?}: trained on what is tested");
                    assert_eq!(sequence.rows.len(), whole.rows.len());
                    tested.push(*origin);
                }
            }
            assert!(!tested.is_empty());
        }
        assert!(Folds::of(&trace, Parts::Folds(1), None).is_err());
        assert!(Folds::of(&trace, Parts::Folds(49), None).is_err());
        assert!(Folds::of(&trace, Parts::Train(1.0), None).is_err());
    }
}
