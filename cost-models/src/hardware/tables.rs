//! The tables of the machines that come with the crate, as their files have them.

use toml::{Table, Value};

use super::family;
use crate::builtin::nearest;
use crate::error::UnknownMachine;

/// In full, in the order of listings.
const MACHINES: [&str; 8] = [
    include_str!("../../hardware/zgx-fury.toml"),
    include_str!("../../hardware/rtx-pro-6000.toml"),
    include_str!("../../hardware/a100-40gb.toml"),
    include_str!("../../hardware/dgx-spark.toml"),
    include_str!("../../hardware/h200.toml"),
    include_str!("../../hardware/rtx-3090.toml"),
    include_str!("../../hardware/rtx-4090.toml"),
    include_str!("../../hardware/rtx-5090.toml"),
];

/// Other names for built-in machines.
const ALIASES: [(&str, &str); 8] = [
    ("gb10", "dgx-spark"),
    ("gb300", "zgx-fury"),
    ("spark", "dgx-spark"),
    ("a100", "a100-40gb"),
    ("rtx-3060-12gb", "rtx-3060"),
    ("rtx-4060-ti-16gb", "rtx-4060-ti"),
    ("rtx-5060-ti-16gb", "rtx-5060-ti"),
    ("rtx-3080-10gb", "rtx-3080"),
];

/// All of them, in the order of listings.
pub(super) fn tables() -> Vec<Table> {
    let single = |text: &&str| toml::from_str::<Table>(text).expect("built-in machines are TOML");
    MACHINES.iter().map(single).chain(family::tables()).collect()
}

pub(super) fn name(table: &Table) -> &str {
    table.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The fields of the built-in machine of this name.
pub(super) fn find_table(single: &str) -> Result<Table, UnknownMachine> {
    let lower = single.to_lowercase();
    let wanted =
        ALIASES.iter().find(|(alias, _)| *alias == lower).map_or(lower.as_str(), |found| found.1);
    let mut tables = tables();
    match tables.iter().position(|table| name(table) == wanted) {
        Some(index) => Ok(tables.swap_remove(index)),
        None => {
            let known: Vec<String> = tables.iter().map(|table| name(table).to_owned()).collect();
            Err(UnknownMachine { name: single.into(), nearest: nearest(single, &known), known })
        }
    }
}
