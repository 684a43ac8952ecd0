//! A sweep laid out: for people a table a quantity with a column a policy, for CSV one flat table.

use hotset_sim::{Knee, KneeRule, Row, SweepReport, Window};

use crate::compare::{flat_rows, headline};
use crate::sheet::thousands;
use crate::{Cell, Column, Output, RenderError, Sheet};

/// Policies beside each other in 80 characters.
const ABREAST: usize = 6;

/// A sweep in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn sweep(report: &SweepReport) -> Result<Output, RenderError> {
    let mut output = Output::new(report, sheets(report))?;
    output.flat = Some(flat_rows(&report.report.settings, &report.report.rows));
    output.warnings = report.report.warnings.clone();
    Ok(output)
}

/// A quantity of a row.
struct Quantity {
    title: String,
    cell: Box<dyn Fn(&Row) -> Cell>,
}

fn quantities(sweep: &SweepReport) -> Vec<Quantity> {
    let mut all = vec![Quantity {
        title: "hit rate, %".to_owned(),
        cell: Box::new(|row| Cell::percent(row.hit_rate)),
    }];
    let sized = sweep.report.rows.iter().any(|row| row.mib_per_token.is_some());
    all.push(match sized {
        true => Quantity {
            title: "MiB moved a token".to_owned(),
            cell: Box::new(|row| Cell::number(row.mib_per_token, 1)),
        },
        false => Quantity {
            title: "experts moved a token".to_owned(),
            cell: Box::new(|row| Cell::Number(row.moved_per_token, 2)),
        },
    });
    let links = sweep.report.rows.first().map_or(0, |row| row.links.len());
    for (index, name) in sweep.report.settings.links.iter().enumerate().take(links) {
        let timed = sweep.report.rows.iter().any(|row| {
            row.links.get(index).is_some_and(|link| link.timeline_ms_per_token.is_some())
        });
        let price = if timed { "timeline" } else { "serial" };
        all.push(Quantity {
            title: format!("ms a token over {name}, {price}"),
            cell: Box::new(move |row| {
                let link = row.links.get(index);
                let ms = link.map(|l| l.timeline_ms_per_token.unwrap_or(l.serial_ms_per_token));
                Cell::number(ms, 3)
            }),
        });
    }
    all
}

fn sheets(sweep: &SweepReport) -> Vec<Sheet> {
    let report = &sweep.report;
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.window == Window::All).collect();
    let mut groups = Vec::new();
    for row in &rows {
        if !groups.contains(&(row.phase, row.scope)) {
            groups.push((row.phase, row.scope));
        }
    }
    groups.sort_by_key(|&(phase, _)| phase as u8);
    let bytes = report.settings.expert_bytes.iter().max().copied().unwrap_or(0);
    let mut sheets = Vec::new();
    for (phase, scope) in groups {
        let of_group: Vec<&Row> =
            rows.iter().copied().filter(|row| row.phase == phase && row.scope == scope).collect();
        let mut sizes: Vec<u32> = of_group.iter().map(|row| row.capacity_slots).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let place = format!("{} · {} scope · ", phase.name(), scope.name());
        for quantity in quantities(sweep) {
            for policies in report_policies(&of_group).chunks(ABREAST) {
                let mut columns = vec![Column::right("slots", "capacity_slots")];
                columns.push(Column::right("share\n%", "capacity_percent"));
                if bytes > 0 {
                    columns.push(Column::right("GiB", "capacity_gib"));
                }
                columns.extend(policies.iter().map(|policy| {
                    // A long name breaks behind its first hyphen or colon.
                    let heading = policy.replacen('-', "-\n", 1).replacen(':', ":\n", 1);
                    Column::right(&heading, policy)
                }));
                let mut sheet = Sheet::new(format!("{place}{}", quantity.title), columns);
                for &slots in &sizes {
                    let at = |policy: &str| {
                        of_group
                            .iter()
                            .find(|row| row.policy == policy && row.capacity_slots == slots)
                    };
                    let share = f64::from(slots) / f64::from(report.trace.total_experts.max(1));
                    let mut cells = vec![Cell::Count(slots.into()), Cell::Number(share * 100.0, 1)];
                    if bytes > 0 {
                        cells.push(Cell::Number(gib(slots, bytes), 2));
                    }
                    let of_policy =
                        |policy: &&str| at(policy).map_or(Cell::Empty, |row| (quantity.cell)(row));
                    cells.extend(policies.iter().map(of_policy));
                    sheet.rows.push(cells);
                }
                sheets.push(sheet);
            }
        }
    }
    if let Some(first) = sheets.first_mut() {
        first.title = format!("{}\n\n{}", headline(&report.trace), first.title);
    }
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

fn knees(knees: &[Knee]) -> Sheet {
    let mut sheet = Sheet::new(
        "knees",
        vec![
            Column::left("policy", "policy"),
            Column::left("scope", "scope"),
            Column::left("phase", "phase"),
            Column::left("cost", "link"),
            Column::left("rule", "rule"),
            Column::right("slots", "capacity_slots"),
            Column::right("%", "capacity_percent"),
            Column::right("GiB", "capacity_gib"),
            Column::right("hit\n%", "hit_percent"),
            Column::right("ms\n/token", "ms_per_token"),
        ],
    );
    sheet.rows = knees
        .iter()
        .map(|knee| {
            vec![
                knee.policy.as_str().into(),
                knee.scope.name().into(),
                knee.phase.name().into(),
                knee.link.as_deref().unwrap_or("moved").into(),
                match knee.rule {
                    KneeRule::Chord => "chord".into(),
                    KneeRule::SavesLessThan { ms_per_gib } => format!("<{ms_per_gib}ms/GiB").into(),
                },
                Cell::Text(thousands(knee.capacity_slots.into())),
                Cell::Number(knee.capacity_share * 100.0, 1),
                Cell::number(knee.capacity_gib, 2),
                Cell::percent(knee.hit_rate),
                Cell::number(knee.ms_per_token, 3),
            ]
        })
        .collect();
    sheet.note =
        "\nEverything counts the whole run; windows, bounds and LRU at every size are in\n\
                  --format json. Knees: docs/metrics.md"
            .to_owned();
    sheet
}
