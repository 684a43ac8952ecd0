//! Misses that are not simply fetched: how far their split is from the best, and what is gone
//! without.

use hotset_sim::{LinkPrice, OPEN_LOOP, OpenLoop, Row, Settings, SplitPrice, Window};

use crate::{Cell, Column, Columns, Field, Sheet, one_line};

/// One price of a split, in milliseconds.
type PriceOf = fn(SplitPrice) -> f64;

/// A row's split over one link.
struct Split<'a> {
    row: &'a Row,
    link: &'a LinkPrice,
    split: &'a SplitPrice,
}

impl<'a> Split<'a> {
    const POLICY: &'a [Field<Self>] =
        &[Field::left("policy", "policy", |of| of.row.policy.as_str().into())];

    /// Where several ways to handle misses are compared.
    const MISS: &'a [Field<Self>] =
        &[Field::left("misses", "miss", |of| of.row.miss.as_deref().unwrap_or("").into())];

    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("link", "link", |of| one_line(&of.link.link).into()),
        Field::right("slots", "capacity_slots", |of| Cell::Count(of.row.capacity_slots.into())),
        Field::right("all\nfetched", "fetch_all_ms", |of| Cell::Number(of.split.fetch_all_ms, 3)),
        Field::right("all by\nhost", "host_all_ms", |of| Cell::Number(of.split.host_all_ms, 3)),
        Field::right("the\nrule", "rule_ms", |of| Cell::Number(of.split.rule_ms, 3)),
        Field::right("unaware", "uncontended_ms", |of| Cell::Number(of.split.uncontended_ms, 3)),
        Field::right("best", "best_ms", |of| Cell::Number(of.split.best_ms, 3)),
        Field::right("rule\nx best", "rule_over_best", |of| {
            Cell::number(of.split.rule_over_best, 3)
        }),
    ];
}

/// The tables of misses: splits where they were judged, losses where something is gone without.
pub(crate) fn sheets(settings: &Settings, rows: &[Row]) -> Vec<Sheet> {
    let whole = || rows.iter().filter(|row| row.window == Window::All);
    let splits: Vec<Split<'_>> = whole()
        .flat_map(|row| {
            let judged = |link| link_split(link).map(|split| Split { row, link, split });
            row.links.iter().filter_map(judged)
        })
        .collect();
    let lost: Vec<Lost<'_>> =
        whole().filter_map(|row| Some(Lost { row, of: row.open_loop.as_ref()? })).collect();
    let mut sheets = Vec::new();
    if !splits.is_empty() {
        let rules: Vec<String> = match &settings.misses[..] {
            [] => vec![settings.serving.misses.to_string()],
            several => several.iter().map(|(_, rule)| rule.to_string()).collect(),
        };
        let title = format!(
            "events with misses, ms a token from routing to the end of the kernel\nthe rule: {}",
            rules.join("; ")
        );
        let mut columns = Columns::of(Split::POLICY);
        if !settings.misses.is_empty() {
            columns.add_all(Split::MISS);
        }
        let mut sheet = columns.and(Split::COLUMNS).sheet(title, splits);
        sheet.note = "each event by itself, with the residents that it found; best: the number of\n\
                      copies that ends first; unaware: the best if link and host did not slow each\n\
                      other, which they do (unless contention is off)"
            .to_owned();
        sheets.push(sheet);
    }
    if !lost.is_empty() {
        let mut caveats: Vec<String> = Vec::new();
        for told in lost.iter().filter_map(|lost| caveat(lost.of)) {
            if !caveats.contains(&told) {
                caveats.push(told);
            }
        }
        let mut columns = Columns::of(Lost::POLICY);
        if !settings.misses.is_empty() {
            columns.add_all(Lost::MISS);
        }
        let mut columns = columns.and(Lost::COLUMNS);
        if lost.iter().any(|lost| lost.of.low_precision > 0) {
            columns.add_all(Lost::SMALLER);
        }
        let mut sheet = columns.sheet(OPEN_LOOP, lost);
        sheet.note = caveats.join("\n");
        sheets.push(sheet);
    }
    sheets
}

