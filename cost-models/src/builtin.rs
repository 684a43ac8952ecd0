//! The profiles that come with the crate.
//!
//! Links that articles measured are one file each; machines that this project measured are fitted files with several
//! links. Adding one adds a file in `profiles/` and a line here.

use crate::error::{UnknownLink, UnknownMachine};
use crate::link::Link;
use crate::machine::MachineProfile;

const LINKS: [&str; 5] = [
    include_str!("../profiles/zgx-pcie.toml"),
    include_str!("../profiles/zgx-c2c.toml"),
    include_str!("../profiles/a100-pcie.toml"),
    include_str!("../profiles/spark-pinned.toml"),
    include_str!("../profiles/freetoken-pcie.toml"),
];
const MACHINES: [&str; 1] = [include_str!("../profiles/h200.toml")];

/// Every machine that comes with the crate, in a fixed order.
///
/// # Panics
/// Never: a test loads them all.
pub fn builtin_machines() -> Vec<MachineProfile> {
    let load = |text| MachineProfile::from_toml_str(text).expect("built-in machines are valid");
    MACHINES.into_iter().map(load).collect()
}

/// Every link that comes with the crate, those of machines last, in a fixed order. Other measured paths of machines
/// are not among them, but [`find_link`] finds them.
///
/// # Panics
/// Never: a test loads them all.
pub fn builtin_links() -> Vec<Link> {
    let load = |text| Link::from_toml_str(text).expect("built-in links are valid");
    let machines = builtin_machines().into_iter().flat_map(|machine| machine.links);
    LINKS.into_iter().map(load).chain(machines).collect()
}

/// The built-in link of this name.
///
/// # Errors
/// [`UnknownLink`] with the nearest name and all of them.
pub fn find_link(name: &str) -> Result<Link, UnknownLink> {
    let mut links = builtin_links();
    if let Some(index) = links.iter().position(|link| link.name == name) {
        return Ok(links.swap_remove(index));
    }
    let other = builtin_machines().into_iter().flat_map(|machine| machine.other_paths);
    if let Some(path) = other.into_iter().find(|path| path.name == name) {
        return Ok(path);
    }
    let known: Vec<String> = links.into_iter().map(|link| link.name).collect();
    Err(UnknownLink { name: name.into(), nearest: nearest(name, &known), known })
}

/// The built-in machine of this name.
///
/// # Errors
/// [`UnknownMachine`] with the nearest name and all of them.
pub fn find_machine(name: &str) -> Result<MachineProfile, UnknownMachine> {
    let mut machines = builtin_machines();
    if let Some(index) = machines.iter().position(|machine| machine.name == name) {
        return Ok(machines.swap_remove(index));
    }
    let known: Vec<String> = machines.into_iter().map(|machine| machine.name).collect();
    Err(UnknownMachine { name: name.into(), nearest: nearest(name, &known), known })
}

/// The known name that a mistyped one may have meant.
pub(crate) fn nearest(name: &str, known: &[String]) -> Option<String> {
    hotset_names::nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_loads_under_its_name() {
        let names: Vec<String> = builtin_links().into_iter().map(|link| link.name).collect();
        assert_eq!(
            names,
            [
                "zgx-pcie",
                "zgx-c2c",
                "a100-pcie",
                "spark-pinned",
                "freetoken-pcie",
                "h200-nvlink",
                "h200-pcie"
            ]
        );
        for name in names {
            assert_eq!(find_link(&name).unwrap().name, name);
        }
        assert_eq!(find_machine("h200").unwrap().links.len(), 2);
    }

    #[test]
    fn other_paths_are_found_by_name_only() {
        let pageable = find_link("h200-pcie-pageable-h2d").unwrap();
        assert!(!builtin_links().contains(&pageable));
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let error = find_link("zgx-pci").unwrap_err();
        assert_eq!(error.nearest.as_deref(), Some("zgx-pcie"));
        assert_eq!(
            error.to_string(),
            "unknown link `zgx-pci`, did you mean `zgx-pcie`? known links: zgx-pcie, zgx-c2c, \
             a100-pcie, spark-pinned, freetoken-pcie, h200-nvlink, h200-pcie"
        );
        assert_eq!(find_link("???").unwrap_err().nearest, None);
        let error = find_machine("h20").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown machine `h20`, did you mean `h200`? known machines: h200"
        );
    }
}
