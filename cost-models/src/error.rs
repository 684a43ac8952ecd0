//! What can be wrong with a profile or with the name of a link.
//!
//! Each error says which profile, which field and why, so that a person can mend the file without reading the code.

use std::path::PathBuf;

use thiserror::Error;

/// A profile could not be read, parsed or believed.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("cannot read profile {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not TOML of the expected fields.
    #[error("profile {origin} is not valid: {source}")]
    Toml {
        /// The file's or the profile's name.
        origin: String,
        /// Line, column and reason.
        source: Box<toml::de::Error>,
    },
    /// A profile could not be written as TOML.
    #[error("profile {origin} cannot be written: {source}")]
    Write {
        /// The profile's name.
        origin: String,
        /// The reason.
        source: Box<toml::ser::Error>,
    },
    /// A field holds a value that no link can have.
    #[error("profile {origin}: {field} {why}")]
    Invalid {
        /// The profile's name.
        origin: String,
        /// The field, dotted.
        field: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// Several things are wrong.
    #[error("profile {origin}: {} faults\n  {}", faults.len(), faults.join("\n  "))]
    Several {
        /// The profile's name.
        origin: String,
        /// Each with its field, what is wrong and what would be right.
        faults: Vec<String>,
    },
    /// One thing is wrong.
    #[error("profile {origin}: {fault}")]
    Fault {
        /// The profile's name.
        origin: String,
        /// The field, what is wrong and what would be right.
        fault: String,
    },
}

impl ProfileError {
    /// One fault or several of one profile.
    pub(crate) fn faults(origin: &str, mut faults: Vec<String>) -> Self {
        let origin = origin.to_owned();
        match faults.len() {
            1 => Self::Fault { origin, fault: faults.remove(0) },
            _ => Self::Several { origin, faults },
        }
    }

    pub(crate) fn invalid(origin: &str, field: &str, why: impl Into<String>) -> Self {
        Self::Invalid { origin: origin.into(), field: field.into(), why: why.into() }
    }
}

/// No link has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown link `{name}`{} known links: {}", did_you_mean(nearest), known.join(", "))]
pub struct UnknownLink {
    /// The name asked for.
    pub name: String,
    /// The known name that looks most like it, if any does.
    pub nearest: Option<String>,
    /// Every known name.
    pub known: Vec<String>,
}

/// No machine has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown machine `{name}`{} known machines: {}", did_you_mean(nearest), known.join(", "))]
pub struct UnknownMachine {
    /// The name asked for.
    pub name: String,
    /// The known name that looks most like it, if any does.
    pub nearest: Option<String>,
    /// Every known name.
    pub known: Vec<String>,
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(|| ";".into(), |name| format!(", did you mean `{name}`?"))
}
