//! What a profile's file describes, told by fields that no other kind has: one that is given to the
//! wrong flag is sent to the right one.

use std::path::Path;

use hotset::cost_models::ProfileError;

use crate::fault::Fault;
use crate::input::read_text;

/// No profile is longer.
pub(super) const MOST_PROFILE_BYTES: u64 = 16 << 20;

/// What a file can describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One link.
    Link,
    /// A measured machine: its links and kernels.
    Links,
    /// A disk.
    Disk,
    /// A machine to plan for.
    Hardware,
    /// An engine to plan for.
    Engine,
}

impl Kind {
    /// By the fields; `None` for what is no TOML, or says nothing that tells.
    fn of(text: &str) -> Option<Self> {
        let table = text.parse::<toml::Table>().ok()?;
        let has = |keys: &[&str]| keys.iter().any(|&key| table.contains_key(key));
        if has(&["links"]) {
            Some(Self::Links)
        } else if has(&["cost"]) {
            Some(Self::Link)
        } else if has(&["rates", "queue_depth", "latency_us"]) {
            Some(Self::Disk)
        } else if has(&["called"]) {
            Some(Self::Engine)
        } else if has(&["base", "memory", "host_memory", "accelerators", "memory_rate"]) {
            Some(Self::Hardware)
        } else {
            None
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Link => "the profile of a link",
            Self::Links => "a profile of links and kernels, as 'hotset link fit' writes it",
            Self::Disk => "the profile of a disk",
            Self::Hardware => "a machine to plan for",
            Self::Engine => "an engine to plan for",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Link => "--link",
            Self::Links => "--link, or as --machine where something is replayed",
            Self::Disk => "--disk",
            Self::Hardware => "--machine of 'hotset plan'",
            Self::Engine => "--engine of 'hotset plan'",
        }
    }
}

/// What became of reading the file at `path` as one of `wanted` for `flag`: a file of another kind is
/// told as what it is.
pub(super) fn read_as<T>(
    path: &str,
    (flag, wanted): (&str, &[Kind]),
    read: Result<T, ProfileError>,
) -> Result<T, Fault> {
    let error = match read {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let text = read_text(Path::new(path), MOST_PROFILE_BYTES).unwrap_or_default();
    match Kind::of(&text).filter(|kind| !wanted.contains(kind)) {
        Some(kind) => Err(Fault::Usage(format!(
            "{path} is {}: give it as {}; {flag} takes {}",
            kind.what(),
            kind.flag(),
            wanted.iter().map(|kind| kind.what()).collect::<Vec<_>>().join(", or "),
        ))),
        None => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_fields() {
        for (text, kind) in [
            ("name = 'x'\n[cost.bandwidth]\ngb_s = 1.0", Some(Kind::Link)),
            ("name = 'x'\nlinks = []", Some(Kind::Links)),
            ("name = 'x'\nrates = []", Some(Kind::Disk)),
            ("base = 'rtx-4090'", Some(Kind::Hardware)),
            ("name = 'x'\ncalled = ['x']", Some(Kind::Engine)),
            ("name = 'x'", None),
            ("no toml", None),
        ] {
            assert_eq!(Kind::of(text), kind, "{text}");
        }
    }
}
