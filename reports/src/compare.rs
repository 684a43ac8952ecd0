//! A comparison laid out: for people a table a size and phase, for CSV one flat table.

use hotset_sim::{LinkPrice, Prefetch, Report, Row, Settings, TraceSummary, Window};

use crate::{Cell, Column, Columns, Field, Output, RenderError, Sheet, one_line};

/// A comparison in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn comparison(report: &Report) -> Result<Output, RenderError> {
    let mut output = Output::new(report, sheets(report, false))?;
    output.wide = Some(sheets(report, true));
    output.flat = Some(flat_rows(&report.settings, &report.rows));
    output.warnings = report.warnings.clone();
    let mut below = beside(report);
    below.extend(crate::sampled::sheet(&report.settings, &report.rows));
    output.page = Some(crate::page::comparison(report, below));
    Ok(output)
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
    let mut sheets: Vec<Sheet> =
        groups.iter().map(|group| among.sheet(&group.title, &group.rows)).collect();
    let narrow = !wide && has_prices(report);
    if narrow && sheets.iter().any(|sheet| !crate::terminal::fits(sheet)) {
        let counts = Shown::names(report).and(Shown::COUNTS).and(Shown::BOUND);
        let mut prices = Shown::names(report);
        add_prices(&mut prices, report, wide);
        let two = groups.iter().flat_map(|group| {
            [counts.sheet(&group.title, &group.rows), prices.sheet("", &group.rows)]
        });
        sheets = two.collect();
    }
    if let Some(first) = sheets.first_mut() {
        first.title = format!("{}\n\n{}", headline(&report.trace), first.title);
    }
    if let Some(last) = sheets.last_mut() {
        last.note = note(report, wide);
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

fn note(report: &Report, wide: bool) -> String {
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

/// The prices of a link in CSV.
type Price = (&'static str, fn(&LinkPrice) -> Option<f64>);

const PRICES: [Price; 4] = [
    ("serial_ms_per_token", |link| Some(link.serial_ms_per_token)),
    ("timeline_ms_per_token", |link| link.timeline_ms_per_token),
    ("prefetch_hidden_ms_per_token", |link| Some(link.prefetch_hidden_ms_per_token)),
    ("perfect_ms_per_token", |link| Some(link.perfect_ms_per_token)),
];

/// The columns of a row in CSV, before those of its links.
const FLAT: &[Field<Row>] = &[
    Field::flat("policy", |row| row.policy.as_str().into()),
    Field::flat("scope", |row| row.scope.name().into()),
    Field::flat("capacity_slots", |row| Cell::Count(u64::from(row.capacity_slots))),
    Field::flat("capacity_share", |row| Cell::Number(row.capacity_share, 4)),
    Field::flat("phase", |row| row.phase.name().into()),
    Field::flat("window", |row| row.window.name().into()),
    Field::flat("semantics", |row| row.semantics.name().into()),
    Field::flat("tokens", |row| Cell::Count(row.tokens)),
    Field::flat("accesses", |row| Cell::Count(row.accesses)),
    Field::flat("hits", |row| Cell::Count(row.hits)),
    Field::flat("misses", |row| Cell::Count(row.misses)),
    Field::flat("hit_rate", |row| Cell::number(row.hit_rate, 6)),
    Field::flat("demand_fetches", |row| Cell::Count(row.demand_fetches)),
    Field::flat("unplaced", |row| Cell::Count(row.unplaced)),
    Field::flat("overflow_events", |row| Cell::Count(row.overflow_events)),
    Field::flat("prefetches", |row| Cell::Count(row.prefetches)),
    Field::flat("prefetches_used", |row| Cell::Count(row.prefetches_used)),
    Field::flat("prefetches_wasted", |row| Cell::Count(row.prefetches_wasted)),
    Field::flat("prefetches_cancelled", |row| Cell::Count(row.prefetches_cancelled)),
    Field::flat("host_served", |row| Cell::Count(row.host_served)),
    Field::flat("refetches", |row| Cell::Count(row.refetches)),
    Field::flat("moved_per_token", |row| Cell::Number(row.moved_per_token, 4)),
    Field::flat("mib_per_token", |row| Cell::number(row.mib_per_token, 4)),
    Field::flat("belady_misses", |row| Cell::Count(row.belady_misses)),
    Field::flat("belady_ratio", |row| Cell::number(row.belady_ratio, 6)),
    Field::flat("bound", |row| row.bound.into()),
];

/// Every row in one table.
pub(crate) fn flat_rows(settings: &Settings, rows: &[Row]) -> Sheet {
    let mut columns = Columns::of(FLAT);
    if rows.iter().any(|row| row.miss.is_some()) {
        columns.add(Column::left("miss", "miss"), |row: &Row| {
            row.miss.as_deref().unwrap_or("").into()
        });
    }
    if rows.iter().any(|row| !row.links.is_empty()) {
        for (index, link) in settings.links.iter().enumerate() {
            for (name, price) in PRICES {
                let name = format!("{name}:{link}");
                columns.add(Column::right(&name, &name), move |row| {
                    Cell::number(row.links.get(index).and_then(price), 6)
                });
            }
        }
    }
    crate::misses::add_flat(&mut columns, settings, rows);
    crate::loaded::add_flat(&mut columns, settings, rows);
    crate::tiers::add_flat(&mut columns, rows);
    crate::sampled::add_flat(&mut columns, settings, rows);
    columns.sheet("", rows)
}
