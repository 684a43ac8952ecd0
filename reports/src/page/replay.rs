//! The page of a replay in full: where the time goes, layer by layer.

use hotset_sim::{LayerRow, LayerTime, ReplayReport, Row, Window};

use super::compare::{Over, PARTS};
use super::{Data, Figure, Page, Shape, positive, told};
use crate::{Cell, Columns, Field, one_line};

/// A layer over one link; over none where nothing is priced.
struct Layer<'a> {
    row: &'a LayerRow,
    link: Option<&'a LayerTime>,
    tokens: u64,
}

impl<'a> Layer<'a> {
    fn all(report: &'a ReplayReport) -> Vec<Self> {
        let over = |row: &'a LayerRow| {
            let whole = |of: &&Row| of.window == Window::All && of.phase == row.phase;
            let tokens = report.rows.iter().find(whole).map_or(1, |of| of.tokens.max(1));
            let none = row.links.is_empty().then_some(Self { row, link: None, tokens });
            row.links.iter().map(move |link| Self { row, link: Some(link), tokens }).chain(none)
        };
        report.layers.iter().flat_map(over).collect()
    }

    fn a_token(&self, count: u64) -> Cell {
        Cell::Number(count as f64 / self.tokens as f64, 3)
    }

    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("phase", "phase", |layer| layer.row.phase.name().into()),
        Field::left("link", "link", |layer| {
            layer.link.map_or(Cell::Empty, |link| one_line(&link.link).into())
        }),
        Field::right("layer", "layer", |layer| Cell::Count(layer.row.layer.into())),
        Field::right("experts/step", "experts_per_step", |layer| {
            Cell::Number(layer.row.experts_per_step, 2)
        }),
        Field::right("hit %", "hit_percent", |layer| Cell::percent(layer.row.hit_rate)),
        Field::right("demand/token", "demand_per_token", |layer| {
            layer.a_token(layer.row.demand_fetches)
        }),
        Field::right("prefetch/token", "prefetch_per_token", |layer| {
            layer.a_token(layer.row.prefetches)
        }),
        Field::right("ms/token", "ms_per_token", |layer| {
            Cell::number(layer.link.map(|link| link.ms_per_token), 4)
        }),
    ];
}

/// The page, above the tables of the terminal.
pub(crate) fn in_full(report: &ReplayReport) -> Page {
    let rows = Columns::of(Over::COLUMNS).sheet("", Over::all(&report.settings, &report.rows));
    let layers = Columns::of(Layer::COLUMNS).sheet("", Layer::all(report));
    let values = told(&layers, &["hit_percent", "demand_per_token", "ms_per_token"]);
    let mut figures = vec![Figure {
        name: "layers",
        title: "Layer by layer".to_owned(),
        reading: "A field a layer and phase, bright is more: which layers find their experts, and which wait."
            .to_owned(),
        data: "layers",
        switches: vec![],
        shape: Shape::Heat { x: "layer", y: "phase", value: values },
    }];
    let parts = positive(&rows, &PARTS);
    if !parts.is_empty() {
        let spent = Figure {
            name: "spent",
            title: "Where each millisecond goes".to_owned(),
            reading: "A bar a phase, ms a token: compute, what copies slow it by, and the waiting that nothing hides."
                .to_owned(),
            data: "rows",
            switches: vec![],
            shape: Shape::Stacked { label: "phase", parts, limit: None },
        };
        figures.insert(0, spent);
    }
    Page {
        title: format!("A replay of {}", one_line(&report.trace.name)),
        verdict: verdict(report),
        data: vec![
            Data { name: "rows", sheet: rows, switches: vec!["link"], shown: false },
            Data { name: "layers", sheet: layers, switches: vec!["link"], shown: false },
        ],
        figures,
        sheets: None,
    }
}

fn verdict(report: &ReplayReport) -> String {
    let whole = || report.rows.iter().filter(|row| row.window == Window::All);
    let decode = whole().find(|row| row.phase.name() == "decode").or_else(|| whole().next());
    let Some(row) = decode else { return "Nothing ran.".to_owned() };
    let hits = row.hit_rate.map_or("-".to_owned(), |share| format!("{:.2}%", share * 100.0));
    let price = row.links.first().map_or(String::new(), |link| {
        let ms = link.timeline_ms_per_token.unwrap_or(link.serial_ms_per_token);
        format!(" and takes {ms:.3} ms a token over {}", one_line(&link.link))
    });
    let optimum = row.belady_ratio.map_or(String::new(), |ratio| {
        format!("Its misses are {ratio:.3} times those of the optimum at this size; ")
    });
    format!(
        "{} finds {hits} of the experts in {} with {} slots ({:.1}% of all, {} scope){price}. {optimum}\
         the counts are exact, but of one trace of {} sequences.",
        one_line(&row.policy),
        row.phase.name(),
        row.capacity_slots,
        row.capacity_share * 100.0,
        row.scope.name(),
        report.trace.sequences,
    )
}
