//! What-ifs laid out: a row a point, and a plot of tokens a second.

use hotset_planning::placement::PlacedSpeed;
use hotset_planning::{Point, Speed, WhatIf};

use crate::experiment::wrap;
use crate::plan::routing;
use crate::terminal::WIDTH;
use crate::{Cell, Column, Columns, Field, Output, RenderError, Sheet, one_line};

/// Columns of a plot's widest bar.
const BAR: usize = 44;

/// A what-if in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn what_if(report: &WhatIf) -> Result<Output, RenderError> {
    let mut sheets = vec![table(report)];
    sheets.extend(plot(&report.points));
    if let Some(last) = sheets.last_mut() {
        let notes: Vec<String> =
            report.notes.iter().flat_map(|note| wrap(&format!("note: {note}"), 78)).collect();
        if !notes.is_empty() {
            last.note = format!("{}\n{}", last.note, notes.join("\n"));
        }
    }
    let mut output = Output::new(report, sheets)?;
    output.flat = Some(flat(report));
    output.warnings.clone_from(&report.warnings);
    let page = crate::page::what_if(report, table(report));
    output.verdict = Some(page.verdict.clone());
    output.page = Some(page);
    Ok(output)
}

/// The axes: what was varied, and its value at a point.
fn axes(report: &WhatIf) -> Columns<'_, Point> {
    let mut columns = Columns::of(&[]);
    for (index, axis) in report.axes.iter().enumerate() {
        columns.add(Column::right(axis.name(), axis.name()), move |point: &Point| {
            point.values.get(index).map_or(Cell::Empty, |value| value.as_str().into())
        });
    }
    columns
}

const VERDICT: &[Field<Point>] = &[Field::left("verdict", "verdict", |point| {
    point.verdict.map_or("cannot be", |verdict| verdict.name()).into()
})];

fn table(report: &WhatIf) -> Sheet {
    let title = format!(
        "{} on {} over {}: {} of {} tokens, {} drafted; {}",
        one_line(&report.model),
        one_line(&report.machine),
        one_line(&report.link),
        if report.users == 1 { "1 user".to_owned() } else { format!("{} users", report.users) },
        crate::sheet::thousands(report.context),
        report.drafts,
        routing(&report.routing)
    );
    let mut columns = axes(report).and(VERDICT);
    for figure in figures(report) {
        columns = columns.and(std::slice::from_ref(figure));
    }
    if told_by_engine(report) {
        columns = columns.and(ENGINE);
    }
    let mut sheet = columns.sheet(wrap(&title, 78).join("\n"), &report.points);
    let mut reasons = Vec::new();
    for point in &report.points {
        if let Some(reason) = &point.reason {
            reasons.extend(wrap(&format!("{}: {reason}", point.values.join(" ")), 78));
        }
    }
    sheet.note = reasons.join("\n");
    sheet
}

/// Whether reports of the engine tell how fast some points are.
fn told_by_engine(report: &WhatIf) -> bool {
    report.points.iter().any(|point| point.engine_speed.is_some())
}

fn engine(point: &Point, of: fn(&PlacedSpeed) -> f64, decimals: usize) -> Cell {
    Cell::number(point.engine_speed.as_ref().map(of), decimals)
}

/// Where everything is resident.
const ENGINE: &[Field<Point>] = &[Field::right("engine\ntokens/s", "engine_tokens_per_s", |p| {
    engine(p, |speed| speed.tokens_per_s, 1)
})];

const FLAT_ENGINE: &[Field<Point>] = &[
    Field::flat("engine_tokens_per_s", |p| engine(p, |speed| speed.tokens_per_s, 6)),
    Field::flat("engine_tokens_per_s_low", |p| engine(p, |speed| speed.low, 6)),
    Field::flat("engine_tokens_per_s_high", |p| engine(p, |speed| speed.high, 6)),
];

/// A figure of a point that can be run.
fn speed(point: &Point, of: fn(&Speed) -> f64, decimals: usize) -> Cell {
    Cell::number(point.speed.as_ref().map(of), decimals)
}

const FIGURES: &[Field<Point>] = &[
    Field::right("slots\n%", "slots_share", |p| Cell::Number(p.slots_share * 100.0, 1)),
    Field::right("experts\na layer", DISTINCT, |p| speed(p, |s| s.need.distinct, 2)),
    Field::right("copied\na layer", MISSES, |p| speed(p, |s| s.need.misses, 2)),
    Field::right("none\noverlaps", NO_OVERLAP, |p| speed(p, |s| s.no_overlap.tokens_per_s, 1)),
    Field::right("tokens/s\ntimeline", "timeline_tokens_per_s", |p| {
        speed(p, |s| s.timeline.tokens_per_s, 1)
    }),
    Field::right("all\noverlap", "perfect_tokens_per_s", |p| {
        speed(p, |s| s.perfect.tokens_per_s, 1)
    }),
];

const DISTINCT: &str = "distinct_experts";
const MISSES: &str = "misses";
const NO_OVERLAP: &str = "no_overlap_tokens_per_s";

/// The figures that tell least, the least first.
const DROPPED_FIRST: [&str; 3] = [DISTINCT, NO_OVERLAP, MISSES];

