//! The machines that come with the crate.
//!
//! One file each in `hardware/`. A name may be multiplied (`4xdgx-spark`, `8xh200`): accelerators fill a host before
//! another one is taken.

use super::Hardware;
use crate::builtin::nearest;
use crate::error::UnknownMachine;

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
const ALIASES: [(&str, &str); 4] =
    [("gb10", "dgx-spark"), ("gb300", "zgx-fury"), ("spark", "dgx-spark"), ("a100", "a100-40gb")];

/// More accelerators than this are a typing error.
const MAX_MULTIPLE: u32 = 1024;

/// Every machine that comes with the crate, with one accelerator, in a fixed order.
///
/// # Panics
/// Never: a test loads them all.
pub fn builtin_hardware() -> Vec<Hardware> {
    let load = |text| Hardware::from_toml_str(text).expect("built-in machines are valid");
    MACHINES.into_iter().map(load).collect()
}

/// The built-in machine of this name, `NxNAME` for several accelerators of it.
///
/// # Errors
/// [`UnknownMachine`] with the nearest name and all of them.
pub fn find_hardware(name: &str) -> Result<Hardware, UnknownMachine> {
    let (multiple, single) = split(name);
    let wanted = ALIASES.iter().find(|(alias, _)| *alias == single).map_or(single, |found| found.1);
    let machines = builtin_hardware();
    match machines.iter().find(|machine| machine.name == wanted) {
        Some(machine) => Ok(machine.with_accelerators(multiple)),
        None => {
            let known: Vec<String> = machines.into_iter().map(|machine| machine.name).collect();
            Err(UnknownMachine { name: name.into(), nearest: nearest(single, &known), known })
        }
    }
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
