//! Engines as data: what each allocates beside weights, and how fast its kernels are.
//!
//! One TOML file an engine in `engines/`; every figure has its basis, its source and, where it was fitted to reports,
//! the spread in which so many of them lie. Rules that a figure belongs to are in [`memory`] and [`speed`].

pub mod buffers;
mod figure;
pub mod memory;
pub mod prefill;
pub mod speed;

use std::path::Path;

use hotset_cost_models::error::ProfileError;
use serde::Deserialize;
use thiserror::Error;

pub use figure::{Fitted, Spread};
pub use memory::{BufferRules, EngineMemory, Latent, ProfileRules};
pub use speed::{EngineSpeed, SpeedFigures};

/// An engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// The name, as given on a command line.
    pub name: String,
    /// One line for a person.
    pub description: String,
    /// How reports and people call it: a name that begins with one of these, in any case, is this engine.
    pub called: Vec<String>,
    /// Whose pages keep keys and values.
    #[serde(default)]
    pub pages: Pages,
    /// What it allocates, where that is known.
    pub memory: Option<EngineMemory>,
    /// How fast it is, where that is known.
    pub speed: Option<EngineSpeed>,
}

/// How an engine lays out keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// The bytes alone.
    #[default]
    Algorithm,
    /// vLLM's blocks.
    Vllm,
    /// llama.cpp's cells.
    LlamaCpp,
}

/// No engine has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown engine `{name}`{near}; known: {}, or a file (.toml)", known.join(", "))]
pub struct UnknownEngine {
    /// The name asked for.
    pub name: String,
    /// The nearest known one, as the end of a sentence.
    pub near: String,
    /// Every known name.
    pub known: Vec<String>,
}

const ENGINES: [&str; 12] = [
    include_str!("../../engines/llama-cpp.toml"),
    include_str!("../../engines/ik-llama-cpp.toml"),
    include_str!("../../engines/vllm.toml"),
    include_str!("../../engines/sglang.toml"),
    include_str!("../../engines/ktransformers.toml"),
    include_str!("../../engines/tensorrt-llm.toml"),
    include_str!("../../engines/mlx.toml"),
    include_str!("../../engines/freetoken.toml"),
    include_str!("../../engines/ds4.toml"),
    include_str!("../../engines/imp.toml"),
    include_str!("../../engines/colibri.toml"),
    include_str!("../../engines/bigmoeonedge.toml"),
];

/// Every engine that comes with the crate, in a fixed order.
///
/// # Panics
/// Never: a test loads them all.
#[must_use]
pub fn builtin_engines() -> Vec<Engine> {
    let load = |text| Engine::from_toml_str(text).expect("built-in engines are valid");
    ENGINES.into_iter().map(load).collect()
}

/// The built-in engine of this name, or of a name that it goes by.
///
/// # Errors
/// [`UnknownEngine`] with the nearest name and all of them.
pub fn find_engine(name: &str) -> Result<Engine, UnknownEngine> {
    let mut engines = builtin_engines();
    let exact = engines.iter().position(|engine| engine.name.eq_ignore_ascii_case(name));
    match exact.or_else(|| called(&engines, name)) {
        Some(index) => Ok(engines.swap_remove(index)),
        None => {
            let known: Vec<String> = engines.into_iter().map(|engine| engine.name).collect();
            let near = hotset_names::nearest(name, known.iter().map(String::as_str));
            let near = hotset_names::suggestion(near);
            Err(UnknownEngine { name: name.to_owned(), near, known })
        }
    }
}

/// The engine whose longest name a text begins with, as reports write it (`llama.cpp b4567`, `SGLang + kt`).
#[must_use]
pub fn called(engines: &[Engine], text: &str) -> Option<usize> {
    let text = plain(text);
    let longest = |engine: &Engine| {
        let names = engine.called.iter().map(|name| plain(name));
        names.filter(|name| text.starts_with(name)).map(|name| name.len()).max()
    };
    let matches = engines.iter().enumerate().filter_map(|(i, engine)| Some((longest(engine)?, i)));
    matches.max_by_key(|(length, index)| (*length, usize::MAX - index)).map(|(_, index)| index)
}

/// Letters and digits in lower case: what of a name tells it from others.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || *c == '+').flat_map(char::to_lowercase).collect()
}

impl Engine {
    /// From the text of a TOML file.
    ///
    /// # Errors
    /// [`ProfileError`] when the text is not TOML of these fields or a value is impossible.
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileError> {
        parse(text, "(text)")
    }

    /// From a TOML file.
    ///
    /// # Errors
    /// [`ProfileError`], as [`Engine::from_toml_str`], or when the file cannot be read.
    pub fn from_toml_path(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = hotset_cost_models::read_profile(path)?;
        parse(&text, &path.display().to_string())
    }
}

fn parse(text: &str, origin: &str) -> Result<Engine, ProfileError> {
    let engine: Engine = toml::from_str(text)
        .map_err(|source| ProfileError::Toml { origin: origin.into(), source: Box::new(source) })?;
    let invalid = |field: &str, why: &str| ProfileError::Invalid {
        origin: origin.into(),
        field: field.to_owned(),
        why: why.to_owned(),
    };
    if engine.name.trim().is_empty() {
        return Err(invalid("name", "is empty"));
    }
    if engine.called.iter().any(|name| plain(name).is_empty()) {
        return Err(invalid("called", "has a name without letters or digits"));
    }
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_load_and_are_found_as_people_call_them() {
        assert_eq!(builtin_engines().len(), ENGINES.len());
        let name = |text| find_engine(text).map(|engine| engine.name).unwrap_or_default();
        assert_eq!(name("llama.cpp"), "llama.cpp");
        assert_eq!(name("llama-cpp"), "llama.cpp");
        assert_eq!(name("llama.cpp b4567 (CUDA)"), "llama.cpp");
        assert_eq!(name("ik_llama.cpp"), "ik_llama.cpp");
        assert_eq!(name("SGLang + kt-kernel"), "KTransformers");
        assert_eq!(name("SGLang 0.5"), "SGLang");
        assert_eq!(name("vLLM-Ascend"), "vLLM");
        assert_eq!(name("ollama 0.1"), "llama.cpp");
        let told = find_engine("lama.cpp").unwrap_err().to_string();
        assert!(told.contains("did you mean 'llama.cpp'"), "{told}");
    }

    #[test]
    fn a_bad_file_says_where() {
        let told = Engine::from_toml_str("name = \"x\"\nbogus = 1").unwrap_err().to_string();
        assert!(told.contains("bogus"), "{told}");
        let empty = "name = \" \"\ndescription = \"\"\ncalled = []";
        let told = Engine::from_toml_str(empty).unwrap_err().to_string();
        assert!(told.contains("name is empty"), "{told}");
    }
}
