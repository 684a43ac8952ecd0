//! Plans with experts on the host laid out: what to type, what binds, how fast, what one more would give, what was assumed.

use hotset_planning::placement::{PlacedReport, Stage, Worth};
use hotset_planning::{Coefficient, MemoryLine};

use crate::experiment::cells::wrap;
use crate::plan::gib;
use crate::{Cell, Field, Output, RenderError, Sheet, one_line};

/// Sources are broken at this width.
const SOURCE: usize = 28;

/// A plan with experts on the host, in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn placed(report: &PlacedReport) -> Result<Output, RenderError> {
    let mut sheets = vec![answer(report)];
    sheets.push(Sheet::of("what one more would give", WORTH, &report.worth));
    for (index, stage) in report.stages.iter().enumerate() {
        sheets.push(memory(
            &format!("memory of accelerator {}", index + 1),
            &stage.lines,
            stage.budget_bytes,
        ));
    }
    sheets.push(memory("memory of the host", &report.host, report.host_budget_bytes));
    sheets.push(Sheet::of("what the speed rests on", RESTS, &report.coefficients));
    if let Some(last) = sheets.last_mut() {
        last.note = report
            .notes
            .iter()
            .map(|note| format!("note: {}", wrap(note, 72).join("\n  ")))
            .collect::<Vec<_>>()
            .join("\n");
    }
    Output::new(report, sheets)
}

fn answer(report: &PlacedReport) -> Sheet {
    let verdict = if report.fits { "fits" } else { "does not fit" };
    let title = format!(
        "{} on {} with {}: {verdict}\n\n  {}\n",
        one_line(&report.model),
        one_line(&report.machine),
        report.engine,
        wrap(&report.settings.join("\n"), 76).join(" \\\n    ")
    );
    let mut facts = vec![(
        "experts on the host",
        Cell::Text(format!("{} of {} layers", report.host_layers, report.expert_layers)),
    )];
    if report.stages.len() > 1 {
        let layers: Vec<String> =
            report.stages.iter().map(|stage: &Stage| stage.layers.to_string()).collect();
        facts.push(("layers on each accelerator", Cell::Text(layers.join(", "))));
    }
    let left = report.tightest.left_bytes;
    let of = gib(left.unsigned_abs());
    let word = if left < 0 { "short" } else { "left" };
    facts.push(("tightest", Cell::Text(format!("{}: {of:.2} GiB {word}", report.tightest.name))));
    if let Some(speed) = &report.speed {
        facts.push((
            "decode, tokens/s",
            Cell::Text(format!(
                "{:.1} ({:.1} to {:.1})",
                speed.tokens_per_s, speed.low, speed.high
            )),
        ));
        facts.push((
            "reports inside such ranges",
            Cell::Text(format!("{:.1} of ten", speed.of_ten_inside)),
        ));
        let [weights, past, layers, host] = speed.parts_ms;
        facts.push(("ms a step: weights", Cell::Number(weights, 2)));
        facts.push(("ms a step: keys and values", Cell::Number(past, 2)));
        facts.push(("ms a step: launching layers", Cell::Number(layers, 2)));
        facts.push(("ms a step: experts on the host", Cell::Number(host, 2)));
        facts.push(("prefill, tokens/s", Cell::number(speed.prefill_tokens_per_s, 0)));
        facts.push(("seconds to the first token", Cell::number(speed.first_token_s, 1)));
        facts.push(("seconds to load the file", Cell::number(speed.load_s, 0)));
    }
    Sheet::facts(title, facts)
}

const WORTH: &[Field<Worth>] = &[
    Field::left("", "change", |worth| worth.change.as_str().into()),
    Field::right("layers on\nthe host", "host_layers", |worth| {
        Cell::Count(worth.host_layers.into())
    }),
    Field::right("tokens/s", "tokens_per_s", |worth| Cell::number(worth.tokens_per_s, 1)),
];

const MEMORY: &[Field<MemoryLine>] = &[
    Field::left("", "line", |line| line.name.into()),
    Field::right("GiB", "gib", |line| Cell::Number(gib(line.bytes), 3)),
    Field::left("basis", "basis", |line| line.basis.to_string().into()),
    Field::left("source", "source", |line| wrap(&line.source, SOURCE).join("\n").into()),
];

fn memory(title: &str, lines: &[MemoryLine], budget: u64) -> Sheet {
    let mut sheet = Sheet::of(title, MEMORY, lines.iter().filter(|line| line.bytes > 0));
    sheet.note = format!("of {:.2} GiB", gib(budget));
    sheet
}

const RESTS: &[Field<Coefficient>] = &[
    Field::left("", "name", |line| line.name.as_str().into()),
    Field::left("value", "value", |line| line.value.as_str().into()),
    Field::left("basis", "basis", |line| line.basis.to_string().into()),
    Field::left("source", "source", |line| wrap(&line.source, SOURCE).join("\n").into()),
];
