//! Scenario files as text: one call a line, so that a change is a line in a diff.

use std::fmt::Write;

use serde::Serialize;

use super::{Scenario, ScenarioFile};

impl ScenarioFile {
    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("{\n");
        line(&mut text, 1, "schema", &self.schema);
        line(&mut text, 1, "about", &self.about);
        if let Some(mistake) = &self.mistake {
            line(&mut text, 1, "mistake", mistake);
        }
        text.push_str("  \"scenarios\": [\n");
        for (place, scenario) in self.scenarios.iter().enumerate() {
            text.push_str(&of_scenario(scenario));
            text.push_str(if place + 1 == self.scenarios.len() { "\n" } else { ",\n" });
        }
        text.push_str("  ]\n}\n");
        text
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// It is not JSON, or has other fields.
    pub fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

fn of_scenario(scenario: &Scenario) -> String {
    let mut text = String::from("    {\n");
    line(&mut text, 3, "name", &scenario.name);
    line(&mut text, 3, "policy", &scenario.policy);
    line(&mut text, 3, "experts", &scenario.experts);
    line(&mut text, 3, "top_k", &scenario.top_k);
    line(&mut text, 3, "slots", &scenario.slots);
    line(&mut text, 3, "ordered_copies", &scenario.ordered_copies);
    text.push_str("      \"calls\": [\n");
    for (place, call) in scenario.calls.iter().enumerate() {
        let comma = if place + 1 == scenario.calls.len() { "" } else { "," };
        let _ = writeln!(text, "        {}{comma}", json(call));
    }
    text.push_str("      ]\n    }");
    text
}

fn line(text: &mut String, depth: usize, name: &str, value: &impl Serialize) {
    let _ = writeln!(text, "{:1$}\"{name}\": {2},", "", depth * 2, json(value));
}

/// Compact JSON; none of these types can fail to be written.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("\"{error}\""))
}
