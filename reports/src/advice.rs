//! Advice laid out: the answer first, then the settings ranked, then what to type.

use hotset_experiments::{Advice, Answer, Ranked, leading};

use crate::compare::headline;
use crate::experiment::wrap;
use crate::{Cell, Column, Columns, Field, Output, RenderError, Sheet, one_line};

/// Columns that what is typed may take.
const TYPED: usize = 74;

/// Advice in every format; a table shows the `most` fastest of each answer.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn advice(advice: &Advice, most: usize) -> Result<Output, RenderError> {
    let mut output = Output::new(advice, sheets(advice, most, TYPED))?;
    // Markdown has room for a command in one line.
    output.wide = Some(sheets(advice, most, usize::MAX));
    output.flat = Some(flat(advice));
    output.warnings = advice.warnings.clone();
    Ok(output)
}

/// The answers' sheets, commands broken at `width`.
fn sheets(advice: &Advice, most: usize, width: usize) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = Vec::new();
    for (answer, told) in advice.answers.iter().zip(&advice.answer) {
        sheets.push(ranked(answer, told, most));
        sheets.push(typed(answer, most, width));
    }
    if let Some(first) = sheets.first_mut() {
        // The answer is the first line; what was asked follows it.
        let (told, rest) = first.title.split_once('\n').unwrap_or((&first.title, ""));
        first.title = format!("{told}\n\n{}\n{rest}\n", headline(&advice.trace));
    }
    if let Some(last) = sheets.last_mut() {
        last.note = note(advice);
    }
    sheets
}

/// A row with its place.
struct Shown<'a> {
    place: usize,
    row: &'a Ranked,
}

impl<'a> Shown<'a> {
    const RANK: &'a [Field<Self>] = &[Field::right("", "rank", Self::rank)];

    /// Plain LRU has none.
    fn rank(&self) -> Cell {
        match self.place {
            0 => Cell::Empty,
            place => Cell::Count(place as u64),
        }
    }

    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("policy", "policy", |shown| one_line(&shown.row.policy).into()),
        Field::left("scope", "scope", |shown| shown.row.scope.name().into()),
        Field::left("misses", "miss", |shown| one_line(&shown.row.miss).into()),
        Field::left("prefetch", "prefetch", |shown| one_line(&shown.row.prefetch).into()),
        Field::right("ms\n/token", "ms_per_token", |shown| {
            Cell::Number(shown.row.ms_per_token.estimate, 3)
        }),
        Field::right("+-", "half_interval_ms", |shown| {
            let time = &shown.row.ms_per_token;
            Cell::number(finite((time.high - time.low) / 2.0), 3)
        }),
        Field::right("to plain\nLRU, %", "change_percent", |shown| match shown.place {
            0 => Cell::Empty,
            _ => format!("{:+.1}", shown.row.change.interval.estimate * 100.0).into(),
        }),
        Field::left("bound by", "bound_by", |shown| {
            let mark = if shown.row.open_loop.is_some() { " *" } else { "" };
            format!("{}{mark}", shown.row.bound_by.name()).into()
        }),
    ];
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Plain LRU, which the others are held against, stands last.
fn shown(answer: &Answer, most: usize) -> Vec<Shown<'_>> {
    let rows = leading(answer, most).iter().zip(1..).map(|(row, place)| Shown { place, row });
    rows.chain([Shown { place: 0, row: &answer.plain }]).collect()
}

fn ranked(answer: &Answer, told: &str, most: usize) -> Sheet {
    let hidden = answer.rows.len().saturating_sub(most);
    let more = match hidden {
        0 => String::new(),
        hidden => format!("{hidden} slower ones are not shown. "),
    };
    let title = format!("{told}\n");
    let columns = Columns::of(Shown::RANK).and(Shown::COLUMNS);
    let mut sheet = columns.sheet(title, shown(answer, most));
    sheet.note = format!(
        "{more}The last row is plain LRU. A cache that knows the future takes {:.3} ms.",
        answer.belady_ms_per_token
    );
    sheet
}

/// What to type for each row shown.
fn typed(answer: &Answer, most: usize, width: usize) -> Sheet {
    let rows = shown(answer, most).into_iter().filter(|shown| !shown.row.command.is_empty());
    let mut columns = Columns::of(Shown::RANK);
    columns.add(Column::left("", "command"), |shown| {
        wrap(&shown.row.command, width).join(" \\\n  ").into()
    });
    columns.sheet("to type", rows.collect::<Vec<_>>())
}

