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

    /// The model that `text` means.
    ///
    /// # Errors
    /// [`WhyNot`] where none is called so.
    pub fn find(&self, text: &str) -> Result<Model, WhyNot> {
        let wanted = plain(text);
        if let Some(own) = self.own.iter().find(|model| plain(&model.name) == wanted) {
            return Ok(own.clone());
        }
        let name = self.names.iter().find(|(plain, _)| *plain == wanted).map(|(_, name)| name);
        let unknown = || WhyNot::new(format!("model '{text}' is not known"));
        Model::builtin(name.ok_or_else(unknown)?).map_err(|error| WhyNot::new(error.to_string()))
    }
}

/// Letters and digits in lower case, without what a name carries beside the architecture.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
