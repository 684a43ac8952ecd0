//! Verdicts in words, each from an interval: what holds in 95% of the resamples is said to hold,
//! what does not is undecided.

use std::fmt::Write as _;

use serde::Serialize;

use crate::report::Figures;
use crate::workload_run::WorkloadRun;
use crate::{ArmRow, Interval, Role};

/// A question and what the intervals say to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What was asked.
    pub question: String,
    /// yes, no or undecided.
    pub answer: &'static str,
    /// The figures that say so.
    pub because: String,
}

pub(crate) fn answer(interval: &Interval) -> &'static str {
    if interval.above(0.0) {
        "yes"
    } else if interval.below(0.0) {
        "no"
    } else {
        "undecided"
    }
}

fn points(interval: &Interval) -> String {
    format!("{:+.2} points {}", interval.estimate, ends(interval, 1.0, 2))
}

/// `[low, high]` in so many decimals; nothing where there is no interval.
pub(crate) fn ends(interval: &Interval, scale: f64, decimals: usize) -> String {
    if interval.low.is_nan() {
        return "[no interval]".to_owned();
    }
    format!("[{:+.decimals$}, {:+.decimals$}]", interval.low * scale, interval.high * scale)
}

fn percent(interval: &Interval) -> String {
    format!("{:+.1}% {}", interval.estimate * 100.0, ends(interval, 100.0, 1))
}

/// Whether an engine could run the arm, and it is not the baseline.
fn is_candidate(row: &ArmRow) -> bool {
    row.role == Role::Candidate && row.arm != "lru"
}

/// Verdicts of the experiment `semantic`.
pub(crate) fn of_semantic(runs: &[WorkloadRun]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let Some(first) = runs.first() else { return verdicts };
    let rows = &first.block.rows;
    for row in rows.iter().filter(|row| is_candidate(row)) {
        verdicts.push(Verdict {
            question: format!("does {} hit more often than lru?", row.arm),
            answer: answer(&row.hit_points),
            because: format!(
                "{}, moving {:.2} times its experts {}",
                points(&row.hit_points),
                row.moved_ratio.estimate,
                ends(&row.moved_ratio, 1.0, 2)
            ),
        });
    }
    verdicts.extend(against_controls(first));
    verdicts.extend(over_links(rows));
    verdicts.extend(growth(runs));
    verdicts
}

/// Is it the meaning? A candidate guided by likeness against guides that know nothing of it.
fn against_controls(run: &WorkloadRun) -> Vec<Verdict> {
    let rows = &run.block.rows;
    let plain = |row: &ArmRow| row.arm.starts_with("semantic") && !row.arm.contains('/');
    let guided = rows.iter().position(|row| plain(row) && row.role == Role::Candidate);
    let Some(guided) = guided else { return Vec::new() };
    let controls = rows.iter().enumerate().filter(|(_, row)| {
        plain(row) && (row.role == Role::Control || row.arm.contains("from=prompt"))
    });
    controls
        .map(|(index, control)| {
            let figures = Figures {
                arm: &run.outcomes[guided],
                lru: &run.outcomes[index],
                units: &run.units,
            };
            let difference = run.draws.interval(|drawn| figures.hit_points(drawn));
            Verdict {
                question: format!("does {} hit more often than {}?", rows[guided].arm, control.arm),
                answer: answer(&difference),
                because: points(&difference),
            }
        })
        .collect()
}

/// Over each link: which arms that hit more often take longer, and how far apart arms lie.
pub(crate) fn over_links(rows: &[ArmRow]) -> Vec<Verdict> {
    let Some(lru) = rows.first() else { return Vec::new() };
    let candidates: Vec<&ArmRow> = rows.iter().filter(|row| is_candidate(row)).collect();
    let mut verdicts = Vec::new();
    for (index, link) in lru.links.iter().enumerate() {
        let more_hits = candidates.iter().filter(|row| row.hit_points.above(0.0));
        let slower = |row: &&&ArmRow| row.links[index].timeline_change.above(0.0);
        let misled: Vec<&ArmRow> = more_hits.clone().filter(slower).copied().collect();
        let mut because = String::new();
        for row in &misled {
            let change = &row.links[index].timeline_change;
            let _ = write!(
                because,
                "{} {} and {} ms a token; ",
                row.arm,
                points(&row.hit_points),
                percent(change)
            );
        }
        if misled.is_empty() {
            let _ =
                write!(because, "none of {} arms that hit more often is slower", more_hits.count());
        }
        verdicts.push(Verdict {
            question: format!("does hit rate mislead over {}?", link.link),
            answer: if misled.is_empty() { "no" } else { "yes" },
            because: because.trim_end_matches("; ").to_owned(),
        });
        let changes = candidates.iter().map(|row| row.links[index].timeline_change.estimate);
        let (least, most) = changes.fold((0.0f64, 0.0f64), |(l, m), c| (l.min(c), m.max(c)));
        let of_lru = link.timeline_ms_per_token;
        verdicts.push(Verdict {
            question: format!("how far apart are the arms over {}?", link.link),
            answer: "measured",
            because: format!(
                "{:+.1}% to {:+.1}% of lru's {of_lru:.3} ms a token: a spread of {:.3} ms",
                least * 100.0,
                most * 100.0,
                (most - least) * of_lru
            ),
        });
    }
    verdicts
}

/// Does it pay more as workloads repeat? The gain at the largest share against the smallest.
fn growth(runs: &[WorkloadRun]) -> Vec<Verdict> {
    let mut by_share: Vec<&WorkloadRun> = runs.iter().collect();
    by_share.sort_by(|a, b| a.block.repetition.total_cmp(&b.block.repetition));
    let (Some(least), Some(most)) = (by_share.first(), by_share.last()) else { return Vec::new() };
    if runs.len() < 2 {
        return Vec::new();
    }
    let rows = least.block.rows.iter().enumerate();
    rows.filter(|(_, row)| is_candidate(row))
        .map(|(index, row)| {
            let figures = |run: &'_ WorkloadRun, drawn: &[u32]| {
                let (arm, lru) = (&run.outcomes[index], &run.outcomes[0]);
                Figures { arm, lru, units: &run.units }.hit_points(drawn)
            };
            let grown = most.draws.difference(
                |drawn| figures(most, drawn),
                &least.draws,
                |drawn| figures(least, drawn),
            );
            Verdict {
                question: format!("does {} gain more on lru as the workload repeats?", row.arm),
                answer: answer(&grown),
                because: format!(
                    "{} from {:.0}% to {:.0}% repeats",
                    points(&grown),
                    least.block.repetition * 100.0,
                    most.block.repetition * 100.0
                ),
            }
        })
        .collect()
}
