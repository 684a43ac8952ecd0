//! The pages of a plan and of its what-ifs: memory as bars, speeds as spans.

use hotset_planning::{FitVerdict, MemoryLine, PlanReport, Point, Speed, WhatIf};

use super::{Data, Figure, Page, Shape, told};
use crate::sheet::thousands;
use crate::{Cell, Column, Columns, Field, Sheet, one_line};

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

/// What one memory holds, and what it may hold.
struct Pool {
    name: &'static str,
    lines: Vec<(&'static str, u64)>,
    budget: u64,
}

impl Pool {
    fn all(report: &PlanReport) -> Vec<Self> {
        let fit = &report.fit;
        let named =
            |lines: &[MemoryLine]| lines.iter().map(|line| (line.name, line.bytes)).collect();
        let mut accelerator: Vec<_> = named(&fit.accelerator);
        accelerator.push(("expert slots", fit.slots_bytes));
        vec![
            Self { name: "accelerator", lines: accelerator, budget: fit.budget.bytes },
            Self { name: "host", lines: named(&fit.host), budget: fit.host_budget.bytes },
        ]
    }

    fn of_line(&self, name: &str) -> Cell {
        let of_name = self.lines.iter().filter(|line| line.0 == name);
        let bytes: Vec<u64> = of_name.map(|line| line.1).collect();
        let sum = bytes.iter().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
        Cell::number((!bytes.is_empty()).then_some(gib(sum)), 3)
    }
}

/// A memory a row, a line of it a column; and the lines' names.
fn memory(report: &PlanReport) -> (Sheet, Vec<&'static str>) {
    const POOL: &[Field<Pool>] = &[
        Field::left("memory", "memory", |pool| pool.name.into()),
        Field::right("may hold", "budget", |pool| Cell::Number(gib(pool.budget), 3)),
    ];
    let pools = Pool::all(report);
    let mut names: Vec<&'static str> = Vec::new();
    for &(name, bytes) in pools.iter().flat_map(|pool| &pool.lines) {
        if bytes > 0 && !names.contains(&name) {
            names.push(name);
        }
    }
    let mut columns = Columns::of(POOL);
    for &name in &names {
        columns.add(Column::right(name, name), move |pool: &Pool| pool.of_line(name));
    }
    (columns.sheet("", &pools), names)
}

/// A part of a step's time.
struct Step<'a>(&'a Speed);

impl<'a> Step<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("", "step", |_| "a step".into()),
        Field::right("dense weights, keys and values", "dense_ms", |s| ms(s.0.parts.dense_ms)),
        Field::right("routed experts", "experts_ms", |s| ms(s.0.parts.experts_ms)),
        Field::right("output head", "head_ms", |s| ms(s.0.parts.head_ms)),
        Field::right("drafting", "draft_ms", |s| ms(s.0.parts.draft_ms)),
        Field::right("between accelerators", "exchange_ms", |s| ms(s.0.parts.exchange_ms)),
        Field::right("engine", "fixed_ms", |s| ms(s.0.parts.fixed_ms)),
        Field::right("copies over the link", "link_ms", |s| ms(s.0.parts.link_ms)),
        Field::right("experts on host cores", "host_ms", |s| ms(s.0.parts.host_ms)),
        Field::right("experts from disk", "disk_ms", |s| ms(s.0.parts.disk_ms)),
    ];
}

fn ms(value: f64) -> Cell {
    Cell::number((value > 0.0).then_some(value), 3)
}

fn data(name: &'static str, sheet: Sheet) -> Data {
    Data { name, sheet, switches: vec![], shown: false }
}

/// The page of a plan.
pub(crate) fn plan(report: &PlanReport) -> Page {
    let (sheet, parts) = memory(report);
    let mut page = Page {
        title: format!("{} on {}", one_line(&report.model.name), one_line(&report.machine.name)),
        verdict: verdict(report),
        data: vec![data("memory", sheet)],
        figures: vec![Figure {
            name: "memory",
            title: "Memory, GiB".to_owned(),
            reading: "What each memory holds while the engine runs; the mark is what it may hold."
                .to_owned(),
            data: "memory",
            switches: vec![],
            shape: Shape::Stacked { label: "memory", parts, limit: Some("budget") },
        }],
        sheets: None,
    };
    if let Some(speed) = &report.speed {
        let sheet = Columns::of(Step::COLUMNS).sheet("", [Step(speed)]);
        let names = Step::COLUMNS[1..].iter().map(Field::name).collect::<Vec<_>>();
        let parts = told(&sheet, &names);
        page.data.push(data("step", sheet));
        page.figures.push(Figure {
            name: "spent",
            title: "Where a step's time goes, ms".to_owned(),
            reading: "Each part alone: on the timeline some of them run beside each other."
                .to_owned(),
            data: "step",
            switches: vec![],
            shape: Shape::Stacked { label: "step", parts, limit: None },
        });
    }
    page
}

