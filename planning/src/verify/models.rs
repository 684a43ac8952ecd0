//! Models as people call them.

use hotset_cost_models::Model;
use hotset_cost_models::model::builtin_models;

use super::WhyNot;

/// Models by the names that people give them.
#[derive(Debug, Default)]
pub struct Models {
    /// Names in their plain form, with the name to open.
    names: Vec<(String, String)>,
    /// Models that were given beside the built-in ones.
    own: Vec<Model>,
}

impl Models {
    /// The built-in ones.
    #[must_use]
    pub fn builtin() -> Self {
        let mut names = Vec::new();
        for model in builtin_models() {
            let base = model.repository.rsplit('/').next().unwrap_or_default();
            names.push((plain(base), model.name.clone()));
            names.push((plain(&model.name), model.name));
        }
        Self { names, own: Vec::new() }
    }

    /// Adds a model under its own name, before the built-in ones.
    pub fn add(&mut self, model: Model) {
        self.own.push(model);
    }

    /// The model that `text` means: a name, a repository, or one of either with what tells a version or a format from
    /// others of the same shape.
    ///
    /// # Errors
    /// [`WhyNot`] where none is called so.
    pub fn find(&self, text: &str) -> Result<Model, WhyNot> {
        let wanted = plain(text);
        if let Some(own) = self.own.iter().find(|model| plain(&model.name) == wanted) {
            return Ok(own.clone());
        }
        if let Ok(model) = Model::builtin(text.split('(').next().unwrap_or_default().trim()) {
            return Ok(model);
        }
        let found = readings(text).into_iter().find_map(|reading| self.named(&reading));
        found.unwrap_or_else(|| {
            let text: String = text.chars().take(60).collect();
            Err(WhyNot::new(format!("model '{text}' is not known: give it with `Known::models`")))
        })
    }

    fn named(&self, wanted: &str) -> Option<Result<Model, WhyNot>> {
        if let Some(own) = self.own.iter().find(|model| plain(&model.name) == wanted) {
            return Some(Ok(own.clone()));
        }
        let (_, name) = self.names.iter().find(|(plain, _)| *plain == wanted)?;
        Some(Model::builtin(name).map_err(|error| WhyNot::new(error.to_string())))
    }
}

/// Names of one shape: what people write, and the model whose shape it is.
const SIBLINGS: [(&str, &str); 22] = [
    ("deepseekv3.1", "deepseekv3"),
    ("deepseekr1", "deepseekv3"),
    ("deepseekcoderv2lite", "deepseekv2lite"),
    ("deepseekcoderv2", "deepseekv2.5"),
    ("deepseekv2", "deepseekv2.5"),
    ("kimik2", "kimik2.5"),
    ("kimik2.6", "kimik2.5"),
    ("glm4.6", "glm4.5"),
    ("glm4.7", "glm4.5"),
    ("glm4.5", "glm4.6"),
    ("glm5.1", "glm5"),
    ("minimaxm2", "minimaxm2.5"),
    ("minimaxm2.1", "minimaxm2.5"),
    ("minimaxm2.7", "minimaxm2.5"),
    ("granite3.01ba400m", "granite3.11ba400m"),
    ("granite3.03ba800m", "granite3.13ba800m"),
    ("qwen3coder30ba3b", "qwen330ba3b"),
    ("qwen3vl30ba3b", "qwen330ba3b"),
    ("qwen3vl235ba22b", "qwen3235ba22b"),
    ("qwen3codernext", "qwen3next80ba3b"),
    ("qwen3codernext80ba3b", "qwen3next80ba3b"),
    ("qwen3.535ba3b", "qwen3.635ba3b"),
];

/// Words of a name that say how it was trained or stored, not what it is made of.
const VARIANTS: [&str; 20] = [
    "instruct",
    "chat",
    "base",
    "it",
    "thinking",
    "reasoning",
    "hf",
    "preview",
    "gguf",
    "bf16",
    "fp8",
    "nvfp4",
    "mxfp4",
    "awq",
    "int4",
    "int8",
    "text",
    "tuned",
    "exp",
    "latest",
];

/// A name in the forms in which it may be known, the fullest first.
fn readings(text: &str) -> Vec<String> {
    let bare = text.split('(').next().unwrap_or_default().trim();
    let bare = bare.rsplit('/').next().unwrap_or_default();
    let date = |word: &str| word.len() == 4 && word.chars().all(|c| c.is_ascii_digit());
    let words = bare.split(['-', '_', ' ', ':']).filter(|word| !word.is_empty());
    let kept: Vec<&str> = words
        .filter(|word| !date(word) && !VARIANTS.contains(&word.to_ascii_lowercase().as_str()))
        .collect();
    let mut readings = vec![plain(text), plain(bare), plain(&kept.concat())];
    for reading in readings.clone() {
        let siblings = SIBLINGS.iter().filter(|(name, _)| plain(name) == reading);
        readings.extend(siblings.map(|(_, sibling)| plain(sibling)));
    }
    readings
}

/// Letters and digits in lower case.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_as_people_write_them() {
        let models = Models::builtin();
        let name = |text: &str| models.find(text).map(|model| model.name).unwrap_or_default();
        assert_eq!(name("DeepSeek-V3-0324"), "DeepSeek-V3");
        assert_eq!(name("deepseek-ai/DeepSeek-V3"), "DeepSeek-V3");
        assert!(name("Kimi-K2-Thinking").starts_with("Kimi-K2"));
        assert_eq!(name("Qwen3-30B-A3B-Instruct-2507"), "Qwen3-30B-A3B");
        assert_eq!(name("qwen3:30b-a3b"), "Qwen3-30B-A3B");
        assert_eq!(name("Qwen3-VL-235B-A22B"), "Qwen3-235B-A22B");
        assert_eq!(name("Qwen3-Coder-Next"), "Qwen3-Next-80B-A3B");
        assert_eq!(name("MiniMax-M2.7"), "MiniMax-M2.5");
        assert!(models.find("My-Own-8x1B").is_err());
    }

    #[test]
    fn one_s_own_model_goes_first() {
        let mut models = Models::builtin();
        let mut own = Model::builtin("OLMoE-1B-7B").unwrap();
        own.name = "Qwen3-30B-A3B".to_owned();
        own.vocab = 7;
        models.add(own);
        assert_eq!(models.find("Qwen3-30B-A3B").unwrap().vocab, 7);
    }
}
