//! What caches held before the first step, and what bringing it there costs.

use hotset_sim::{Placed, Row, Settings, Window};

use crate::{Cell, Column, Columns, Field, Sheet, one_line};

/// A row whose cache began with experts placed.
struct Loaded<'a> {
    row: &'a Row,
    placed: &'a Placed,
}

impl<'a> Loaded<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("policy", "policy", |of| of.row.policy.as_str().into()),
        Field::left("scope", "scope", |of| of.row.scope.name().into()),
        Field::right("slots", "capacity_slots", |of| Cell::Count(of.row.capacity_slots.into())),
        Field::right("placed", "placed", |of| Cell::Count(of.placed.experts)),
        Field::right("MiB", "placed_mib", |of| Cell::number(of.placed.mib, 1)),
    ];
}

/// A table of the rows whose caches began with experts placed; none where all began empty.
pub(crate) fn sheet(settings: &Settings, rows: &[Row]) -> Option<Sheet> {
    let mut loaded: Vec<Loaded<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.window == Window::All) {
        let Some(placed) = &row.placed else { continue };
        let same = |other: &Loaded<'_>| {
            (&other.row.policy, other.row.scope, other.row.capacity_slots)
                == (&row.policy, row.scope, row.capacity_slots)
        };
        if !loaded.iter().any(same) {
            loaded.push(Loaded { row, placed });
        }
    }
    let first = loaded.first()?;
    let mut columns = Columns::of(Loaded::COLUMNS);
    for (index, link) in settings.links.iter().enumerate().take(first.placed.load_ms.len()) {
        let heading = one_line(link).replacen('-', "-\n", 1);
        columns.add(
            Column::right(&format!("{heading}\nms"), &format!("load_ms:{link}")),
            move |of: &Loaded<'_>| Cell::number(of.placed.load_ms.get(index).copied(), 1),
        );
    }
    let mut sheet = columns.sheet("placed before the first step", loaded);
    sheet.note = "no other figure has what bringing them there takes; x Belady is against the\n\
                  bound less the experts placed"
        .to_owned();
    Some(sheet)
}

/// The columns of every row in CSV; none where all caches began empty.
pub(crate) fn add_flat<'a>(columns: &mut Columns<'a, Row>, settings: &'a Settings, rows: &[Row]) {
    const FLAT: &[Field<Row>] = &[
        Field::flat("placed", |row| {
            Cell::Count(row.placed.as_ref().map_or(0, |placed| placed.experts))
        }),
        Field::flat("placed_mib", |row| {
            Cell::number(row.placed.as_ref().and_then(|placed| placed.mib), 4)
        }),
    ];
    if rows.iter().all(|row| row.placed.is_none()) {
        return;
    }
    columns.add_all(FLAT);
    for (index, link) in settings.links.iter().enumerate() {
        let name = format!("load_ms:{link}");
        columns.add(Column::right(&name, &name), move |row| {
            let load = |placed: &Placed| placed.load_ms.get(index).copied();
            Cell::number(row.placed.as_ref().and_then(load), 6)
        });
    }
}
