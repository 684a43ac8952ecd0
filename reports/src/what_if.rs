//! What-ifs laid out: a row a point, and a plot of tokens a second.

use hotset_planning::{Point, Speed, WhatIf};

use crate::experiment::wrap;
use crate::plan::routing;
use crate::terminal::WIDTH;
use crate::{Cell, Column, Output, RenderError, Sheet};

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
    Ok(output)
}

fn table(report: &WhatIf) -> Sheet {
    let title = format!(
        "{} on {} over {}: {} of {} tokens, {} drafted; {}",
        report.model,
        report.machine,
        report.link,
        if report.users == 1 { "1 user".to_owned() } else { format!("{} users", report.users) },
        crate::sheet::thousands(report.context),
        report.drafts,
        routing(&report.routing)
    );
    let axes = report.axes.iter().map(|axis| Column::right(axis.name(), axis.name()));
    let figures = figures(report);
    let columns =
        axes.chain([Column::left("verdict", "verdict")]).chain(figures.iter().map(|f| f.0.clone()));
    let mut sheet = Sheet::new(wrap(&title, 78).join("\n"), columns.collect());
    let mut reasons = Vec::new();
    for point in &report.points {
        let mut cells: Vec<Cell> =
            point.values.iter().map(|value| Cell::Text(value.clone())).collect();
        let verdict = point.verdict.map_or("cannot be", |verdict| verdict.name());
        cells.push(verdict.into());
        cells.extend(figures.iter().map(|figure| (figure.1)(point)));
        sheet.rows.push(cells);
        if let Some(reason) = &point.reason {
            reasons.extend(wrap(&format!("{}: {reason}", point.values.join(" ")), 78));
        }
    }
    sheet.note = reasons.join("\n");
    sheet
}

/// A column and a point's cell in it.
type Figure = (Column, fn(&Point) -> Cell);

/// As many figures as a terminal has room for beside the axes.
fn figures(report: &WhatIf) -> Vec<Figure> {
    fn number(point: &Point, of: fn(&Speed) -> f64, decimals: usize) -> Cell {
        Cell::number(point.speed.as_ref().map(of), decimals)
    }
    let mut figures: Vec<Figure> = vec![
        (Column::right("slots\n%", "slots_share"), |p| Cell::Number(p.slots_share * 100.0, 1)),
        (Column::right("experts\na layer", "distinct_experts"), |p| {
            number(p, |speed| speed.need.distinct, 2)
        }),
        (Column::right("copied\na layer", "misses"), |p| number(p, |speed| speed.need.misses, 2)),
        (Column::right("none\noverlaps", "no_overlap_tokens_per_s"), |p| {
            number(p, |speed| speed.no_overlap.tokens_per_s, 1)
        }),
        (Column::right("tokens/s\ntimeline", "timeline_tokens_per_s"), |p| {
            number(p, |speed| speed.timeline.tokens_per_s, 1)
        }),
        (Column::right("all\noverlap", "perfect_tokens_per_s"), |p| {
            number(p, |speed| speed.perfect.tokens_per_s, 1)
        }),
    ];
    let axis = |(index, knob): (usize, &hotset_planning::Knob)| {
        let values = report.points.iter().filter_map(|point| point.values.get(index));
        let widest = values.map(|value| value.chars().count()).max().unwrap_or(0);
        widest.max(knob.name().len()) + 2
    };
    let axes: usize = report.axes.iter().enumerate().map(axis).sum();
    // A verdict takes 14. The least telling figures go first.
    let wide = |figures: &[Figure]| {
        let heading = |figure: &Figure| {
            let lines = figure.0.heading.lines().map(|line| line.chars().count());
            lines.max().unwrap_or(0).max(6) + 2
        };
        axes + 14 + figures.iter().map(heading).sum::<usize>() - 2 > WIDTH
    };
    for dropped in ["distinct_experts", "no_overlap_tokens_per_s", "misses"] {
        if wide(&figures) {
            figures.retain(|figure| figure.0.name != dropped);
        }
    }
    figures
}

/// Tokens a second of all users: from nothing overlapped to all, the timeline marked.
fn plot(points: &[Point]) -> Option<Sheet> {
    let speeds = || points.iter().filter_map(|point| point.speed.as_ref());
    let most = speeds().map(|speed| speed.perfect.tokens_per_s).fold(0.0, f64::max);
    if most <= 0.0 || !most.is_finite() {
        return None;
    }
    let columns = vec![
        Column::left("", "values"),
        Column::left("", "plot"),
        Column::right("", "timeline_tokens_per_s"),
    ];
    let mut sheet = Sheet::new(format!("tokens a second, 0 to {most:.1}"), columns);
    let label = points.iter().map(|point| point.values.join(" ").chars().count()).max();
    let width = (WIDTH - 14).saturating_sub(label.unwrap_or(0)).clamp(8, BAR);
    for point in points {
        let (bar, timeline) = match &point.speed {
            Some(speed) => (bar(speed, most, width), Some(speed.timeline.tokens_per_s)),
            None => (String::new(), None),
        };
        let label = point.values.join(" ");
        sheet.rows.push(vec![label.into(), bar.into(), Cell::number(timeline, 1)]);
    }
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

/// One row a point with all digits.
fn flat(report: &WhatIf) -> Sheet {
    let names = [
        "verdict",
        "binding",
        "short_gib",
        "slots",
        "slots_share",
        "tokens_run",
        "tokens_given",
        "distinct_experts",
        "misses",
        "moved_mib",
        "no_overlap_tokens_per_s",
        "timeline_tokens_per_s",
        "perfect_tokens_per_s",
        "timeline_step_ms",
        "reason",
    ];
    let axes = report.axes.iter().map(|axis| Column::right(axis.name(), axis.name()));
    let columns = axes.chain(names.iter().map(|name| Column::right(name, name))).collect();
    let mut sheet = Sheet::new("", columns);
    for point in &report.points {
        let speed = point.speed.as_ref();
        let number = |of: fn(&Speed) -> f64| Cell::number(speed.map(of), 6);
        let text = |text: Option<&str>| text.map_or(Cell::Empty, Cell::from);
        let mut cells: Vec<Cell> =
            point.values.iter().map(|value| Cell::Text(value.clone())).collect();
        cells.extend([
            text(point.verdict.map(|verdict| verdict.name())),
            text(point.binding),
            Cell::number(point.short_gib, 6),
            Cell::Count(point.slots),
            Cell::Number(point.slots_share, 6),
            speed.map_or(Cell::Empty, |speed| Cell::Count(speed.tokens_run)),
            number(|speed| speed.tokens_given),
            number(|speed| speed.need.distinct),
            number(|speed| speed.need.misses),
            number(|speed| speed.moved_mib),
            number(|speed| speed.no_overlap.tokens_per_s),
            number(|speed| speed.timeline.tokens_per_s),
            number(|speed| speed.perfect.tokens_per_s),
            number(|speed| speed.timeline.step_ms),
            text(point.reason.as_deref()),
        ]);
        sheet.rows.push(cells);
    }
    sheet
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
            need: RoutingNeed { distinct: 1.0, misses: 0.0 },
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