/// What a loss of quality rests on.
fn caveat(of: &OpenLoop) -> Option<String> {
    let quality = of.quality.as_ref()?;
    let (from, to) = quality.measured;
    let (from, to) = (from * 100.0, to * 100.0);
    let measured = match from < to {
        true => format!(
            "at {from:.1}% to {to:.1}% of the accesses, between\n\
             which it is interpolated, and beyond which nothing is said."
        ),
        false => format!("at {from:.1}% of the accesses alone."),
    };
    Some(format!(
        "MMLU-Pro points lost: measured {measured}\n{}:\n{}",
        quality.source,
        quality.caveat.replace("; ", ";\n"),
    ))
}

fn link_split(link: &LinkPrice) -> Option<&SplitPrice> {
    link.split.as_ref()
}

/// What a row goes without.
struct Lost<'a> {
    row: &'a Row,
    of: &'a OpenLoop,
}

/// A share of the row's accesses, in percent.
fn share(count: u64, row: &Row) -> Cell {
    Cell::percent((row.accesses > 0).then(|| count as f64 / row.accesses as f64))
}

impl<'a> Lost<'a> {
    const POLICY: &'a [Field<Self>] =
        &[Field::left("policy", "policy", |lost| lost.row.policy.as_str().into())];

    /// Where some misses came as smaller copies.
    const SMALLER: &'a [Field<Self>] =
        &[Field::right("smaller\n%", "low_precision_percent", |lost| {
            share(lost.of.low_precision, lost.row)
        })];

    const MISS: &'a [Field<Self>] =
        &[Field::left("misses", "miss", |lost| lost.row.miss.as_deref().unwrap_or("").into())];

    const COLUMNS: &'a [Field<Self>] = &[
        Field::right("slots", "capacity_slots", |lost| Cell::Count(lost.row.capacity_slots.into())),
        Field::right("dropped\n%", "dropped_percent", |lost| share(lost.of.dropped, lost.row)),
        Field::right("replaced\n%", "substituted_percent", |lost| {
            share(lost.of.substituted, lost.row)
        }),
        Field::right("deferred\n%", "deferred_percent", |lost| share(lost.of.deferred, lost.row)),
        Field::right("weight\nlost %", "weight_lost_percent", |lost| {
            Cell::percent(lost.of.weight_lost)
        }),
        Field::right("MMLU-Pro\npoints", "mmlu_pro_points_lost", |lost| {
            Cell::number(lost.of.quality.as_ref().and_then(|of| of.mmlu_pro_points), 1)
        }),
    ];
}

/// Their columns of every row in CSV; none where nothing is judged or gone without.
pub(crate) fn add_flat<'a>(columns: &mut Columns<'a, Row>, settings: &'a Settings, rows: &[Row]) {
    const FLAT: &[Field<Row>] = &[
        Field::flat("label", |row| row.open_loop.as_ref().map_or("", |of| of.label).into()),
        Field::flat("dropped", |row| {
            Cell::Count(row.open_loop.as_ref().map_or(0, |of| of.dropped))
        }),
        Field::flat("substituted", |row| {
            Cell::Count(row.open_loop.as_ref().map_or(0, |of| of.substituted))
        }),
        Field::flat("deferred", |row| {
            Cell::Count(row.open_loop.as_ref().map_or(0, |of| of.deferred))
        }),
        Field::flat("weight_lost", |row| {
            Cell::number(row.open_loop.as_ref().and_then(|of| of.weight_lost), 6)
        }),
        Field::flat("mmlu_pro_points_lost", |row| {
            let quality = row.open_loop.as_ref().and_then(|of| of.quality.as_ref());
            Cell::number(quality.and_then(|quality| quality.mmlu_pro_points), 3)
        }),
    ];
    const LOW: &[Field<Row>] =
        &[Field::flat("low_precision", |row| Cell::Count(row.low_precision))];
    if rows.iter().any(|row| row.open_loop.is_some()) {
        columns.add_all(FLAT);
    }
    if rows.iter().any(|row| row.low_precision > 0) {
        columns.add_all(LOW);
    }
    for (index, link) in settings.links.iter().enumerate() {
        let of = move |row: &Row| row.links.get(index).and_then(|link| link.split);
        if rows.iter().any(|row| of(row).is_some()) {
            const PRICES: [(&str, PriceOf); 3] = [
                ("rule_ms", |split| split.rule_ms),
                ("best_ms", |split| split.best_ms),
                ("uncontended_ms", |split| split.uncontended_ms),
            ];
            for (name, price) in PRICES {
                let name = format!("split_{name}:{link}");
                columns.add(Column::right(&name, &name), move |row| {
                    Cell::number(of(row).map(price), 6)
                });
            }
        }
    }
}
