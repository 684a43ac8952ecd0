//! JSON as configurations really have it.
//!
//! Python writes `Infinity` and `NaN` where JSON has no word for them, and published configurations contain them. They
//! are read as null: no field that memory needs is infinite.

use serde_json::Value;

/// Parses a configuration.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&without_infinities(text))
}

/// `Infinity`, `-Infinity` and `NaN` outside of strings become `null`.
fn without_infinities(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(next) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN"].iter().find(|word| rest.starts_with(**word));
        if let (false, Some(word)) = (in_string, word) {
            plain.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        let mut taken = next.len_utf8();
        if in_string && next == '\\' {
            taken += rest[taken..].chars().next().map_or(0, char::len_utf8);
        } else if next == '"' {
            in_string = !in_string;
        }
        plain.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinities_are_null_and_strings_are_left_alone() {
        let text = r#"{"a": [0.0, Infinity, -Infinity, NaN], "b": "NaN \" Infinity", "ß": 1}"#;
        let value = parse(text).unwrap();
        assert_eq!(value["a"].to_string(), "[0.0,null,null,null]");
        assert_eq!(value["b"], "NaN \" Infinity");
        assert_eq!(value["ß"], 1);
        assert!(parse(r#"{"a": "\"#).is_err());
    }
}
