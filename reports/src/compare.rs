//! A comparison laid out: for people a table a size and phase, for CSV one flat table.

use hotset_experiments::{CostUnit, Lead};
use hotset_sim::{LinkPrice, Prefetch, Report, Row, Settings, TraceSummary, Window};

use crate::curves::curves;
use crate::flat::flat_rows;
use crate::{Cell, Column, Columns, Field, Output, RenderError, Sheet, one_line, verdict};

/// A comparison in every format; `lead` says who leads it, where there is a choice.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn comparison(report: &Report, lead: Option<&Lead>) -> Result<Output, RenderError> {
    let mut output = Output::new(report, sheets(report, false))?;
    output.wide = Some(sheets(report, true));
    judge(&mut output, report, lead)?;
    output.flat = Some(flat_rows(&report.settings, &report.rows));
    output.warnings = report.warnings.clone();
    let answer = verdict::told(report, lead);
    let mut below = beside(report);
    below.extend(crate::sampled::sheet(&report.settings, &report.rows));
    output.page = Some(crate::page::comparison(report, answer, below));
    Ok(output)
}

/// Says who leads, in words and as figures.
pub(crate) fn judge(
    output: &mut Output,
    report: &Report,
    lead: Option<&Lead>,
) -> Result<(), RenderError> {
    let Some(lead) = lead else { return Ok(()) };
    output.verdict = Some(verdict::told(report, Some(lead)));
    output.add("lead", lead)
}

/// A row with the hit rates of its windows beside it.
struct Shown<'a> {
    row: &'a Row,
    cold: Option<f64>,
    steady: Option<f64>,
}

impl<'a> Shown<'a> {
    fn of(row: &'a Row, report: &Report) -> Self {
        let in_window = |window| {
            let same = |other: &&Row| {
                other.window == window
                    && other.policy == row.policy
                    && other.miss == row.miss
                    && other.phase == row.phase
                    && other.scope == row.scope
                    && other.capacity_slots == row.capacity_slots
            };
            report.rows.iter().find(same).and_then(|row| row.hit_rate)
        };
        Self { row, cold: in_window(Window::Cold), steady: in_window(Window::Steady) }
    }

    const POLICY: &'a [Field<Self>] =
        &[Field::left("policy", "policy", |shown| shown.row.policy.as_str().into())];

    /// Where several ways to handle misses are compared.
    const MISS: &'a [Field<Self>] =
        &[Field::left("misses", "miss", |shown| shown.row.miss.as_deref().unwrap_or("").into())];

    /// What tells rows of one size apart.
    fn names(report: &Report) -> Columns<'a, Self> {
        let names = Columns::of(Self::POLICY);
        if report.settings.misses.is_empty() { names } else { names.and(Self::MISS) }
    }

    const COUNTS: &'a [Field<Self>] = &[
        Field::right("hit\n%", "hit", |shown| Cell::percent(shown.row.hit_rate)),
        Field::right("cold\n%", "cold", |shown| Cell::percent(shown.cold)),
        Field::right("steady\n%", "steady", |shown| Cell::percent(shown.steady)),
        Field::right("moved\n/token", "moved", |shown| Cell::Number(shown.row.moved_per_token, 2)),
        Field::right("MiB\n/token", "mib", |shown| Cell::number(shown.row.mib_per_token, 1)),
    ];

    const BOUND: &'a [Field<Self>] =
        &[Field::right("x\nBelady", "x_belady", |shown| Cell::number(shown.row.belady_ratio, 3))];
}

/// Rows of one size and phase, whichever policy they are of.
struct Group<'a> {
    title: String,
    rows: Vec<Shown<'a>>,
}

impl<'a> Group<'a> {
    /// A table of its rows, the best marked.
    fn sheet(&self, columns: &Columns<'a, Shown<'a>>, title: &str, unit: CostUnit) -> Sheet {
        let rows: Vec<&Row> = self.rows.iter().map(|shown| shown.row).collect();
        let mut sheet = columns.sheet(title, &self.rows);
        sheet.marked = verdict::best_of(unit, &rows).into_iter().map(|row| (row, 0)).collect();
        sheet
    }
}

/// Rows come policy by policy, each with its phases: a phase's rows are brought together.
fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in report.rows.iter().filter(|row| row.window == Window::All) {
        let title = title(&report.settings, report.trace.total_experts, row);
        let shown = Shown::of(row, report);
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.rows.push(shown),
            None => groups.push(Group { title, rows: vec![shown] }),
        }
    }
    groups
}

/// A sheet a size and phase; `wide`: with the serial price beside the timeline.
fn sheets(report: &Report, wide: bool) -> Vec<Sheet> {
    let groups = groups(report);
    let mut among = Shown::names(report).and(Shown::COUNTS);
    add_prices(&mut among, report, wide);
    let among = among.and(Shown::BOUND);
    let unit = CostUnit::of(report);
    let mut sheets: Vec<Sheet> =
        groups.iter().map(|group| group.sheet(&among, &group.title, unit)).collect();
    let narrow = !wide && has_prices(report);
    if narrow && sheets.iter().any(|sheet| !crate::terminal::fits(sheet)) {
        let counts = Shown::names(report).and(Shown::COUNTS).and(Shown::BOUND);
        let mut prices = Shown::names(report);
        add_prices(&mut prices, report, wide);
        let two = groups.iter().flat_map(|group| {
            [group.sheet(&counts, &group.title, unit), group.sheet(&prices, "", unit)]
        });
        sheets = two.collect();
    }
    let any_best = sheets.iter().any(|sheet| !sheet.marked.is_empty());
    sheets.splice(0..0, curves(report));
    if let Some(first) = sheets.first_mut() {
        first.title = format!("{}\n\n{}", headline(&report.trace), first.title);
    }
    if let Some(last) = sheets.last_mut() {
        last.note = note(report, wide, any_best);
    }
    sheets.extend(crate::sampled::sheet(&report.settings, &report.rows));
    sheets.extend(beside(report));
    sheets
}

