//! The page of an experiment: its intervals as a forest.

use hotset_experiments::{ArmLink, ArmRow, Block, Interval, Role};

use super::{Data, Figure, Page, Shape};
use crate::{Cell, Columns, Field, one_line};

/// An arm over one link in one workload.
struct Over<'a> {
    block: &'a Block,
    row: &'a ArmRow,
    link: &'a ArmLink,
}

fn percent(of: f64) -> Cell {
    Cell::number(of.is_finite().then_some(of * 100.0), 2)
}

fn points(of: f64) -> Cell {
    Cell::number(of.is_finite().then_some(of), 2)
}

impl<'a> Over<'a> {
    fn change(&self) -> &Interval {
        &self.link.timeline_change
    }

    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("arm", "arm", |over| one_line(&over.row.arm).into()),
        Field::left("link", "link", |over| one_line(&over.link.link).into()),
        Field::left("repeats", "repetition", |over| {
            format!("{:.0}%", over.block.repetition * 100.0).into()
        }),
        Field::right("hit %", "hit_percent", |over| percent(over.row.hit_rate)),
        Field::right("points on lru", "hit_points", |over| points(over.row.hit_points.estimate)),
        Field::right("low", "hit_points_low", |over| points(over.row.hit_points.low)),
        Field::right("high", "hit_points_high", |over| points(over.row.hit_points.high)),
        Field::right("moved/token", "moved_per_token", |over| {
            Cell::Number(over.row.moved_per_token, 1)
        }),
        Field::right("ms/token", "timeline_ms_per_token", |over| {
            Cell::Number(over.link.timeline_ms_per_token, 3)
        }),
        Field::right("ms % on lru", "change_percent", |over| percent(over.change().estimate)),
        Field::right("low", "change_percent_low", |over| percent(over.change().low)),
        Field::right("high", "change_percent_high", |over| percent(over.change().high)),
    ];
}

/// The fastest arm of those that are there to be chosen, over the first link, and what its interval says.
fn verdict(block: &Block) -> String {
    let chosen = block.rows.iter().skip(1).filter(|row| row.role == Role::Candidate);
    let changes = chosen.filter_map(|row| Some((row, row.links.first()?)));
    let changes = changes.filter(|(_, link)| link.timeline_change.estimate.is_finite());
    let least = changes.min_by(|(_, one), (_, other)| {
        one.timeline_change.estimate.total_cmp(&other.timeline_change.estimate)
    });
    let Some((row, link)) = least else { return "No arm stands against LRU here.".to_owned() };
    let change = &link.timeline_change;
    let sure = match (change.low, change.high) {
        (_, high) if high < 0.0 => "faster than LRU beyond the chance of these sequences",
        (low, _) if low > 0.0 => "slower than LRU beyond the chance of these sequences",
        _ => "which does not tell it from LRU",
    };
    format!(
        "Of the candidates {} is fastest over {}: {:.3} ms a token, {:+.1}% on LRU, with {:+.2} points of hit \
         rate. The 95% interval of that is {:+.1}% to {:+.1}%: {sure}; one interval of {}, each for itself \
         (the verdicts below are corrected for all that is asked).",
        one_line(&row.arm),
        one_line(&link.link),
        link.timeline_ms_per_token,
        change.estimate * 100.0,
        row.hit_points.estimate,
        change.low * 100.0,
        change.high * 100.0,
        block.rows.len() - 1,
    )
}

/// The page of these blocks of the trace of this name.
pub(crate) fn experiment(trace: &str, blocks: &[Block]) -> Page {
    let arms = blocks.iter().flat_map(|block| block.rows.iter().map(move |row| (block, row)));
    let over =
        arms.flat_map(|(block, row)| row.links.iter().map(move |link| Over { block, row, link }));
    let sheet = Columns::of(Over::COLUMNS).sheet("every arm over every link", over);
    let forest =
        |name, title: &str, reading: &str, [estimate, low, high]: [&'static str; 3]| Figure {
            name,
            title: title.to_owned(),
            reading: reading.to_owned(),
            data: "arms",
            switches: vec![],
            shape: Shape::Intervals { label: "arm", estimate, low, high },
        };
    Page {
        title: format!("An experiment on {}", one_line(trace)),
        verdict: blocks.first().map_or(String::new(), verdict),
        data: vec![Data { name: "arms", sheet, switches: vec!["link", "repetition"], shown: true }],
        figures: vec![
            forest(
                "change",
                "Time a token against LRU, %",
                "95% intervals over sequences. Left of 0 is faster; an interval that crosses 0 does not say.",
                ["change_percent", "change_percent_low", "change_percent_high"],
            ),
            forest(
                "points",
                "Hit rate against LRU, points",
                "95% intervals over sequences. Right of 0 hits more; it need not be faster.",
                ["hit_points", "hit_points_low", "hit_points_high"],
            ),
        ],
        sheets: None,
    }
}