fn note(advice: &Advice) -> String {
    let rows = || advice.answers.iter().flat_map(|answer| &answer.rows);
    let mut note = format!(
        "\nOf {} tokens; settings tried: {}. +-: half of the interval that 95% of {} resamples of {} {} fall \
         into. A setting beats plain LRU if their paired difference holds after Holm's correction for all \
         that were tried.\n\
         Bound by: what takes most of the time; capacity: misses of which Belady's MIN would have four \
         fifths too, so that only more slots help.",
        advice.ranked_by.name(),
        rows().count(),
        advice.resamples.map_or("no".to_owned(), |draws| crate::sheet::thousands(draws as u64)),
        advice.unit_count,
        advice.units,
    );
    if rows().any(|row| row.open_loop.is_some()) {
        note.push_str("\n*: changes what the model computes (open loop); never the answer.");
    }
    note.push_str("\nDefinitions: docs/metrics.md");
    note
}

/// A row of the flat table with the answer that it is of.
struct Flat<'a> {
    answer: &'a Answer,
    shown: Shown<'a>,
}

impl<'a> Flat<'a> {
    const FLAT: &'a [Field<Self>] = &[
        Field::flat("link", |of| of.answer.link.as_str().into()),
        Field::flat("capacity", |of| of.answer.capacity.as_str().into()),
        Field::flat("rank", |of| Cell::Count(of.shown.place as u64)),
        Field::flat("policy", |of| of.shown.row.policy.as_str().into()),
        Field::flat("scope", |of| of.shown.row.scope.name().into()),
        Field::flat("capacity_slots", |of| Cell::Count(of.shown.row.capacity_slots.into())),
        Field::flat("miss", |of| of.shown.row.miss.as_str().into()),
        Field::flat("prefetch", |of| of.shown.row.prefetch.as_str().into()),
        Field::flat("ms_per_token", |of| Cell::Number(of.shown.row.ms_per_token.estimate, 6)),
        Field::flat("low_ms", |of| Cell::number(finite(of.shown.row.ms_per_token.low), 6)),
        Field::flat("high_ms", |of| Cell::number(finite(of.shown.row.ms_per_token.high), 6)),
        Field::flat("change", |of| Cell::Number(of.shown.row.change.interval.estimate, 6)),
        Field::flat("change_low", |of| Cell::number(finite(of.shown.row.change.interval.low), 6)),
        Field::flat("change_high", |of| Cell::number(finite(of.shown.row.change.interval.high), 6)),
        Field::flat("p_holm", |of| Cell::number(of.shown.row.change.p_holm, 6)),
        Field::flat("like_the_best", |of| Cell::Count(u64::from(of.shown.row.like_the_best))),
        Field::flat("bound_by", |of| of.shown.row.bound_by.name().into()),
        Field::flat("hit_rate", |of| Cell::number(of.shown.row.hit_rate, 6)),
        Field::flat("moved_per_token", |of| Cell::Number(of.shown.row.moved_per_token, 4)),
        Field::flat("mib_per_token", |of| Cell::Number(of.shown.row.mib_per_token, 4)),
        Field::flat("belady_ratio", |of| Cell::number(of.shown.row.belady_ratio, 6)),
        Field::flat("label", |of| {
            of.shown.row.open_loop.as_ref().map_or("", |open_loop| open_loop.label).into()
        }),
        Field::flat("weight_lost", |of| {
            let lost = of.shown.row.open_loop.as_ref().and_then(|open_loop| open_loop.weight_lost);
            Cell::number(lost, 6)
        }),
    ];
}

/// Every row in one table, plain LRU at rank 0.
fn flat(advice: &Advice) -> Sheet {
    let mut columns = Columns::of(Flat::FLAT);
    columns.add(Column::left("command", "command"), |of| of.shown.row.command.as_str().into());
    let rows = advice.answers.iter().flat_map(|answer| {
        let all = shown(answer, usize::MAX).into_iter();
        all.map(move |shown| Flat { answer, shown })
    });
    columns.sheet("", rows.collect::<Vec<_>>())
}
