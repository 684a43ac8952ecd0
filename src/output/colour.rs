//! Whether a terminal's tables are coloured.

use std::ffi::OsString;
use std::io::IsTerminal;

/// Colours are for terminals, unless the environment says otherwise (<https://no-color.org>,
/// <https://bixense.com/clicolors>).
pub fn is_wanted() -> bool {
    decide(|name| std::env::var_os(name), std::io::stdout().is_terminal())
}

fn decide(told: impl Fn(&str) -> Option<OsString>, terminal: bool) -> bool {
    let said = |name: &str| told(name).filter(|value| !value.is_empty());
    let is = |name: &str, value: &str| said(name).is_some_and(|told| told == value);
    if said("NO_COLOR").is_some() {
        return false;
    }
    if said("CLICOLOR_FORCE").is_some() && !is("CLICOLOR_FORCE", "0") {
        return true;
    }
    terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_before_the_terminal() {
        let with = |told: &[(&str, &str)], terminal| {
            let find = |name: &str| told.iter().find(|(known, _)| *known == name);
            decide(|name| find(name).map(|(_, value)| value.into()), terminal)
        };
        assert!(with(&[], true) && !with(&[], false));
        assert!(!with(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true));
        assert!(with(&[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")], false));
        assert!(!with(&[("CLICOLOR_FORCE", "0")], false));
        assert!(!with(&[("CLICOLOR", "0")], true) && !with(&[("TERM", "dumb")], true));
    }
}
