//! Experiments laid out: arms against LRU, prices over each link, verdicts.

mod ablation;
mod against;
pub(crate) mod cells;

use hotset_experiments::{
    ArmLink, ArmRow, Block, BreakEven, LeftOut, PredictorRow, PrefetchReport, ProtocolSummary,
    Role, SemanticReport, Verdict,
};

pub use self::ablation::ablation;
pub(crate) use self::cells::wrap;
use self::cells::{ends, ends_of_ratio, estimate, name};
use crate::compare::headline;
use crate::{Cell, Columns, Field, Output, RenderError, Sheet, one_line, page};

/// The experiment `semantic` in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn semantic(report: &SemanticReport) -> Result<Output, RenderError> {
    let mut sheets = Vec::new();
    for block in &report.blocks {
        sheets.extend(of_block(block));
    }
    if let Some(first) = sheets.first_mut() {
        let head = headline(&report.trace);
        first.title = format!("{head}\n{}\n\n{}", settings(&report.settings), first.title);
    }
    sheets.extend(verdicts(&report.verdicts));
    sheets.extend(left_out(&report.left_out));
    let mut output = Output::new(report, sheets)?;
    output.flat = Some(flat(&report.blocks));
    output.page = Some(page::experiment(&report.trace.name, &report.blocks));
    output.warnings = report.warnings.clone();
    Ok(output)
}

/// The experiment `prefetch` in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn prefetch(report: &PrefetchReport) -> Result<Output, RenderError> {
    let mut sheets = vec![predictors(&report.predictors)];
    let head = headline(&report.trace);
    sheets[0].title = format!("{head}\n{}\n\n{}", settings(&report.settings), sheets[0].title);
    sheets.extend(of_block(&report.block));
    sheets.push(break_even(&report.break_even));
    sheets.extend(verdicts(&report.verdicts));
    sheets.extend(left_out(&report.left_out));
    let mut output = Output::new(report, sheets)?;
    let blocks = std::slice::from_ref(&report.block);
    output.flat = Some(flat(blocks));
    output.page = Some(page::experiment(&report.trace.name, blocks));
    output.warnings = report.warnings.clone();
    Ok(output)
}

fn settings(settings: &ProtocolSummary) -> String {
    let parts = match settings.parts {
        hotset_experiments::Parts::Folds(folds) => format!("{folds} folds"),
        hotset_experiments::Parts::Train(percent) => format!("train {percent}%"),
    };
    format!(
        "decode · {} scope · {} slots · {parts} · compute {:.3} ms a token\n\
         intervals: 95% of {} draws of the sequences, seed {}",
        settings.scope.name(),
        settings.capacity_slots,
        settings.compute_ms_per_token,
        settings.resamples,
        settings.seed,
    )
}

/// The name, and below it what the arm is there for if it is no candidate.
fn named(row: &ArmRow) -> Cell {
    match (name(&row.arm), role(row.role)) {
        (Cell::Text(name), role) if !role.is_empty() => format!("{name}\n  ({role})").into(),
        (name, _) => name,
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Candidate => "",
        Role::Control => "control",
        Role::Ceiling => "ceiling",
    }
}

const HITS: &[Field<ArmRow>] = &[
    Field::left("arm", "arm", named),
    Field::right("hit\n%", "hit_rate", |row| Cell::percent(Some(row.hit_rate))),
    Field::right("points\non lru", "hit_points", |row| estimate(&row.hit_points, 1.0, 2)),
    Field::right("95%", "hit_points_95", |row| ends(&row.hit_points, 1.0, 2)),
    Field::right("moved\n/token", "moved_per_token", |row| Cell::Number(row.moved_per_token, 1)),
    Field::right("x lru", "moved_ratio", |row| Cell::Number(row.moved_ratio.estimate, 2)),
    Field::right("95%", "moved_ratio_95", |row| ends_of_ratio(&row.moved_ratio)),
];

fn of_block(block: &Block) -> Vec<Sheet> {
    let workload = match block.repetition_asked {
        None => format!("{} sequences as they lie", block.tested_sequences),
        Some(asked) => format!(
            "{} sequences, {:.0}% of them repeats ({:.0}% asked):\n\
             {} of them new windows of documents seen before, {} the same sequences again",
            block.tested_sequences,
            block.repetition * 100.0,
            asked * 100.0,
            block.repeats.same_document,
            block.repeats.same_sequence,
        ),
    };
    let title = format!("hits and experts moved, {workload}");
    let mut sheets = vec![Sheet::of(title, HITS, &block.rows)];
    let links = block.rows.first().map_or(0, |row| row.links.len());
    sheets.extend((0..links).map(|link| of_link(&block.rows, link)));
    sheets.extend(against::sheets(block));
    sheets
}

