//! A model from whatever a person has: a name, a folder, a configuration, a GGUF file.

use std::path::{Path, PathBuf};

use super::config::UnknownKeys;
use super::{Model, ModelError};

impl Model {
    /// Opens what `spec` names: a folder with a `config.json` (and safetensors), a `config.json`, a `.gguf` file (any
    /// shard of several), or a built-in name.
    ///
    /// Safetensors headers beside the configuration make sizes exact; an index alone is compared with the formulas.
    ///
    /// # Errors
    /// [`ModelError`]: what cannot be read or believed, or a name that nothing has.
    pub fn open(spec: &str) -> Result<Self, ModelError> {
        Self::open_with(spec, UnknownKeys::Refuse)
    }

    /// As [`open`](Self::open), with a choice of what becomes of a configuration's keys that nothing understands.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(spec: &str, unknown: UnknownKeys) -> Result<Self, ModelError> {
        let path = Path::new(spec);
        if path.is_dir() {
            let mut model = Self::from_config_path_with(&path.join("config.json"), unknown)?;
            model.name = name_of(path);
            return model.with_safetensors(path);
        }
        let extension = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("gguf") => Self::from_gguf_path(path),
            Some("json") => {
                let mut model = Self::from_config_path_with(path, unknown)?;
                // Configurations are all called config.json: the folder says which model it is.
                let folder =
                    path.parent().filter(|_| path.file_stem().is_some_and(|stem| stem == "config"));
                model.name = name_of(folder.unwrap_or(path));
                Ok(model)
            }
            _ => Self::builtin(spec),
        }
    }
}

/// The last part of a path without `.json`.
fn name_of(path: &Path) -> String {
    let full: PathBuf = path.canonicalize().unwrap_or_else(|_| path.into());
    let name = if full.extension().is_some_and(|extension| extension == "json") {
        full.file_stem()
    } else {
        full.file_name()
    };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