fn verdict(report: &PlanReport) -> String {
    let fit = &report.fit;
    let how = match fit.verdict {
        FitVerdict::DoesNotFit => {
            format!("{:.2} GiB short of fitting at all", gib(fit.short_bytes))
        }
        _ => format!("{:.1}% of the experts resident", fit.share() * 100.0),
    };
    let speed = report.speed.as_ref().map_or("No speed is predicted.".to_owned(), |speed| {
        format!(
            "It gives {:.1} tokens a second, {:.1} if nothing overlaps and {:.1} if everything does: \
             a prediction from the rates below, not a measurement.",
            speed.timeline.tokens_per_s, speed.no_overlap.tokens_per_s, speed.perfect.tokens_per_s
        )
    });
    let users = match report.asked.users {
        1 => "1 user".to_owned(),
        users => format!("{} users", thousands(users.into())),
    };
    format!(
        "{} on {}: {}, {how}, with {users} of {} tokens. {speed}",
        one_line(&report.model.name),
        one_line(&report.machine.name),
        fit.verdict.name(),
        thousands(report.asked.context),
    )
}

fn speed(point: &Point, of: fn(&Speed) -> f64) -> Cell {
    Cell::number(point.speed.as_ref().map(of), 1)
}

const SPEEDS: &[Field<Point>] = &[
    Field::right("slots %", "slots_percent", |point| Cell::Number(point.slots_share * 100.0, 1)),
    Field::right("nothing overlaps, tokens/s", "no_overlap_tokens_per_s", |point| {
        speed(point, |speed| speed.no_overlap.tokens_per_s)
    }),
    Field::right("timeline, tokens/s", "timeline_tokens_per_s", |point| {
        speed(point, |speed| speed.timeline.tokens_per_s)
    }),
    Field::right("everything overlaps, tokens/s", "perfect_tokens_per_s", |point| {
        speed(point, |speed| speed.perfect.tokens_per_s)
    }),
];

/// The setting of a point, as `users 4, context 8192`.
fn setting(report: &WhatIf, point: &Point) -> String {
    let values = report.axes.iter().zip(&point.values);
    let named = values.map(|(axis, value)| format!("{} {}", axis.name(), one_line(value)));
    named.collect::<Vec<_>>().join(", ")
}

/// The page of a plan's what-ifs; `table` is that of the terminal, whose plot the page draws itself.
pub(crate) fn what_if(report: &WhatIf, table: Sheet) -> Page {
    let mut columns = Columns::of(&[]);
    columns.add(Column::left("setting", "setting"), |point: &Point| setting(report, point).into());
    for (index, axis) in report.axes.iter().enumerate() {
        columns.add(Column::left(axis.name(), axis.name()), move |point: &Point| {
            point.values.get(index).map_or(Cell::Empty, |value| one_line(value).into())
        });
    }
    let sheet = columns.and(SPEEDS).sheet("", &report.points);
    let fastest = report
        .points
        .iter()
        .filter_map(|point| Some((point, point.speed.as_ref()?.timeline.tokens_per_s)));
    let fastest = fastest.fold(None, |best: Option<(&Point, f64)>, one| match best {
        Some(best) if best.1 >= one.1 => Some(best),
        _ => Some(one),
    });
    let verdict = fastest.map_or("None of these settings runs.".to_owned(), |(point, rate)| {
        format!(
            "The fastest of {} settings is {}, with {rate:.1} tokens a second. All are predictions from \
             rates, not measurements: the spans say how much depends on what overlaps.",
            report.points.len(),
            setting(report, point),
        )
    });
    let mut page = Page {
        title: format!("What if: {} on {}", one_line(&report.model), one_line(&report.machine)),
        verdict,
        data: vec![data("points", sheet)],
        figures: vec![Figure {
            name: "what-if",
            title: "Tokens a second by setting".to_owned(),
            reading: "A span a setting, from nothing overlapped to everything; the point is the timeline.".to_owned(),
            data: "points",
            switches: vec![],
            shape: Shape::Intervals {
                label: "setting",
                estimate: "timeline_tokens_per_s",
                low: "no_overlap_tokens_per_s",
                high: "perfect_tokens_per_s",
            },
        }],
        sheets: Some(vec![table]),
    };
    if let [x, y] = report.axes[..] {
        let field = Figure {
            name: "axes",
            title: format!("Tokens a second by {} and {}", x.name(), y.name()),
            reading: "A field a setting on the timeline, bright is faster; where nothing runs there is none."
                .to_owned(),
            data: "points",
            switches: vec![],
            shape: Shape::Heat { x: x.name(), y: y.name(), value: vec!["timeline_tokens_per_s", "slots_percent"] },
        };
        page.figures.push(field);
    }
    page
}
