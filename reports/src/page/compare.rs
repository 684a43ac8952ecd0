//! The page of a comparison or a sweep: a row a policy, size, phase and link.

use hotset_sim::{Breakdown, LinkPrice, Report, Row, Settings, Window};

use super::{Data, Figure, Page, Shape, positive, told};
use crate::{Cell, Columns, Field, Sheet, one_line};

/// A row over one link; over none where nothing is priced.
pub(super) struct Over<'a> {
    row: &'a Row,
    link: Option<&'a LinkPrice>,
    gib: Option<f64>,
}

impl<'a> Over<'a> {
    /// Every row of whole runs over every link.
    pub fn all(settings: &Settings, rows: &'a [Row]) -> Vec<Self> {
        let bytes = settings.expert_bytes.iter().max().copied().unwrap_or(0);
        let whole = rows.iter().filter(|row| row.window == Window::All);
        let over = |row: &'a Row| {
            let size = bytes as f64 * f64::from(row.capacity_slots) / f64::from(1 << 30);
            let gib = (bytes > 0).then_some(size);
            let none = row.links.is_empty().then_some(Self { row, link: None, gib });
            let links = row.links.iter().map(move |link| Self { row, link: Some(link), gib });
            links.chain(none)
        };
        whole.flat_map(over).collect()
    }

    fn ms(&self) -> Option<f64> {
        self.link.map(|link| link.timeline_ms_per_token.unwrap_or(link.serial_ms_per_token))
    }

    fn part(&self, of: fn(&Breakdown) -> f64) -> Cell {
        Cell::number(self.link.and_then(|link| link.time.as_ref()).map(of), 4)
    }

    pub const COLUMNS: &'a [Field<Self>] = &[
        // Each way to handle misses is a line of its own.
        Field::left("policy", "policy", |over| match &over.row.miss {
            Some(miss) => format!("{}, {miss}", over.row.policy).into(),
            None => over.row.policy.as_str().into(),
        }),
        Field::left("phase", "phase", |over| over.row.phase.name().into()),
        Field::left("scope", "scope", |over| over.row.scope.name().into()),
        Field::left("link", "link", |over| {
            over.link.map_or(Cell::Empty, |link| one_line(&link.link).into())
        }),
        Field::right("slots", "capacity_slots", |over| Cell::Count(over.row.capacity_slots.into())),
        Field::right("share %", "capacity_percent", |over| {
            Cell::Number(over.row.capacity_share * 100.0, 1)
        }),
        Field::right("GiB", "capacity_gib", |over| Cell::number(over.gib, 2)),
        Field::right("hit %", "hit_percent", |over| Cell::percent(over.row.hit_rate)),
        Field::right("moved/token", "moved_per_token", |over| {
            Cell::Number(over.row.moved_per_token, 2)
        }),
        Field::right("MiB/token", "mib_per_token", |over| Cell::number(over.row.mib_per_token, 1)),
        Field::right("ms/token", "ms_per_token", |over| Cell::number(over.ms(), 3)),
        Field::right("tokens/s", "tokens_per_s", |over| {
            Cell::number(over.ms().filter(|&ms| ms > 0.0).map(|ms| 1000.0 / ms), 1)
        }),
        Field::right("x Belady", "belady_ratio", |over| Cell::number(over.row.belady_ratio, 3)),
        Field::right("serial ms", "serial_ms_per_token", |over| {
            Cell::number(over.link.map(|link| link.serial_ms_per_token), 3)
        }),
        Field::right("compute ms", "compute_ms", |over| over.part(|time| time.compute_ms)),
        Field::right("slowed ms", "slowed_ms", |over| over.part(|time| time.slowed_ms)),
        Field::right("demand ms", "exposed_demand_ms", |over| {
            over.part(|time| time.exposed_demand_ms)
        }),
        Field::right("prefetch ms", "exposed_prefetch_ms", |over| {
            over.part(|time| time.exposed_prefetch_ms)
        }),
        Field::right("host ms", "exposed_host_ms", |over| over.part(|time| time.exposed_host_ms)),
        Field::right("disk ms", "exposed_disk_ms", |over| {
            let time = over.link.and_then(|link| link.time.as_ref());
            Cell::number(time.and_then(|time| time.exposed_disk_ms), 4)
        }),
        Field::right("drained ms", "drained_ms", |over| over.part(|time| time.drained_ms)),
    ];
}

/// The parts of a token's time, which add up to it.
pub(super) const PARTS: [&str; 7] = [
    "compute_ms",
    "slowed_ms",
    "exposed_demand_ms",
    "exposed_prefetch_ms",
    "exposed_host_ms",
    "exposed_disk_ms",
    "drained_ms",
];

/// The page, with its answer; `sheets` are the tables below it.
pub(crate) fn comparison(report: &Report, verdict: String, sheets: Vec<Sheet>) -> Page {
    let sheet = Columns::of(Over::COLUMNS)
        .sheet("every policy, size, phase and link", Over::all(&report.settings, &report.rows));
    let figures = figures(&sheet);
    Page {
        title: format!("Expert caches on {}", one_line(&report.trace.name)),
        verdict,
        data: vec![Data {
            name: "rows",
            sheet,
            switches: vec!["phase", "scope", "link"],
            shown: true,
        }],
        figures,
        sheets: Some(sheets),
    }
}

const SIZES: [&str; 3] = ["capacity_gib", "capacity_percent", "capacity_slots"];

fn figures(sheet: &Sheet) -> Vec<Figure> {
    let told = |names: &[&'static str]| told(sheet, names);
    let sizes = told(&SIZES);
    let costs = match told(&["ms_per_token", "tokens_per_s"]) {
        none if none.is_empty() => vec!["moved_per_token"],
        costs => costs,
    };
    let figure = |name, title: &str, reading: &str, switches, shape| Figure {
        name,
        title: title.to_owned(),
        reading: reading.to_owned(),
        data: "rows",
        switches,
        shape,
    };
    let lines = |y, level| Shape::Lines { x: sizes.clone(), y, series: "policy", level };
    let moved = told(&["mib_per_token", "moved_per_token"])[0];
    let mut figures = vec![
        figure(
            "cost",
            "What a token costs, by the size of the cache",
            "A line a policy: lower is faster (tokens a second: higher). Where a line turns flat, more memory buys little.",
            vec![],
            lines(costs, None),
        ),
        figure(
            "misleads",
            "Hit rate against what is moved",
            "A point a policy and size. Policies of one hit rate that move unlike amounts are why hit rate alone misleads.",
            vec![],
            Shape::Points { x: "hit_percent", y: moved, series: "policy", diagonal: false },
        ),
        figure(
            "bound",
            "Distance to the optimum",
            "Misses over those of Belady's MIN at the same size: 1 is what no cache that fetches on a miss can beat.",
            vec![],
            lines(vec!["belady_ratio"], Some(1.0)),
        ),
    ];
    let parts = positive(sheet, &PARTS);
    if !parts.is_empty() {
        let spent = figure(
            "spent",
            "Where each millisecond goes",
            "A bar a policy at one size, ms a token: compute, what copies slow it by, and the waiting that nothing hides.",
            vec!["capacity_slots"],
            Shape::Stacked { label: "policy", parts, limit: None },
        );
        figures.insert(1, spent);
    }
    figures
}
