//! A sweep laid out: for people a table a quantity with a column a policy, for CSV one flat table.

use hotset_experiments::Lead;
use hotset_sim::{Knee, KneeRule, Report, Row, SweepReport, Window};

use crate::compare::{beside, headline, judge, prefetches};
use crate::curves::curves;
use crate::flat::flat_rows;
use crate::sheet::thousands;
use crate::{Cell, Column, Columns, Field, Output, RenderError, Sheet, one_line, verdict};

/// Policies beside each other in 80 characters.
const ABREAST: usize = 6;

/// A sweep in every format; `lead` says who leads it, where there is a choice.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn sweep(report: &SweepReport, lead: Option<&Lead>) -> Result<Output, RenderError> {
    let mut output = Output::new(report, sheets(report))?;
    judge(&mut output, &report.report, lead)?;
    output.flat = Some(flat_rows(&report.report.settings, &report.report.rows));
    output.warnings = report.report.warnings.clone();
    let mut below = beside(&report.report);
    below.push(knees(&report.knees));
    let answer = verdict::told(&report.report, lead);
    output.page = Some(crate::page::comparison(&report.report, answer, below));
    Ok(output)
}

/// A quantity of a row.
struct Quantity {
    title: String,
    cell: Box<dyn Fn(&Row) -> Cell>,
}

impl Quantity {
    fn of(title: impl Into<String>, cell: impl Fn(&Row) -> Cell + 'static) -> Self {
        Self { title: title.into(), cell: Box::new(cell) }
    }
}

fn quantities(report: &Report) -> Vec<Quantity> {
    let sized = report.rows.iter().any(|row| row.mib_per_token.is_some());
    let mut all = vec![
        Quantity::of("hit rate, %", |row| Cell::percent(row.hit_rate)),
        match sized {
            true => Quantity::of("MiB moved a token", |row| Cell::number(row.mib_per_token, 1)),
            false => {
                Quantity::of("experts moved a token", |row| Cell::Number(row.moved_per_token, 2))
            }
        },
    ];
    let sampled = report.settings.sample.is_some();
    if sampled {
        all.push(Quantity::of("hit rate, %, 95% of resamples", crate::sampled::hit_rate));
    }
    let links = report.rows.first().map_or(0, |row| row.links.len());
    for (index, name) in report.settings.links.iter().enumerate().take(links) {
        let timed = report.rows.iter().any(|row| {
            row.links.get(index).is_some_and(|link| link.timeline_ms_per_token.is_some())
        });
        let price = if timed { "timeline" } else { "serial" };
        all.push(Quantity::of(
            format!("ms a token over {}, {price}", one_line(name)),
            move |row| {
                let link = row.links.get(index);
                let ms = link.map(|l| l.timeline_ms_per_token.unwrap_or(l.serial_ms_per_token));
                Cell::number(ms, 3)
            },
        ));
        if sampled {
            let title = format!("ms a token over {}, 95% of resamples", one_line(name));
            let cell = move |row: &Row| crate::sampled::ms_per_token(row, index);
            all.push(Quantity::of(title, cell));
        }
        if prefetches(report) {
            let title = format!("ms a token over {}, prefetch hidden", one_line(name));
            all.push(Quantity::of(title, move |row| {
                let link = row.links.get(index);
                Cell::number(link.map(|link| link.prefetch_hidden_ms_per_token), 3)
            }));
        }
    }
    all
}

/// The rows of one phase and scope.
struct Group<'a> {
    first: &'a Row,
    rows: Vec<&'a Row>,
}

impl<'a> Group<'a> {
    /// In the order of the phases, within one in the order in which the scopes were given.
    fn all(report: &'a Report) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for row in report.rows.iter().filter(|row| row.window == Window::All) {
            let same = |group: &&mut Self| {
                group.first.phase == row.phase && group.first.scope == row.scope
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.rows.push(row),
                None => groups.push(Self { first: row, rows: vec![row] }),
            }
        }
        groups.sort_by_key(|group| group.first.phase as u8);
        groups
    }

    /// Its sizes, each once, the smallest first.
    fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.rows.iter().map(|row| row.capacity_slots).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn at(&self, policy: &str, slots: u32) -> Option<&'a Row> {
        let here = |row: &&&Row| row.policy == policy && row.capacity_slots == slots;
        self.rows.iter().find(here).copied()
    }
}

