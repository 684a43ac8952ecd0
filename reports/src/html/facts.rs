//! The settings that made a result, out of its JSON: every value that is no row.

use serde_json::Value;

/// Keys that say what a result is of; the rest are rows and findings.
const ABOUT: [&str; 6] = ["trace", "settings", "asked", "model", "machine", "routing"];

/// Name and value of each.
pub(super) fn of(json: &Value) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for key in ABOUT {
        match &json[key] {
            Value::Object(fields) => {
                for (name, value) in fields {
                    add(&mut facts, &format!("{key}: {}", words(name)), value);
                }
            }
            value => add(&mut facts, key, value),
        }
    }
    facts
}

fn add(facts: &mut Vec<(String, String)>, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (below, value) in fields {
                add(facts, &format!("{name}, {}", words(below)), value);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {}
        Value::Array(values) => facts.push((name.to_owned(), list(values))),
        value => facts.push((name.to_owned(), plain(value))),
    }
}

/// What repeats itself is said once.
fn list(values: &[Value]) -> String {
    match values {
        [first, rest @ ..] if rest.len() > 1 && rest.iter().all(|value| value == first) => {
            format!("{} ({} times)", plain(first), values.len())
        }
        _ => values.iter().map(plain).collect::<Vec<_>>().join(", "),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn words(key: &str) -> String {
    key.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_told_and_rows_are_not() {
        let told = of(&json!({
            "trace": { "name": "a<b", "total_experts": 8 },
            "settings": { "expert_bytes": [4, 4, 4], "serving": { "prefetch": "none" }, "links": ["x", "y"], "n": null },
            "rows": [{ "policy": "lru" }],
        }));
        let expected = [
            ("trace: name", "a<b"),
            ("trace: total experts", "8"),
            ("settings: expert bytes", "4 (3 times)"),
            ("settings: serving, prefetch", "none"),
            ("settings: links", "x, y"),
        ];
        assert_eq!(told, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
