//! How sure the figures of a sample are: what 95% of the resamples of its sequences lie in.

use hotset_sim::{Interval, Row, Sampled, Settings, Window};

use crate::{Cell, Column, Columns, Field, Sheet, one_line};

/// A row with its intervals.
struct Sure<'a> {
    row: &'a Row,
    sampled: &'a Sampled,
}

impl<'a> Sure<'a> {
    const NAMES: &'a [Field<Self>] = &[
        Field::left("policy", "policy", |of| of.row.policy.as_str().into()),
        Field::left("phase", "phase", |of| of.row.phase.name().into()),
        Field::left("scope", "scope", |of| of.row.scope.name().into()),
        Field::right("slots", "capacity_slots", |of| Cell::Count(of.row.capacity_slots.into())),
    ];
    const FIGURES: &'a [Field<Self>] = &[
        Field::right("seq.", "sequences", |of| Cell::Count(of.sampled.sequences as u64)),
        Field::right("hit %\n95%", "hit_percent_95", |of| between(&of.sampled.hit_rate, 100.0, 2)),
    ];
}

/// From the lower to the upper end.
fn between(of: &Interval, scale: f64, decimals: usize) -> Cell {
    if !(of.low.is_finite() && of.high.is_finite()) {
        return Cell::Empty;
    }
    format!("{:.decimals$}..{:.decimals$}", of.low * scale, of.high * scale).into()
}

/// A table of the rows' intervals; none where nothing was sampled.
pub(crate) fn sheet(settings: &Settings, rows: &[Row]) -> Option<Sheet> {
    let sample = settings.sample.as_ref()?;
    let whole = rows.iter().filter(|row| row.window == Window::All);
    let sure: Vec<Sure<'_>> =
        whole.filter_map(|row| Some(Sure { row, sampled: row.sampled.as_ref()? })).collect();
    let first = sure.first()?;
    let mut columns = Columns::of(Sure::NAMES);
    if !settings.misses.is_empty() {
        columns.add(Column::left("misses", "miss"), |of: &Sure<'_>| {
            of.row.miss.as_deref().unwrap_or("").into()
        });
    }
    columns.add_all(Sure::FIGURES);
    for (index, price) in first.sampled.links.iter().enumerate() {
        let heading = one_line(&price.link).replacen('-', "-\n", 1);
        columns.add(
            Column::right(&heading, &format!("ms_per_token_95:{}", price.link)),
            move |of: &Sure<'_>| {
                let price = of.sampled.links.get(index);
                price.map_or(Cell::Empty, |price| between(&price.ms_per_token, 1.0, 3))
            },
        );
    }
    let mut sheet = columns.sheet("sampled: where 95% of the resamples lie", sure);
    sheet.note = sample.told();
    Some(sheet)
}

/// What a sweep's tables say of the hit rate and of each link beside the figures themselves.
pub(crate) fn hit_rate(row: &Row) -> Cell {
    row.sampled.as_ref().map_or(Cell::Empty, |sampled| between(&sampled.hit_rate, 100.0, 1))
}

/// The same of the time over a link, by its place.
pub(crate) fn ms_per_token(row: &Row, link: usize) -> Cell {
    let price = row.sampled.as_ref().and_then(|sampled| sampled.links.get(link));
    price.map_or(Cell::Empty, |price| between(&price.ms_per_token, 1.0, 3))
}

/// The columns of every row in CSV; none where nothing was sampled.
pub(crate) fn add_flat<'a>(columns: &mut Columns<'a, Row>, settings: &'a Settings, rows: &[Row]) {
    if rows.iter().all(|row| row.sampled.is_none()) {
        return;
    }
    columns.add_all(FLAT);
    for (index, link) in settings.links.iter().enumerate() {
        for (end, of) in ENDS {
            let name = format!("ms_per_token_{end}:{link}");
            columns.add(Column::right(&name, &name), move |row| {
                let price = row.sampled.as_ref().and_then(|sampled| sampled.links.get(index));
                Cell::number(price.map(|price| of(&price.ms_per_token)).filter(finite), 6)
            });
        }
    }
}

/// An end of an interval, by its name.
type End = (&'static str, fn(&Interval) -> f64);

const ENDS: [End; 2] = [("low", |of| of.low), ("high", |of| of.high)];

const FLAT: &[Field<Row>] = &[
    Field::flat("sampled_sequences", |row| {
        row.sampled.as_ref().map_or(Cell::Empty, |of| Cell::Count(of.sequences as u64))
    }),
    Field::flat("hit_rate_low", |row| hit_end(row, |of| of.low)),
    Field::flat("hit_rate_high", |row| hit_end(row, |of| of.high)),
];

fn hit_end(row: &Row, end: fn(&Interval) -> f64) -> Cell {
    Cell::number(row.sampled.as_ref().map(|of| end(&of.hit_rate)).filter(finite), 6)
}

fn finite(value: &f64) -> bool {
    value.is_finite()
}