/// The columns of a size: how many slots, which share of all, how many GiB.
fn sizes<'a>(report: &'a Report) -> Columns<'a, u32> {
    const SLOTS: &[Field<u32>] =
        &[Field::right("slots", "capacity_slots", |&slots| Cell::Count(slots.into()))];
    let mut columns = Columns::of(SLOTS);
    columns.add(Column::right("share\n%", "capacity_percent"), |&slots| {
        let share = f64::from(slots) / f64::from(report.trace.total_experts.max(1));
        Cell::Number(share * 100.0, 1)
    });
    let bytes = report.settings.expert_bytes.iter().max().copied().unwrap_or(0);
    if bytes > 0 {
        columns.add(Column::right("GiB", "capacity_gib"), move |&slots| {
            Cell::Number(gib(slots, bytes), 2)
        });
    }
    columns
}

fn sheets(sweep: &SweepReport) -> Vec<Sheet> {
    let report = &sweep.report;
    let mut sheets = curves(report);
    for group in &Group::all(report) {
        let place = format!("{} · {} scope · ", group.first.phase.name(), group.first.scope.name());
        for quantity in quantities(report) {
            for policies in report_policies(&group.rows).chunks(ABREAST) {
                let mut columns = sizes(report);
                for &policy in policies {
                    // A long name breaks behind its first hyphen or colon.
                    let heading = policy.replacen('-', "-\n", 1).replacen(':', ":\n", 1);
                    let cell = &quantity.cell;
                    columns.add(Column::right(&heading, policy), move |&slots| {
                        group.at(policy, slots).map_or(Cell::Empty, cell)
                    });
                }
                sheets.push(columns.sheet(format!("{place}{}", quantity.title), group.sizes()));
            }
        }
    }
    if let Some(first) = sheets.first_mut() {
        first.title = format!("{}\n\n{}", headline(&report.trace), first.title);
    }
    sheets.extend(beside(report));
    sheets.push(knees(&sweep.knees));
    sheets
}

fn gib(slots: u32, bytes: u64) -> f64 {
    f64::from(slots) * bytes as f64 / f64::from(1 << 30)
}

/// The policies of these rows, in the order in which they were given.
fn report_policies<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    let mut policies: Vec<&str> = Vec::new();
    for row in rows {
        if !policies.contains(&row.policy.as_str()) {
            policies.push(&row.policy);
        }
    }
    policies
}

const KNEES: &[Field<Knee>] = &[
    Field::left("policy", "policy", |knee| knee.policy.as_str().into()),
    Field::left("scope", "scope", |knee| knee.scope.name().into()),
    Field::left("phase", "phase", |knee| knee.phase.name().into()),
    Field::left("cost", "link", |knee| one_line(knee.link.as_deref().unwrap_or("moved")).into()),
    Field::left("rule", "rule", |knee| match knee.rule {
        KneeRule::Chord => "chord".into(),
        KneeRule::SavesLessThan { ms_per_gib } => format!("<{ms_per_gib}ms/GiB").into(),
    }),
    Field::right("slots", "capacity_slots", |knee| {
        Cell::Text(thousands(knee.capacity_slots.into()))
    }),
    Field::right("%", "capacity_percent", |knee| Cell::Number(knee.capacity_share * 100.0, 1)),
    Field::right("GiB", "capacity_gib", |knee| Cell::number(knee.capacity_gib, 2)),
    Field::right("hit\n%", "hit_percent", |knee| Cell::percent(knee.hit_rate)),
    Field::right("ms\n/token", "ms_per_token", |knee| Cell::number(knee.ms_per_token, 3)),
];

fn knees(knees: &[Knee]) -> Sheet {
    let mut sheet = Sheet::of("knees", KNEES, knees);
    sheet.note =
        "\nEverything counts the whole run; windows, bounds and LRU at every size are in\n\
                  `Format::Json`. Knees: docs/metrics.md"
            .to_owned();
    sheet
}
