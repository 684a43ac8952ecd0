//! Rows of a comparison, a sweep or a replay as one flat table, for CSV.

use std::collections::BTreeMap;

use hotset_experiments::CostUnit;
use hotset_sim::{LinkPrice, Row, Settings, Window};

use crate::{Cell, Column, Columns, Field, Sheet, verdict};

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
    let mut sheet = columns.sheet("", rows);
    let best = best_rows(rows);
    if best.contains(&true) {
        sheet.columns.push(Column::right("best", "best"));
        for (cells, best) in sheet.rows.iter_mut().zip(best) {
            cells.push(Cell::Count(best.into()));
        }
    }
    sheet
}

/// Of rows of whole runs, which are best of their phase, scope and size; of others none.
fn best_rows(rows: &[Row]) -> Vec<bool> {
    let unit = CostUnit::of_rows(rows);
    let mut best = vec![false; rows.len()];
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.window == Window::All) {
        let group = (row.phase as u8, row.scope.name(), row.capacity_slots);
        groups.entry(group).or_default().push(place);
    }
    for places in groups.into_values() {
        let of_group: Vec<&Row> = places.iter().map(|&place| &rows[place]).collect();
        verdict::best_of(unit, &of_group).into_iter().for_each(|at| best[places[at]] = true);
    }
    best
}