/// An arm's prices over one link.
struct OverLink<'a> {
    row: &'a ArmRow,
    link: &'a ArmLink,
}

impl<'a> OverLink<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("arm", "arm", |over| name(&over.row.arm)),
        Field::right("serial", "serial_ms_per_token", |over| {
            Cell::Number(over.link.serial_ms_per_token, 3)
        }),
        Field::right("time-\nline", "timeline_ms_per_token", |over| {
            Cell::Number(over.link.timeline_ms_per_token, 3)
        }),
    ];

    /// Where any arm prefetches.
    const HIDDEN: &'a [Field<Self>] =
        &[Field::right("hidden", "prefetch_hidden_ms_per_token", |over| {
            Cell::Number(over.link.prefetch_hidden_ms_per_token, 3)
        })];

    const ON_LRU: &'a [Field<Self>] = &[
        Field::right("perfect", "perfect_ms_per_token", |over| {
            Cell::Number(over.link.perfect_ms_per_token, 3)
        }),
        Field::right("% on\nlru", "timeline_change", |over| {
            estimate(&over.link.timeline_change, 100.0, 1)
        }),
        Field::right("95%", "timeline_change_95", |over| {
            ends(&over.link.timeline_change, 100.0, 1)
        }),
        Field::right("saved\n/point", "point_saved_ms", |over| {
            Cell::number(over.link.point_saved_ms, 4)
        }),
        Field::right("late\n%", "late_share", |over| {
            Cell::number(over.link.late_share.map(|share| share * 100.0), 1)
        }),
    ];
}

fn of_link(rows: &[ArmRow], index: usize) -> Sheet {
    let first = &rows[0].links[index];
    let title = format!("ms a token over {}", one_line(&first.link));
    let over = rows.iter().map(|row| OverLink { row, link: &row.links[index] });
    let mut columns = Columns::of(OverLink::COLUMNS);
    if rows.iter().any(|row| row.prefetches > 0) {
        columns = columns.and(OverLink::HIDDEN);
    }
    let mut sheet = columns.and(OverLink::ON_LRU).sheet(title, over);
    sheet.note = format!(
        "a point of hit rate is worth {:.4} ms a token if nothing else moves",
        first.point_worth_ms
    );
    sheet
}

const PREDICTORS: &[Field<PredictorRow>] = &[
    Field::left("arm", "arm", |row| name(&row.arm)),
    Field::right("layers\nahead", "distance", |row| Cell::Count(row.quality.distance as u64)),
    Field::right("guesses\n/layer", "guesses_per_event", |row| {
        Cell::Number(row.quality.guesses as f64 / row.quality.events.max(1) as f64, 2)
    }),
    Field::right("precision\n%", "precision", |row| Cell::percent(row.precision)),
    Field::right("recall\n%", "recall", |row| Cell::percent(row.recall)),
];

fn predictors(rows: &[PredictorRow]) -> Sheet {
    Sheet::of("what the predictors know, apart from any cache", PREDICTORS, rows)
}

const BREAK_EVEN: &[Field<BreakEven>] = &[
    Field::left("link", "link", |row| one_line(&row.link).into()),
    Field::right("guesses\n/layer", "width", |row| Cell::Count(row.width.into())),
    Field::right("copies\n/layer", "copies_per_layer", |row| Cell::Number(row.copies_per_layer, 2)),
    Field::right("copy\nus", "copy_us", |row| Cell::Number(row.copy_us, 1)),
    Field::right("compute\nus/layer", "compute_us", |row| Cell::Number(row.compute_us, 1)),
    Field::right("misses a\nwasted one", "pollution", |row| Cell::Number(row.pollution, 3)),
    Field::right("computed\n%", "computed", |row| Cell::percent(Some(row.computed))),
    Field::right("replayed\n%", "replayed", |row| match (row.replayed, row.always) {
        (Some(share), _) => Cell::percent(Some(share)),
        (None, Some(true)) => "any".into(),
        _ => "none".into(),
    }),
];

fn break_even(rows: &[BreakEven]) -> Sheet {
    let title = "share of prefetched copies that must be used for prefetch to pay";
    let mut sheet = Sheet::of(title, BREAK_EVEN, rows);
    sheet.note = "computed from copy, compute and what a wasted copy pushes out; replayed by an\n\
                  oracle whose precision is halved in on the point where lru is as fast (any: one\n\
                  that is right in 1% of its guesses pays; none: not even a perfect one does)"
        .to_owned();
    sheet
}