/// As many figures as a terminal has room for beside the axes.
fn figures(report: &WhatIf) -> Vec<&'static Field<Point>> {
    let mut figures: Vec<&Field<Point>> = FIGURES.iter().collect();
    let axis = |(index, knob): (usize, &hotset_planning::Knob)| {
        let values = report.points.iter().filter_map(|point| point.values.get(index));
        let widest = values.map(|value| value.chars().count()).max().unwrap_or(0);
        widest.max(knob.name().len()) + 2
    };
    let told: usize = if told_by_engine(report) { 10 } else { 0 };
    let axes: usize = told + report.axes.iter().enumerate().map(axis).sum::<usize>();
    // A verdict takes 14.
    let wide = |figures: &[&Field<Point>]| {
        let widths = figures.iter().map(|figure| figure.heading_width().max(6) + 2);
        axes + 14 + widths.sum::<usize>() - 2 > WIDTH
    };
    for dropped in DROPPED_FIRST {
        if wide(&figures) {
            figures.retain(|figure| figure.name() != dropped);
        }
    }
    figures
}

const LABEL: &[Field<Point>] = &[Field::left("", "values", |point| point.values.join(" ").into())];

const TIMELINE: &[Field<Point>] = &[Field::right("", "timeline_tokens_per_s", |point| {
    speed(point, |speed| speed.timeline.tokens_per_s, 1)
})];

/// Tokens a second of all users: from nothing overlapped to all, the timeline marked.
fn plot(points: &[Point]) -> Option<Sheet> {
    let speeds = || points.iter().filter_map(|point| point.speed.as_ref());
    let most = speeds().map(|speed| speed.perfect.tokens_per_s).fold(0.0, f64::max);
    if most <= 0.0 || !most.is_finite() {
        return None;
    }
    let label = points.iter().map(|point| point.values.join(" ").chars().count()).max();
    let width = (WIDTH - 14).saturating_sub(label.unwrap_or(0)).clamp(8, BAR);
    let mut columns = Columns::of(LABEL);
    columns.add(Column::left("", "plot"), |point: &Point| {
        point.speed.as_ref().map_or(String::new(), |speed| bar(speed, most, width)).into()
    });
    let mut sheet = columns.and(TIMELINE).sheet(format!("tokens a second, 0 to {most:.1}"), points);
    sheet.note = "(--o--): from nothing overlapped to everything, o the timeline".to_owned();
    Some(sheet)
}

fn bar(speed: &Speed, most: f64, width: usize) -> String {
    let place = |rate: f64| ((rate / most) * (width - 1) as f64).round() as usize;
    let [slow, middle, fast] =
        [speed.no_overlap, speed.timeline, speed.perfect].map(|rate| place(rate.tokens_per_s));
    let mark = |column: usize| match column {
        _ if column == middle => 'o',
        _ if column == slow => '(',
        _ if column == fast => ')',
        _ if column > slow && column < fast => '-',
        _ => ' ',
    };
    // A table is cut at the left edge of its cells: a bar starts with a mark of its own.
    let bar: String = (0..=fast.max(middle)).map(mark).collect();
    format!("|{bar}")
}

fn text(text: Option<&str>) -> Cell {
    text.map_or(Cell::Empty, Cell::from)
}

const FLAT: &[Field<Point>] = &[
    Field::flat("verdict", |p| text(p.verdict.map(|verdict| verdict.name()))),
    Field::flat("binding", |p| text(p.binding)),
    Field::flat("short_gib", |p| Cell::number(p.short_gib, 6)),
    Field::flat("slots", |p| Cell::Count(p.slots)),
    Field::flat("slots_share", |p| Cell::Number(p.slots_share, 6)),
    Field::flat("tokens_run", |p| {
        p.speed.as_ref().map_or(Cell::Empty, |speed| Cell::Count(speed.tokens_run))
    }),
    Field::flat("tokens_given", |p| speed(p, |s| s.tokens_given, 6)),
    Field::flat("distinct_experts", |p| speed(p, |s| s.need.distinct, 6)),
    Field::flat("misses", |p| speed(p, |s| s.need.misses, 6)),
    Field::flat("moved_mib", |p| speed(p, |s| s.moved_mib, 6)),
    Field::flat("no_overlap_tokens_per_s", |p| speed(p, |s| s.no_overlap.tokens_per_s, 6)),
    Field::flat("timeline_tokens_per_s", |p| speed(p, |s| s.timeline.tokens_per_s, 6)),
    Field::flat("perfect_tokens_per_s", |p| speed(p, |s| s.perfect.tokens_per_s, 6)),
    Field::flat("timeline_step_ms", |p| speed(p, |s| s.timeline.step_ms, 6)),
    Field::flat("reason", |p| text(p.reason.as_deref())),
];

/// One row a point with all digits.
fn flat(report: &WhatIf) -> Sheet {
    let columns = axes(report).and(FLAT);
    let columns = if told_by_engine(report) { columns.and(FLAT_ENGINE) } else { columns };
    columns.sheet("", &report.points)
}

#[cfg(test)]
mod tests {
    use hotset_planning::{Rate, RoutingNeed, StepParts};

    use super::*;

    #[test]
    fn a_bar_by_hand() {
        let rate = |tokens_per_s| Rate { step_ms: 1.0, tokens_per_s, tokens_per_s_each: 1.0 };
        let speed = Speed {
            tokens_run: 1,
            tokens_given: 1.0,
            need: RoutingNeed::new(1.0, 0.0),
            timeline_between: None,
            moved_mib: 0.0,
            parts: StepParts::default(),
            no_overlap: rate(2.0),
            timeline: rate(4.0),
            perfect: rate(7.0),
        };
        // The widest of 44 columns is 43: a token a second is one column.
        assert_eq!(bar(&speed, 43.0, 44), "|  (-o--)");
    }
}
