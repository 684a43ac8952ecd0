//! Does it pay more as workloads repeat, and is it what was seen word for word that pays?
//!
//! A repeat is another part of a document that was there before, or the very same tokens and routes
//! again: a cache that gains from the second alone has remembered, not understood. And what any guide
//! gains from repetition is no merit of the meaning: the lead on each control is tested as well.

use hotset_traces::Repeat;

use super::{Verdict, controls, guided, is_candidate, points};
use crate::Test;
use crate::compared::Tested;
use crate::figures::Figures;
use crate::run::Runs;
use crate::workload_run::WorkloadRun;
use crate::{ArmRow, Resamples};

/// Least and most repetitive of the workloads that ran.
struct Pair<'a> {
    least: &'a WorkloadRun,
    most: &'a WorkloadRun,
}

/// The lead of an arm on another, by place.
#[derive(Clone, Copy)]
struct Lead {
    arm: usize,
    on: usize,
}

/// The verdicts on repetition: of each candidate on LRU, in all runs and in each kind of repeat, and of
/// the candidate that goes by meaning on each control.
pub(super) fn growth(runs: &[WorkloadRun]) -> Vec<Verdict> {
    let mut by_share: Vec<&WorkloadRun> = runs.iter().collect();
    by_share.sort_by(|a, b| a.block.repetition.total_cmp(&b.block.repetition));
    let (Some(&least), Some(&most)) = (by_share.first(), by_share.last()) else {
        return Vec::new();
    };
    if runs.len() < 2 {
        return Vec::new();
    }
    let pair = Pair { least, most };
    let rows = &least.block.rows;
    let candidates = (0..rows.len()).filter(|&arm| is_candidate(&rows[arm]));
    let on_lru: Vec<Lead> = candidates.map(|arm| Lead { arm, on: 0 }).collect();
    let mut verdicts = pair.verdicts(&on_lru, Runs::All, |arm, _| {
        format!("does {arm} gain more on lru as the workload repeats?")
    });
    verdicts.extend(pair.verdicts(&on_lru, Runs::Only(Repeat::SameDocument), |arm, _| {
        format!("does {arm} gain more on lru in new windows of documents seen before?")
    }));
    verdicts.extend(pair.verdicts(&on_lru, Runs::Only(Repeat::SameSequence), |arm, _| {
        format!("does {arm} gain more on lru in verbatim repeats?")
    }));
    if let Some(arm) = guided(rows) {
        let on_controls: Vec<Lead> =
            controls(rows).into_iter().map(|on| Lead { arm, on }).collect();
        verdicts.extend(pair.verdicts(&on_controls, Runs::All, |arm, control| {
            format!("does {arm} gain more on {control} as the workload repeats?")
        }));
    }
    verdicts
}

impl Pair<'_> {
    /// One verdict a lead; together they are a family. None where there are no such runs.
    fn verdicts(
        &self,
        leads: &[Lead],
        runs: Runs,
        question: impl Fn(&str, &str) -> String,
    ) -> Vec<Verdict> {
        let repeats = self.most.block.repeats;
        let shown = match runs {
            Runs::All => repeats.same_document + repeats.same_sequence,
            Runs::Only(Repeat::New) => repeats.new,
            Runs::Only(Repeat::SameDocument) => repeats.same_document,
            Runs::Only(Repeat::SameSequence) => repeats.same_sequence,
        };
        if shown == 0 && runs != Runs::All {
            return Vec::new();
        }
        let name = |index: usize| -> &str {
            let row: &ArmRow = &self.least.block.rows[index];
            &row.arm
        };
        let verdict = |(tested, lead): (Tested, &Lead)| Verdict {
            question: question(name(lead.arm), name(lead.on)),
            answer: tested.answer(),
            because: format!("{} {}", points(&tested), self.between(runs)),
        };
        let tests = leads.iter().map(|&lead| self.grown(lead, runs));
        Tested::family(tests).into_iter().zip(leads).map(verdict).collect()
    }

    /// The lead in the runs that count of the most repetitive workload, less that in the least
    /// repetitive one.
    fn grown(&self, lead: Lead, runs: Runs) -> Test {
        let least = self.least.figures(lead.arm, lead.on);
        let most = Figures { runs, ..self.most.figures(lead.arm, lead.on) };
        if most.sequences() < Resamples::FEWEST {
            let alone = |figures: &Figures<'_>| figures.hit_points(&vec![1; figures.units.len()]);
            return Test::without_draws(alone(&most) - alone(&least));
        }
        self.most.draws.difference(
            |drawn| most.hit_points(drawn),
            &self.least.draws,
            |drawn| least.hit_points(drawn),
        )
    }

    fn between(&self, runs: Runs) -> String {
        let [from, to] =
            [self.least, self.most].map(|run| format!("{:.0}%", run.block.repetition * 100.0));
        let repeats = self.most.block.repeats;
        match runs {
            Runs::All => format!(
                "from {from} to {to} repeats ({} new windows, {} verbatim)",
                repeats.same_document, repeats.same_sequence
            ),
            Runs::Only(_) => format!("against all runs at {from} repeats"),
        }
    }
}
