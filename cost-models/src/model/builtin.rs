//! Models that are known by name.
//!
//! Facts of published configurations, one table a family in `models/`, in the vocabulary of `config.json` so that the
//! same reader reads them. Lists over layers are written short: `{ repeat = [[20, [4, 128]], [1, [0]]] }`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::UnknownKeys;
use super::{Model, ModelError};
use crate::builtin::nearest;

const FAMILIES: [&str; 7] = [
    include_str!("../../models/deepseek.toml"),
    include_str!("../../models/kimi-glm.toml"),
    include_str!("../../models/qwen.toml"),
    include_str!("../../models/open-weights.toml"),
    include_str!("../../models/hybrids.toml"),
    include_str!("../../models/more-open-weights.toml"),
    include_str!("../../models/more-hybrids.toml"),
];

#[derive(Deserialize)]
struct Family {
    model: Vec<Entry>,
}

#[derive(Clone, Deserialize)]
struct Entry {
    name: String,
    /// Other models of the same geometry: revisions, variants that see.
    #[serde(default)]
    also: Vec<String>,
    repository: String,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// A built-in model's name and where it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinModel {
    /// The name that [`Model::builtin`] takes.
    pub name: String,
    /// The repository on Hugging Face whose configuration the facts are from.
    pub repository: String,
}

fn entries() -> Vec<Entry> {
    let family = |text| -> Vec<Entry> {
        let family: Family = toml::from_str(text).expect("built-in models are TOML");
        family.model
    };
    FAMILIES.into_iter().flat_map(family).collect()
}

/// Every built-in model, in the order of the tables.
///
/// # Panics
/// Never: a test loads them all.
pub fn builtin_models() -> Vec<BuiltinModel> {
    let listing = |entry: Entry| BuiltinModel { name: entry.name, repository: entry.repository };
    entries().into_iter().map(listing).collect()
}

impl Model {
    /// The built-in model of this name, in any case; a repository's owner may stand before it, and after it what names a
    /// revision or a training, which have the same sizes (`-Instruct-2507`, `-Thinking`, `-0528`).
    ///
    /// # Errors
    /// [`ModelError::Unknown`] with the nearest name and all of them.
    pub fn builtin(name: &str) -> Result<Self, ModelError> {
        let mut entries = entries();
        let found = names_of(name).find_map(|name| entries.iter().position(|e| e.is_called(name)));
        let Some(index) = found else {
            let known: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
            let nearest = nearest(name, &known);
            return Err(ModelError::Unknown { name: name.into(), nearest, known });
        };
        let Entry { name, fields, .. } = entries.swap_remove(index);
        Self::from_config(&unfold(Value::Object(fields)), &name, UnknownKeys::Refuse)
    }
}

impl Entry {
    fn is_called(&self, name: &str) -> bool {
        let also = self.also.iter().map(String::as_str);
        let short = self.repository.rsplit('/').next();
        let mut names = [self.name.as_str(), &self.repository].into_iter().chain(also).chain(short);
        names.any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Ends of names that change no size.
const ENDS: [&str; 13] = [
    "-instruct",
    "-thinking",
    "-base",
    "-chat",
    "-it",
    "-gguf",
    "-bf16",
    "-2507",
    "-0324",
    "-0528",
    "-0905",
    "-hf",
    "-preview",
];

/// A name as given, then without what names a revision or a training.
fn names_of(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| without_end(name))
}

fn without_end(name: &str) -> Option<&str> {
    ENDS.iter().find_map(|end| {
        let at = name.len().checked_sub(end.len()).filter(|at| name.is_char_boundary(*at))?;
        (at > 0 && name[at..].eq_ignore_ascii_case(end)).then(|| &name[..at])
    })
}

/// Writes out lists that are given as repeated runs.
fn unfold(value: Value) -> Value {
    match value {
        Value::Object(fields) => match runs(&fields) {
            Some(list) => Value::Array(list),
            None => fields.into_iter().map(|(key, value)| (key, unfold(value))).collect(),
        },
        other => other,
    }
}

fn runs(fields: &Map<String, Value>) -> Option<Vec<Value>> {
    let mut list = Vec::new();
    for run in fields.get("repeat")?.as_array()? {
        let times = run.get(0)?.as_u64()?;
        let items = run.get(1)?.as_array()?;
        for _ in 0..times {
            list.extend(items.iter().cloned());
        }
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_loads_under_its_name() {
        let models = builtin_models();
        assert_eq!(models.len(), 69);
        for BuiltinModel { name, repository } in models {
            let model = Model::builtin(&name).unwrap();
            assert_eq!(model.name, name);
            assert_eq!(Model::builtin(&repository.to_uppercase()).unwrap(), model);
        }
    }

    #[test]
    fn a_wrong_name_suggests_the_nearest() {
        let error = Model::builtin("DeepSeek-V33").unwrap_err().to_string();
        assert!(error.contains("did you mean `DeepSeek-V3`?"), "{error}");
        assert!(error.contains("config.json"), "{error}");
        let error = Model::builtin("qwn").unwrap_err().to_string();
        assert!(error.contains("did you mean `Qwen"), "{error}");
    }

    #[test]
    fn revisions_are_the_model_that_they_revise() {
        for (name, known) in [
            ("DeepSeek-R1-0528", "DeepSeek-R1"),
            ("Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"),
            ("Kimi-K2-Thinking", "Kimi-K2.5"),
            ("kimi-k2-instruct", "Kimi-K2"),
            ("GLM-4.7", "GLM-4.6"),
        ] {
            assert_eq!(Model::builtin(name).unwrap().name, known, "{name}");
        }
        assert!(Model::builtin("-Instruct").is_err());
    }

    #[test]
    fn runs_are_written_out() {
        let folded: Value =
            toml::from_str("a = { repeat = [[2, [1, 2]], [1, [0]]] }\nb = { c = 3 }").unwrap();
        assert_eq!(unfold(folded).to_string(), r#"{"a":[1,2,1,2,0],"b":{"c":3}}"#);
    }
}
