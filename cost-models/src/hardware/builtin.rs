//! The machines that come with the crate.
//!
//! In `hardware/`: one file a machine that is described in full, and one file a family of cards. A name may be
//! multiplied (`4xdgx-spark`, `8xh200`): accelerators fill a host before another one is taken.

use toml::{Table, Value};

use super::file::from_table;
use super::{Hardware, family};
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

/// More accelerators than this are a typing error.
const MAX_MULTIPLE: u32 = 1024;

fn tables() -> Vec<Table> {
    let single = |text: &&str| toml::from_str::<Table>(text).expect("built-in machines are TOML");
    MACHINES.iter().map(single).chain(family::tables()).collect()
}

fn name(table: &Table) -> &str {
    table.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Every machine that comes with the crate, with one accelerator, in a fixed order.
///
/// # Panics
/// Never: a test loads them all.
pub fn builtin_hardware() -> Vec<Hardware> {
    let load = |table| from_table(table, "built in").expect("built-in machines are valid");
    tables().into_iter().map(load).collect()
}

/// The built-in machine of this name, `NxNAME` for several accelerators of it.
///
/// # Errors
/// [`UnknownMachine`] with the nearest name and all of them.
pub fn find_hardware(name: &str) -> Result<Hardware, UnknownMachine> {
    let (multiple, single) = split(name);
    let table =
        find_table(single).map_err(|error| UnknownMachine { name: name.into(), ..error })?;
    let machine = from_table(table, single).expect("built-in machines are valid");
    Ok(machine.with_accelerators(multiple))
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

/// The built-in machine of a device as drivers and reports name it (`NVIDIA GeForce RTX 4090`, `Apple M4 Max`); where
/// one name has several sizes of memory, the one nearest to `memory` bytes.
#[must_use]
pub fn hardware_of_device(device: &str, memory: Option<u64>) -> Option<Hardware> {
    let text = words(device);
    // A variant's name goes on after the card's, `rtx-4060-ti-8gb`: what stands before its size is the card.
    let stem = |name: &str| {
        let end = name.rfind('-').filter(|at| name.ends_with("gb") && digits(&name[at + 1..]));
        words(end.map_or(name, |at| &name[..at]))
    };
    let alias = |name: &str| {
        let known = DEVICES.iter().filter(|known| known.1 == name);
        known.map(|known| words(known.0)).collect::<Vec<_>>()
    };
    let mut best: Option<(usize, u64, Table)> = None;
    for table in tables() {
        let name = name(&table).to_owned();
        let names = [vec![stem(&name)], alias(&name)].concat();
        let stands = |words: &&Vec<String>| text.windows(words.len()).any(|part| part == **words);
        let Some(length) = names.iter().filter(stands).map(Vec::len).max() else { continue };
        let size = from_table(table.clone(), &name).map_or(0, |machine| machine.memory.value);
        let apart = memory.map_or(0, |memory| memory.abs_diff(size));
        if best.as_ref().is_none_or(|b| length > b.0 || (length == b.0 && apart < b.1)) {
            best = Some((length, apart, table));
        }
    }
    best.and_then(|(_, _, table)| from_table(table, device).ok())
}

/// How drivers call devices whose machine has another name.
const DEVICES: [(&str, &str); 14] = [
    ("GB10", "dgx-spark"),
    ("DGX Spark", "dgx-spark"),
    ("GB300", "zgx-fury"),
    ("A100", "a100-40gb"),
    ("A100 80GB", "a100-80gb-pcie"),
    ("A100-SXM4-80GB", "a100-80gb"),
    ("RTX 4090 48GB", "rtx-4090-48gb"),
    ("Radeon 8060S", "strix-halo"),
    ("Ryzen AI Max", "strix-halo"),
    ("7900 XTX", "radeon-rx-7900-xtx"),
    ("9070 XT", "radeon-rx-9070-xt"),
    ("W7800", "radeon-pro-w7800"),
    ("P40", "tesla-p40"),
    ("V100", "tesla-v100"),
];

fn digits(text: &str) -> bool {
    text.trim_end_matches("gb").bytes().all(|byte| byte.is_ascii_digit())
}

/// Words and numbers in lower case, each apart: `RTX3090 Ti` is `rtx 3090 ti`.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in text.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            match words.last_mut() {
                Some(word)
                    if last.is_ascii_alphanumeric()
                        && last.is_ascii_digit() == c.is_ascii_digit() =>
                {
                    word.push(c)
                }
                _ => words.push(c.into()),
            }
        }
        last = c;
    }
    words
}

/// `8xh200` is 8 of `h200`.
fn split(name: &str) -> (u32, &str) {
    if let Some((count, single)) = name.split_once('x')
        && let Ok(count @ 1..=MAX_MULTIPLE) = count.parse()
    {
        return (count, single);
    }
    (1, name)
}
