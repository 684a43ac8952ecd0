//! Families of machines: one file, one short entry a card.
//!
//! An entry's `card` is a line of a data sheet: memory, its rate, dense 16-bit operations, the slot. What it does not
//! say is taken from the file's `defaults`; whatever else stands in the entry takes the place of those. A card of several
//! sizes of memory becomes a machine for each, and one of the plain name with the most.

use serde::Deserialize;
use toml::{Table, Value};

const FAMILIES: [&str; 4] = [
    include_str!("../../hardware/geforce.toml"),
    include_str!("../../hardware/workstation.toml"),
    include_str!("../../hardware/datacentre.toml"),
    include_str!("../../hardware/unified.toml"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    source: String,
    compute_source: String,
    defaults: Table,
    machine: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    card: Card,
    source: Option<String>,
    basis: Option<String>,
    compute_source: Option<String>,
    #[serde(flatten)]
    own: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    name: String,
    what: String,
    gib: Option<f64>,
    gb: Option<f64>,
    #[serde(default)]
    sizes_gb: Vec<u32>,
    gb_s: f64,
    tflops: Option<f64>,
    pcie: Option<String>,
    architecture: String,
}

/// Every machine of every family, as a file of its own would have it.
pub(super) fn tables() -> Vec<Table> {
    let family = |text: &str| -> Vec<Table> {
        let family: Family = toml::from_str(text).expect("built-in families are TOML");
        family.tables()
    };
    FAMILIES.into_iter().flat_map(family).collect()
}

impl Family {
    fn tables(self) -> Vec<Table> {
        let Self { source, compute_source, defaults, machine } = self;
        let machines = machine.into_iter();
        machines.flat_map(|entry| entry.tables(&source, &compute_source, &defaults)).collect()
    }
}

impl Entry {
    fn tables(self, source: &str, compute_source: &str, defaults: &Table) -> Vec<Table> {
        let Self { card, source: own_source, basis, compute_source: own_compute, own } = self;
        let source = own_source.unwrap_or_else(|| source.to_owned());
        let basis = basis.unwrap_or_else(|| "published".to_owned());
        let compute_source = own_compute.unwrap_or_else(|| compute_source.to_owned());
        let figure = |unit: &str, value: f64, source: &str| figure(unit, value, &basis, source);
        let mut table = defaults.clone();
        table.extend(own);
        table.insert("memory_rate".into(), figure("gb_s", card.gb_s, &source));
        if let Some(tflops) = card.tflops {
            let basis =
                if compute_source.starts_with("calculated") { "calculated" } else { "published" };
            table.insert("compute".into(), self::figure("tflops", tflops, basis, &compute_source));
        }
        table.insert("architecture".into(), card.architecture.into());
        match card.pcie {
            Some(slot) => drop(table.insert("pcie".into(), slot.into())),
            None => drop(table.entry("link").or_insert_with(|| copy(card.gb_s))),
        }
        let sized = |name: String, unit: &str, value: f64| {
            let mut one = table.clone();
            one.insert("name".into(), name.into());
            let what = match unit {
                "gb" if !card.sizes_gb.is_empty() => format!("{}, {value} GB", card.what),
                _ => card.what.clone(),
            };
            one.insert("description".into(), what.into());
            one.insert("memory".into(), figure(unit, value, &source));
            one
        };
        let mut tables = Vec::new();
        if let Some(most) = card.sizes_gb.iter().max() {
            tables.push(sized(card.name.clone(), "gb", f64::from(*most)));
        }
        if card.sizes_gb.len() > 1 {
            let each = card.sizes_gb.iter();
            tables.extend(
                each.map(|gb| sized(format!("{}-{gb}gb", card.name), "gb", f64::from(*gb))),
            );
        }
        tables.extend(card.gib.map(|gib| sized(card.name.clone(), "gib", gib)));
        tables.extend(card.gb.map(|gb| sized(card.name.clone(), "gb", gb)));
        tables
    }
}

fn figure(unit: &str, value: f64, basis: &str, source: &str) -> Value {
    let mut table = Table::new();
    table.insert(unit.into(), value.into());
    table.insert("basis".into(), basis.into());
    table.insert("source".into(), source.into());
    Value::Table(table)
}

/// The link of one memory: a copy reads and writes it.
fn copy(gb_s: f64) -> Value {
    let mut link = Table::new();
    link.insert("name".into(), "own-memory".into());
    link.insert("kind".into(), "unified".into());
    link.insert("gb_s".into(), (gb_s / 2.0).into());
    link.insert("source".into(), "calculated: a copy reads and writes the one memory".into());
    Value::Table(link)
}