const VERDICTS: &[Field<Verdict>] = &[
    Field::left("", "question", |verdict| {
        let because = wrap(&verdict.because, 62).join("\n  ");
        format!("{}\n  {because}", verdict.question).into()
    }),
    Field::left("", "answer", |verdict| verdict.answer.into()),
];

fn verdicts(verdicts: &[Verdict]) -> Option<Sheet> {
    let title = "verdicts, from the intervals alone; an answer holds at 5% after Holm's\n\
                 correction for all that are asked alike (p is corrected)";
    (!verdicts.is_empty()).then(|| Sheet::of(title, VERDICTS, verdicts))
}

const LEFT_OUT: &[Field<LeftOut>] = &[
    Field::left("arm", "arm", |one| name(&one.arm)),
    Field::left("what is missing", "reason", |one| wrap(&one.reason, 48).join("\n").into()),
];

fn left_out(left_out: &[LeftOut]) -> Option<Sheet> {
    let title = "left out: this trace cannot run";
    (!left_out.is_empty()).then(|| Sheet::of(title, LEFT_OUT, left_out))
}

/// An arm over one link in one workload.
struct FlatRow<'a> {
    block: &'a Block,
    row: &'a ArmRow,
    link: &'a ArmLink,
}

/// A number for programs.
fn number(value: f64) -> Cell {
    Cell::Number(value, 6)
}

impl<'a> FlatRow<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::flat("repetition", |flat| number(flat.block.repetition)),
        Field::flat("arm", |flat| flat.row.arm.as_str().into()),
        Field::flat("role", |flat| role(flat.row.role).into()),
        Field::flat("link", |flat| flat.link.link.as_str().into()),
        Field::flat("tokens", |flat| Cell::Count(flat.row.tokens)),
        Field::flat("accesses", |flat| Cell::Count(flat.row.accesses)),
        Field::flat("hit_rate", |flat| number(flat.row.hit_rate)),
        Field::flat("hit_points", |flat| number(flat.row.hit_points.estimate)),
        Field::flat("hit_points_low", |flat| number(flat.row.hit_points.low)),
        Field::flat("hit_points_high", |flat| number(flat.row.hit_points.high)),
        Field::flat("misses_change", |flat| number(flat.row.misses_change.estimate)),
        Field::flat("misses_change_low", |flat| number(flat.row.misses_change.low)),
        Field::flat("misses_change_high", |flat| number(flat.row.misses_change.high)),
        Field::flat("demand_fetches", |flat| Cell::Count(flat.row.demand_fetches)),
        Field::flat("prefetches", |flat| Cell::Count(flat.row.prefetches)),
        Field::flat("prefetches_used", |flat| Cell::Count(flat.row.prefetches_used)),
        Field::flat("prefetches_wasted", |flat| Cell::Count(flat.row.prefetches_wasted)),
        Field::flat("prefetches_unused", |flat| Cell::Count(flat.row.prefetches_unused)),
        Field::flat("moved_per_token", |flat| number(flat.row.moved_per_token)),
        Field::flat("moved_ratio", |flat| number(flat.row.moved_ratio.estimate)),
        Field::flat("moved_ratio_low", |flat| number(flat.row.moved_ratio.low)),
        Field::flat("moved_ratio_high", |flat| number(flat.row.moved_ratio.high)),
        Field::flat("serial_ms_per_token", |flat| number(flat.link.serial_ms_per_token)),
        Field::flat("timeline_ms_per_token", |flat| number(flat.link.timeline_ms_per_token)),
        Field::flat("prefetch_hidden_ms_per_token", |flat| {
            number(flat.link.prefetch_hidden_ms_per_token)
        }),
        Field::flat("perfect_ms_per_token", |flat| number(flat.link.perfect_ms_per_token)),
        Field::flat("timeline_change", |flat| number(flat.link.timeline_change.estimate)),
        Field::flat("timeline_change_low", |flat| number(flat.link.timeline_change.low)),
        Field::flat("timeline_change_high", |flat| number(flat.link.timeline_change.high)),
        Field::flat("point_worth_ms", |flat| number(flat.link.point_worth_ms)),
        Field::flat("point_saved_ms", |flat| Cell::number(flat.link.point_saved_ms, 6)),
        Field::flat("late_share", |flat| Cell::number(flat.link.late_share, 6)),
    ];
}

/// One row an arm, link and workload, with all digits.
fn flat(blocks: &[Block]) -> Sheet {
    let arms = blocks.iter().flat_map(|block| block.rows.iter().map(move |row| (block, row)));
    let rows = arms
        .flat_map(|(block, row)| row.links.iter().map(move |link| FlatRow { block, row, link }));
    Sheet::of("", FlatRow::COLUMNS, rows)
}
