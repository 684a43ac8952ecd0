//! Verdicts in words, each from a test: what holds in 95% of the resamples is said to hold, corrected
//! for how many arms were asked alike; what does not is undecided.

use std::fmt::Write as _;

use serde::Serialize;

use crate::compared::Tested;
use crate::workload_run::WorkloadRun;
use crate::{ArmRow, Block, Comparison, Interval, Role};

mod repetition;

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

impl Verdict {
    /// Whether a difference of hit rates, tested in a family, is more than nothing.
    fn of_points(question: String, tested: &Tested) -> Self {
        Self { question, answer: tested.answer(), because: points(tested) }
    }
}

/// `+1.23 points [+0.50, +2.00], p 0.013`, p corrected.
fn points(tested: &Tested) -> String {
    let interval = &tested.interval;
    format!("{:+.2} points {}{}", interval.estimate, ends(interval, 1.0, 2), chance(tested))
}

/// The corrected p, where there is one.
fn chance(tested: &Tested) -> String {
    tested.p_holm.map_or(String::new(), |p| format!(", p {p:.3}"))
}

/// `[low, high]` in so many decimals; nothing where there is no interval.
pub(crate) fn ends(interval: &Interval, scale: f64, decimals: usize) -> String {
    if interval.low.is_nan() {
        return "[no interval]".to_owned();
    }
    format!("[{:+.decimals$}, {:+.decimals$}]", interval.low * scale, interval.high * scale)
}

fn percent(tested: &Tested) -> String {
    let interval = &tested.interval;
    format!("{:+.1}% {}{}", interval.estimate * 100.0, ends(interval, 100.0, 1), chance(tested))
}

/// Whether an engine could run the arm, and it is not the baseline.
fn is_candidate(row: &ArmRow) -> bool {
    row.role == Role::Candidate && row.arm != BASELINE
}

/// The arm that each is compared with.
const BASELINE: &str = "lru";

/// An arm's row, and its comparison with LRU.
type OnLru<'a> = (&'a ArmRow, &'a Comparison);

/// The candidates of a block against LRU.
fn candidates(block: &Block) -> Vec<OnLru<'_>> {
    let compared = |row: &ArmRow| block.against(BASELINE).find(|compared| compared.arm == row.arm);
    let rows = block.rows.iter().filter(|row| is_candidate(row));
    rows.filter_map(|row| Some((row, compared(row)?))).collect()
}

/// Verdicts of the experiment `semantic`.
pub(crate) fn of_semantic(runs: &[WorkloadRun]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let Some(first) = runs.first() else { return verdicts };
    for (row, compared) in candidates(&first.block) {
        let because = format!(
            "{}, moving {:.2} times its experts {}",
            points(&compared.hit_points),
            row.moved_ratio.estimate,
            ends(&row.moved_ratio, 1.0, 2)
        );
        let question = format!("does {} hit more often than lru?", row.arm);
        verdicts.push(Verdict { question, answer: compared.hit_points.answer(), because });
    }
    verdicts.extend(against_references(&first.block));
    verdicts.extend(against_controls(first));
    verdicts.extend(over_links(&first.block));
    verdicts.extend(repetition::growth(runs));
    verdicts
}

/// Verdicts of the experiment `ablation`: is the ablated policy better than LRU, and is it better
/// than each of the others, in hits and over each link?
pub(crate) fn of_ablation(block: &Block, ablated: &str) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let on_lru = block.against(BASELINE).find(|compared| compared.arm == ablated);
    verdicts.extend(on_lru.map(|compared| {
        let question = format!("does {ablated} hit more often than {BASELINE}?");
        Verdict::of_points(question, &compared.hit_points)
    }));
    for compared in block.against(ablated).filter(|compared| compared.arm != BASELINE) {
        let Some(row) = block.rows.iter().find(|row| row.arm == compared.arm) else { continue };
        if row.role != Role::Candidate {
            continue;
        }
        let answer = match compared.hit_points.answer() {
            "yes" => "no",
            "no" => "yes",
            open => open,
        };
        let because = format!("the other's {}", points(&compared.hit_points));
        let question = format!("does {ablated} hit more often than {}?", compared.arm);
        verdicts.push(Verdict { question, answer, because });
    }
    verdicts.extend(over_links(block));
    verdicts
}

