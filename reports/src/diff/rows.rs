//! Rows of two lists, matched by what they are of.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Fields by which a row says what it is of; all others are its results.
const OF: [&str; 28] = [
    "policy",
    "miss",
    "arm",
    "against",
    "scope",
    "capacity_slots",
    "phase",
    "window",
    "semantics",
    "link",
    "layer",
    "step",
    "trace",
    "expert_bytes",
    "prefetch",
    "rule",
    "width",
    "repetition_asked",
    "question",
    "name",
    "id",
    "model",
    "engine",
    "format",
    "values",
    "users",
    "kv_tokens",
    "knob",
];

/// What a row is of, as `policy=lru phase=decode`; nothing for what is no row.
pub(super) fn identity(row: &Value) -> Option<String> {
    let fields = row.as_object()?;
    let mut told = String::new();
    for key in OF {
        let Some(value) = fields.get(key).filter(|value| !value.is_null()) else { continue };
        let space = if told.is_empty() { "" } else { " " };
        // Writing into a text does not fail.
        let _ = match value.as_str() {
            Some(text) => write!(told, "{space}{key}={text}"),
            None => write!(told, "{space}{key}={value}"),
        };
    }
    Some(told)
}

/// A row before and after; one of them is absent where the other has no partner.
type Pair<'a> = (String, Option<&'a Value>, Option<&'a Value>);

/// Rows with one identity are matched in their order; in the order of those before, then the new.
pub(super) fn paired<'a>(before: &'a [Value], after: &'a [Value]) -> Vec<Pair<'a>> {
    let mut partners: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, row) in after.iter().enumerate().rev() {
        partners.entry(identity(row).unwrap_or_default()).or_default().push(index);
    }
    let mut taken = vec![false; after.len()];
    let mut pairs: Vec<Pair<'a>> = Vec::with_capacity(before.len());
    for row in before {
        let of = identity(row).unwrap_or_default();
        let partner = partners.get_mut(&of).and_then(Vec::pop);
        if let Some(index) = partner {
            taken[index] = true;
        }
        pairs.push((of, Some(row), partner.map(|index| &after[index])));
    }
    let new = after.iter().zip(taken).filter(|(_, taken)| !taken);
    pairs.extend(new.map(|(row, _)| (identity(row).unwrap_or_default(), None, Some(row))));
    pairs
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_of_one_name_are_matched_in_their_order() {
        let row = |name: &str, n: u32| json!({ "name": name, "n": n });
        let before = [row("a", 1), row("a", 2), row("b", 3)];
        let after = [row("c", 4), row("a", 5), row("a", 6), row("a", 7)];
        let n = |value: Option<&Value>| value.map(|value| value["n"].as_u64().unwrap());
        let pairs: Vec<_> = paired(&before, &after);
        let numbers: Vec<_> = pairs.iter().map(|(_, one, other)| (n(*one), n(*other))).collect();
        let expected = [
            (Some(1), Some(5)),
            (Some(2), Some(6)),
            (Some(3), None),
            (None, Some(4)),
            (None, Some(7)),
        ];
        assert_eq!(numbers, expected);
        assert_eq!(pairs[0].0, "name=a");
    }
}
