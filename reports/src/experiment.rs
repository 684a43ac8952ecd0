//! Experiments laid out: arms against LRU, prices over each link, verdicts.

use hotset_experiments::{
    ArmRow, Block, BreakEven, Interval, LeftOut, PredictorRow, PrefetchReport, ProtocolSummary,
    Role, SemanticReport, Verdict,
};

use crate::compare::headline;
use crate::{Cell, Column, Output, RenderError, Sheet};

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
    output.flat = Some(flat(std::slice::from_ref(&report.block)));
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

/// An arm's name over several lines where it is long: a table is 80 columns wide.
fn name(arm: &str) -> Cell {
    let mut lines: Vec<String> = Vec::new();
    for part in arm.split_inclusive(['/', ',']) {
        match part.split_once(':') {
            Some((name, parameters)) if part.len() > 16 => {
                lines.push(format!("{name}:"));
                lines.push(format!("  {parameters}"));
            }
            _ if lines.last().is_some_and(|line| line.ends_with(',')) => {
                lines.push(format!("  {part}"));
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines.join("\n").into()
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

/// `+1.23` and the interval around it, in this many decimals.
fn interval(interval: &Interval, scale: f64, decimals: usize) -> [Cell; 2] {
    let of = |value: f64| match value.is_nan() {
        true => "-".to_owned(),
        false => format!("{:+.decimals$}", value * scale),
    };
    [of(interval.estimate).into(), format!("{} {}", of(interval.low), of(interval.high)).into()]
}

fn of_block(block: &Block) -> Vec<Sheet> {
    let workload = match block.repetition_asked {
        None => format!("{} sequences as they lie", block.tested_sequences),
        Some(asked) => format!(
            "{} sequences, {:.0}% of them repeats ({:.0}% asked)",
            block.tested_sequences,
            block.repetition * 100.0,
            asked * 100.0
        ),
    };
    let mut hits = Sheet::new(
        format!("hits and experts moved, {workload}"),
        vec![
            Column::left("arm", "arm"),
            Column::right("hit\n%", "hit_rate"),
            Column::right("points\non lru", "hit_points"),
            Column::right("95%", "hit_points_95"),
            Column::right("moved\n/token", "moved_per_token"),
            Column::right("x lru", "moved_ratio"),
            Column::right("95%", "moved_ratio_95"),
        ],
    );
    for row in &block.rows {
        let [points, points_95] = interval(&row.hit_points, 1.0, 2);
        let moved_95 = match row.moved_ratio.low.is_nan() {
            true => "- -".to_owned(),
            false => format!("{:.2} {:.2}", row.moved_ratio.low, row.moved_ratio.high),
        };
        hits.rows.push(vec![
            named(row),
            Cell::percent(Some(row.hit_rate)),
            points,
            points_95,
            Cell::Number(row.moved_per_token, 1),
            Cell::Number(row.moved_ratio.estimate, 2),
            moved_95.into(),
        ]);
    }
    let mut sheets = vec![hits];
    let links = block.rows.first().map_or(0, |row| row.links.len());
    sheets.extend((0..links).map(|link| of_link(&block.rows, link)));
    sheets
}

fn of_link(rows: &[ArmRow], index: usize) -> Sheet {
    let first = &rows[0].links[index];
    let mut sheet = Sheet::new(
        format!("ms a token over {}", first.link),
        vec![
            Column::left("arm", "arm"),
            Column::right("serial", "serial_ms_per_token"),
            Column::right("time-\nline", "timeline_ms_per_token"),
            Column::right("perfect", "perfect_ms_per_token"),
            Column::right("% on\nlru", "timeline_change"),
            Column::right("95%", "timeline_change_95"),
            Column::right("saved\n/point", "point_saved_ms"),
            Column::right("late\n%", "late_share"),
        ],
    );
    for row in rows {
        let link = &row.links[index];
        let [change, change_95] = interval(&link.timeline_change, 100.0, 1);
        sheet.rows.push(vec![
            name(&row.arm),
            Cell::Number(link.serial_ms_per_token, 3),
            Cell::Number(link.timeline_ms_per_token, 3),
            Cell::Number(link.perfect_ms_per_token, 3),
            change,
            change_95,
            Cell::number(link.point_saved_ms, 4),
            Cell::number(link.late_share.map(|share| share * 100.0), 1),
        ]);
    }
    sheet.note = format!(
        "a point of hit rate is worth {:.4} ms a token if nothing else moves",
        first.point_worth_ms
    );
    sheet
}

fn predictors(rows: &[PredictorRow]) -> Sheet {
    let mut sheet = Sheet::new(
        "what the predictors know, apart from any cache",
        vec![
            Column::left("arm", "arm"),
            Column::right("layers\nahead", "distance"),
            Column::right("guesses\n/layer", "guesses_per_event"),
            Column::right("precision\n%", "precision"),
            Column::right("recall\n%", "recall"),
        ],
    );
    for row in rows {
        let quality = &row.quality;
        let each = quality.guesses as f64 / quality.events.max(1) as f64;
        sheet.rows.push(vec![
            name(&row.arm),
            Cell::Count(quality.distance as u64),
            Cell::Number(each, 2),
            Cell::percent(row.precision),
            Cell::percent(row.recall),
        ]);
    }
    sheet
}

fn break_even(rows: &[BreakEven]) -> Sheet {
    let mut sheet = Sheet::new(
        "share of prefetched copies that must be used for prefetch to pay",
        vec![
            Column::left("link", "link"),
            Column::right("guesses\n/layer", "width"),
            Column::right("copies\n/layer", "copies_per_layer"),
            Column::right("copy\nus", "copy_us"),
            Column::right("compute\nus/layer", "compute_us"),
            Column::right("misses a\nwasted one", "pollution"),
            Column::right("computed\n%", "computed"),
            Column::right("replayed\n%", "replayed"),
        ],
    );
    for row in rows {
        let replayed = match (row.replayed, row.always) {
            (Some(share), _) => Cell::percent(Some(share)),
            (None, Some(true)) => "any".into(),
            _ => "none".into(),
        };
        sheet.rows.push(vec![
            row.link.as_str().into(),
            Cell::Count(row.width.into()),
            Cell::Number(row.copies_per_layer, 2),
            Cell::Number(row.copy_us, 1),
            Cell::Number(row.compute_us, 1),
            Cell::Number(row.pollution, 3),
            Cell::percent(Some(row.computed)),
            replayed,
        ]);
    }
    sheet.note = "computed from copy, compute and what a wasted copy pushes out; replayed by an\n\
                  oracle whose precision is halved in on the point where lru is as fast (any: one\n\
                  that is right in 1% of its guesses pays; none: not even a perfect one does)"
        .to_owned();
    sheet
}

fn verdicts(verdicts: &[Verdict]) -> Option<Sheet> {
    if verdicts.is_empty() {
        return None;
    }
    let columns = vec![Column::left("", "question"), Column::left("", "answer")];
    let mut sheet = Sheet::new("verdicts, from the intervals alone", columns);
    for verdict in verdicts {
        let said = format!("{}\n  {}", verdict.question, wrap(&verdict.because, 62).join("\n  "));
        sheet.rows.push(vec![said.into(), verdict.answer.into()]);
    }
    Some(sheet)
}

fn left_out(left_out: &[LeftOut]) -> Option<Sheet> {
    if left_out.is_empty() {
        return None;
    }
    let columns = vec![Column::left("arm", "arm"), Column::left("what is missing", "reason")];
    let mut sheet = Sheet::new("left out: this trace cannot run", columns);
    for one in left_out {
        sheet.rows.push(vec![name(&one.arm), wrap(&one.reason, 48).join("\n").into()]);
    }
    Some(sheet)
}

/// Lines of at most `width` characters, broken at spaces.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// One row an arm, link and workload, with all digits.
fn flat(blocks: &[Block]) -> Sheet {
    let names = [
        "repetition",
        "arm",
        "role",
        "link",
        "tokens",
        "accesses",
        "hit_rate",
        "hit_points",
        "hit_points_low",
        "hit_points_high",
        "misses_change",
        "misses_change_low",
        "misses_change_high",
        "demand_fetches",
        "prefetches",
        "prefetches_used",
        "prefetches_wasted",
        "moved_per_token",
        "moved_ratio",
        "moved_ratio_low",
        "moved_ratio_high",
        "serial_ms_per_token",
        "timeline_ms_per_token",
        "prefetch_hidden_ms_per_token",
        "perfect_ms_per_token",
        "timeline_change",
        "timeline_change_low",
        "timeline_change_high",
        "point_worth_ms",
        "point_saved_ms",
        "late_share",
    ];
    let mut sheet = Sheet::new("", names.iter().map(|name| Column::right(name, name)).collect());
    for block in blocks {
        for row in &block.rows {
            for link in &row.links {
                let number = |value: f64| Cell::Number(value, 6);
                let three = |i: &Interval| [i.estimate, i.low, i.high].map(number);
                let mut cells = vec![
                    number(block.repetition),
                    row.arm.as_str().into(),
                    role(row.role).into(),
                    link.link.as_str().into(),
                    Cell::Count(row.tokens),
                    Cell::Count(row.accesses),
                    number(row.hit_rate),
                ];
                cells.extend(three(&row.hit_points));
                cells.extend(three(&row.misses_change));
                cells.extend(
                    [
                        row.demand_fetches,
                        row.prefetches,
                        row.prefetches_used,
                        row.prefetches_wasted,
                    ]
                    .map(Cell::Count),
                );
                cells.push(number(row.moved_per_token));
                cells.extend(three(&row.moved_ratio));
                cells.extend(
                    [
                        link.serial_ms_per_token,
                        link.timeline_ms_per_token,
                        link.prefetch_hidden_ms_per_token,
                        link.perfect_ms_per_token,
                    ]
                    .map(number),
                );
                cells.extend(three(&link.timeline_change));
                cells.push(number(link.point_worth_ms));
                cells.push(Cell::number(link.point_saved_ms, 6));
                cells.push(Cell::number(link.late_share, 6));
                sheet.rows.push(cells);
            }
        }
    }
    sheet
}