/// Candidates against what else was asked for, in hits and in time.
pub(crate) fn against_references(block: &Block) -> Vec<Verdict> {
    let is_candidate = |arm: &str| block.rows.iter().any(|row| row.arm == arm && is_candidate(row));
    let others = block.comparisons.iter().filter(|compared| compared.against != BASELINE);
    let mut verdicts = Vec::new();
    for compared in others.filter(|compared| is_candidate(&compared.arm)) {
        let Comparison { arm, against, hit_points, links } = compared;
        let question = format!("does {arm} hit more often than {against}?");
        verdicts.push(Verdict::of_points(question, hit_points));
        verdicts.extend(links.iter().map(|over| Verdict {
            question: format!("is {arm} slower than {against} over {}?", over.link),
            answer: over.timeline_change.answer(),
            because: format!("{} ms a token", percent(&over.timeline_change)),
        }));
    }
    verdicts
}

/// Is it the meaning? A candidate guided by likeness against guides that know nothing of it.
fn against_controls(run: &WorkloadRun) -> Vec<Verdict> {
    let rows = &run.block.rows;
    let Some(guided) = guided(rows) else { return Vec::new() };
    let controls = controls(rows);
    let tests = controls.iter().map(|&control| {
        let figures = run.figures(guided, control);
        run.draws.test(|drawn| figures.hit_points(drawn))
    });
    let verdict = |(tested, &control): (Tested, &usize)| {
        let (arm, control) = (&rows[guided].arm, &rows[control].arm);
        Verdict::of_points(format!("does {arm} hit more often than {control}?"), &tested)
    };
    Tested::family(tests).into_iter().zip(&controls).map(verdict).collect()
}

/// Whether a cache's eviction alone goes by a conversation's profile.
fn is_guided(row: &ArmRow) -> bool {
    row.arm.starts_with("semantic") && !row.arm.contains('/')
}

/// The first candidate whose eviction goes by what is alike.
fn guided(rows: &[ArmRow]) -> Option<usize> {
    rows.iter().position(|row| is_guided(row) && row.role == Role::Candidate)
}

/// Guides that know nothing of what is alike.
fn controls(rows: &[ArmRow]) -> Vec<usize> {
    let is_control = |row: &ArmRow| {
        is_guided(row) && (row.role == Role::Control || row.arm.contains("from=prompt"))
    };
    (0..rows.len()).filter(|&index| is_control(&rows[index])).collect()
}

/// Over a link: yes where an arm that prefetches is faster than LRU, corrected for all arms.
pub(crate) fn is_faster(block: &Block, arm: &str, link: usize) -> &'static str {
    let compared = block.against(BASELINE).find(|compared| compared.arm == arm);
    match compared.map(|compared| compared.links[link].timeline_change.answer()) {
        Some("yes") => "no",
        Some("no") => "yes",
        _ => "undecided",
    }
}

/// Over each link: which arms that hit more often take longer, and how far apart arms lie.
pub(crate) fn over_links(block: &Block) -> Vec<Verdict> {
    let Some(lru) = block.rows.first() else { return Vec::new() };
    let candidates = candidates(block);
    let mut verdicts = Vec::new();
    for (index, link) in lru.links.iter().enumerate() {
        let more_hits = candidates.iter().filter(|(_, compared)| compared.hit_points.is_more());
        let slower = |on_lru: &&OnLru<'_>| on_lru.1.links[index].timeline_change.is_more();
        let misled: Vec<&OnLru<'_>> = more_hits.clone().filter(slower).collect();
        let mut because = String::new();
        for (row, compared) in &misled {
            let _ = write!(
                because,
                "{} {} and {} ms a token; ",
                row.arm,
                points(&compared.hit_points),
                percent(&compared.links[index].timeline_change)
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
        let changes = candidates.iter().map(|(row, _)| row.links[index].timeline_change.estimate);
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
