//! What can be wrong with a model's files or its name.
//!
//! Each error says which file, which field or byte, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

/// A model could not be read or believed.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not JSON.
    #[error("{origin} is not a model's configuration: {source}")]
    Json {
        /// The file.
        origin: String,
        /// Line, column and reason.
        source: serde_json::Error,
    },
    /// Fields that the architecture needs are absent.
    #[error("{origin}: architecture `{architecture}` needs {}, which the configuration lacks", fields.join(", "))]
    Missing {
        /// The file or name.
        origin: String,
        /// The `model_type`.
        architecture: String,
        /// The fields, with their synonyms.
        fields: Vec<String>,
    },
    /// An architecture that hotset does not know has parts that it cannot guess.
    #[error(
        "{origin}: unknown architecture `{architecture}`: {why}; a mixture of experts with plain attention is read \
         from {}", super::config::needed().join(", ")
    )]
    UnknownArchitecture {
        /// The file or name.
        origin: String,
        /// The `model_type`.
        architecture: String,
        /// What stands in the way.
        why: String,
    },
    /// An architecture that hotset does not know has keys that it does not understand.
    #[error(
        "{origin}: unknown architecture `{architecture}`: {} may stand for weights that would not be counted \
         (`Model::unknown_keys` allows them, and leaves them out)",
        quoted(keys)
    )]
    UnknownKeys {
        /// The file or name.
        origin: String,
        /// The `model_type`.
        architecture: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// A field holds what no model has.
    #[error("{origin}: {field} {why}")]
    Invalid {
        /// The file or name.
        origin: String,
        /// The field.
        field: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// There are no routed experts.
    #[error(
        "{origin}: `{architecture}` is a dense model: it has no routed experts, so there is nothing to cache and \
         every weight is read for every token"
    )]
    Dense {
        /// The file or name.
        origin: String,
        /// The `model_type`.
        architecture: String,
    },
    /// A binary header is truncated or wrong.
    #[error("{origin}: {section} at byte {at}: {why}")]
    Header {
        /// The file.
        origin: String,
        /// Which part of it.
        section: String,
        /// Where it begins.
        at: u64,
        /// What is wrong and what would be right.
        why: String,
    },
    /// No built-in model has this name, and no file either.
    #[error(
        "unknown model `{name}`{}: give a folder with a config.json, a config.json, a .gguf file, or one of: {}",
        nearest.as_ref().map_or_else(String::new, |name| format!(", did you mean `{name}`?")), known.join(", ")
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The known name that looks most like it.
        nearest: Option<String>,
        /// Every known name.
        known: Vec<String>,
    },
}

fn quoted(keys: &[String]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

impl ModelError {
    pub(super) fn invalid(origin: &str, field: &str, why: impl Into<String>) -> Self {
        Self::Invalid { origin: origin.into(), field: field.into(), why: why.into() }
    }

    pub(super) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }
}