/// What is told of some comparisons beside their rows: splits of misses, loads.
pub(crate) fn beside(report: &Report) -> Vec<Sheet> {
    let mut sheets = crate::misses::sheets(&report.settings, &report.rows);
    sheets.extend(crate::loaded::sheet(&report.settings, &report.rows));
    sheets.extend(crate::tiers::sheet(&report.settings, &report.rows));
    sheets
}

/// The columns of the links.
fn add_prices<'a>(columns: &mut Columns<'a, Shown<'a>>, report: &'a Report, wide: bool) {
    if !has_prices(report) {
        return;
    }
    let timed = is_timed(report);
    for (index, link) in report.settings.links.iter().enumerate() {
        let mut add = |heading: &str, name: &str, price: fn(&LinkPrice) -> Option<f64>| {
            columns.add(Column::right(heading, name), move |shown| {
                Cell::number(shown.row.links.get(index).and_then(price), 3)
            });
        };
        // A long name breaks behind its first hyphen.
        let heading = one_line(link).replacen('-', "-\n", 1);
        let serial: fn(&LinkPrice) -> Option<f64> = |link| Some(link.serial_ms_per_token);
        if timed {
            add(&heading, link, |link| link.timeline_ms_per_token);
        } else {
            add(&heading, link, serial);
        }
        if timed && wide {
            let name = format!("{} serial", one_line(link));
            add(&name, &name, serial);
        }
        if prefetches(report) {
            let name = format!("{} prefetch hidden", one_line(link));
            let heading = if wide { name.clone() } else { format!("{heading}\nhidden") };
            add(&heading, &name, |link| Some(link.prefetch_hidden_ms_per_token));
        }
    }
}

/// Whether anything was asked to be prefetched.
pub(crate) fn prefetches(report: &Report) -> bool {
    report.settings.serving.prefetch != Prefetch::None
}

fn note(report: &Report, wide: bool, any_best: bool) -> String {
    let mut note = "
hit: share of distinct experts found resident; cold: until the cache was full;
moved, MiB: experts and MiB copied a token; x Belady: misses over those of
Belady's MIN at the same size."
        .to_owned();
    if report.rows.iter().any(|row| row.bound != "belady") {
        note.push_str(
            "\nWhere misses need not be admitted (too few slots for an event, an admission, the\n\
             host), x Belady is over MIN with bypass: `bound` in JSON and CSV.",
        );
    }
    if has_prices(report) {
        note.push_str(match (is_timed(report), wide) {
            (true, false) => "\nLinks: ms a token on the timeline, copies beside compute.",
            (true, true) => {
                "\nLinks: ms a token on the timeline, copies beside compute; serial: one after another."
            }
            (false, _) => "\nLinks: serial ms a token, which is without overlap.",
        });
        if prefetches(report) {
            note.push_str("\nHidden: compute, demand, and what prefetch exceeds compute by.");
        }
        let settings = &report.settings;
        if settings.compute_ms_per_token.is_none() && settings.dense_bytes_per_layer.is_none() {
            note.push_str(
                "\nTransfers alone: `Settings::machine` or `Settings::compute_ms_per_token` adds compute.",
            );
        }
    }
    if any_best {
        note.push_str(match (has_prices(report), wide) {
            (true, false) => "\n*: least time over the first link, of what an engine can run.",
            (false, false) => "\n*: least moved, of what an engine can run.",
            (true, true) => "\nBold: least time over the first link, of what an engine can run.",
            (false, true) => "\nBold: least moved, of what an engine can run.",
        });
    }
    note.push_str("\nDefinitions: docs/metrics.md");
    note
}

pub(crate) fn headline(trace: &TraceSummary) -> String {
    format!(
        "{}: {} layers x {} experts, top-{}, {} tokens in {} sequences\ndigest {}",
        crate::one_line(&trace.name),
        trace.layers,
        trace.experts,
        trace.top_k,
        crate::sheet::thousands(trace.tokens as u64),
        trace.sequences,
        trace.digest,
    )
}

pub(crate) fn title(settings: &Settings, total_experts: u32, row: &Row) -> String {
    let bytes = settings.expert_bytes.iter().max().copied().unwrap_or(0);
    let gib = bytes as f64 * f64::from(row.capacity_slots) / f64::from(1 << 30);
    let size = if bytes == 0 { String::new() } else { format!(", {gib:.2} GiB") };
    format!(
        "{} · {} scope · {} of {} slots ({:.1}%{size}) · {} semantics",
        row.phase.name(),
        row.scope.name(),
        crate::sheet::thousands(u64::from(row.capacity_slots)),
        crate::sheet::thousands(u64::from(total_experts)),
        row.capacity_share * 100.0,
        row.semantics.name(),
    )
}

fn has_prices(report: &Report) -> bool {
    report.rows.iter().any(|row| !row.links.is_empty())
}

/// Whether the links' column is of the timeline.
fn is_timed(report: &Report) -> bool {
    let links = || report.rows.iter().flat_map(|row| &row.links);
    links().next().is_some() && links().all(|link| link.timeline_ms_per_token.is_some())
}
