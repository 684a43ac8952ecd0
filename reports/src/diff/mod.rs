//! Two results in JSON, value by value: what changed, and by how much.
//!
//! Rows are matched by what they are of (policy, size, phase, ...), not by their places, so that a
//! row more or less moves nothing else. Text that says what a result is of must be the same;
//! numbers may differ by a tolerance.

mod rows;
mod sheets;

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

pub use sheets::difference;

use rows::{identity, paired};

/// Where two results differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The result that the other is held against.
    pub before: String,
    /// The other.
    pub after: String,
    /// Numbers may differ by this share of the one before.
    pub tolerance: f64,
    /// Values compared.
    pub compared: u64,
    /// Numbers that differ within the tolerance.
    pub tolerated: u64,
    /// Whether nothing differs beyond the tolerance.
    pub same: bool,
    /// What differs beyond it, in the order of the result before.
    pub changes: Vec<Change>,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The row, as `rows policy=lru phase=decode`; empty for what is of no row.
    pub of: String,
    /// The value's name.
    pub name: String,
    /// Before; absent where it is new.
    pub before: Option<Value>,
    /// After; absent where it is gone.
    pub after: Option<Value>,
    /// after / before - 1; absent where one is no number, or before is 0.
    pub change: Option<f64>,
}

/// Why two results cannot be compared.
#[derive(Debug, Error)]
pub enum DiffError {
    /// Not JSON.
    #[error("{name}: not a result in JSON: {reason}")]
    Json {
        /// The file.
        name: String,
        /// The parser's reason.
        reason: serde_json::Error,
    },
    /// JSON, but of something else.
    #[error("{name}: not a result of hotset: no field 'schema' says so; `Format::Json` makes one")]
    NoResult {
        /// The file.
        name: String,
    },
    /// Of another version.
    #[error("{before} is of schema {was}, {after} of {is}: make both with one hotset")]
    Schema {
        /// The first file.
        before: String,
        /// The second file.
        after: String,
        /// The first one's schema.
        was: String,
        /// The second one's.
        is: String,
    },
}

/// A result out of a file of this name.
///
/// # Errors
/// [`DiffError::Json`], [`DiffError::NoResult`].
pub fn read_result(name: &str, bytes: &[u8]) -> Result<Value, DiffError> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|reason| DiffError::Json { name: name.to_owned(), reason })?;
    match value["schema"].as_str() {
        Some(schema) if schema.starts_with("hotset/") => Ok(value),
        _ => Err(DiffError::NoResult { name: name.to_owned() }),
    }
}

/// Holds `after` against `before`, both with their names; numbers may differ by the share
/// `tolerance` of the one before. What is beside the result (the version that made it) is passed over.
///
/// # Errors
/// [`DiffError::Schema`].
pub fn diff(
    (name, before): (&str, &Value),
    (other, after): (&str, &Value),
    tolerance: f64,
) -> Result<Difference, DiffError> {
    let schema = |value: &Value| value["schema"].as_str().unwrap_or_default().to_owned();
    if schema(before) != schema(after) {
        return Err(DiffError::Schema {
            before: name.to_owned(),
            after: other.to_owned(),
            was: schema(before),
            is: schema(after),
        });
    }
    let mut found = Difference {
        before: name.to_owned(),
        after: other.to_owned(),
        tolerance,
        compared: 0,
        tolerated: 0,
        same: true,
        changes: Vec::new(),
    };
    found.compare(&Place::default(), before, after);
    found.same = found.changes.is_empty();
    Ok(found)
}

/// Where in a result a value stands.
#[derive(Debug, Clone, Default)]
struct Place {
    of: String,
    name: String,
}

impl Place {
    fn field(&self, key: &str) -> Self {
        let dot = if self.name.is_empty() { "" } else { "." };
        Self { of: self.of.clone(), name: format!("{}{dot}{key}", self.name) }
    }

    fn item(&self, index: usize) -> Self {
        Self { of: self.of.clone(), name: format!("{}[{index}]", self.name) }
    }

    /// A row of the list that stands here.
    fn row(&self, identity: &str) -> Self {
        let mut of = self.of.clone();
        for part in [&self.name, identity] {
            let space = if of.is_empty() { "" } else { " " };
            // Writing into a text does not fail.
            let _ = write!(of, "{space}{part}");
        }
        Self { of, name: String::new() }
    }
}

/// Fields that say who made a result, not what it is.
const BESIDE: [&str; 1] = ["hotset"];

impl Difference {
    fn compare(&mut self, at: &Place, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(one), Value::Object(other)) => {
                for (key, value) in one.iter().filter(|(key, _)| !BESIDE.contains(&key.as_str())) {
                    match other.get(key) {
                        Some(after) => self.compare(&at.field(key), value, after),
                        None => self.change(&at.field(key), Some(value), None),
                    }
                }
                let new = other.iter().filter(|(key, _)| !one.contains_key(*key));
                for (key, value) in new.filter(|(key, _)| !BESIDE.contains(&key.as_str())) {
                    self.change(&at.field(key), None, Some(value));
                }
            }
            (Value::Array(one), Value::Array(other)) if of_rows(one) || of_rows(other) => {
                for (identity, before, after) in paired(one, other) {
                    let at = at.row(&identity);
                    match (before, after) {
                        (Some(before), Some(after)) => self.compare(&at, before, after),
                        (before, after) => self.change(&at, before, after),
                    }
                }
            }
            (Value::Array(one), Value::Array(other)) => {
                for index in 0..one.len().max(other.len()) {
                    match (one.get(index), other.get(index)) {
                        (Some(before), Some(after)) => self.compare(&at.item(index), before, after),
                        (before, after) => self.change(&at.item(index), before, after),
                    }
                }
            }
            _ => self.value(at, before, after),
        }
    }

    fn value(&mut self, at: &Place, before: &Value, after: &Value) {
        self.compared += 1;
        if before == after {
            return;
        }
        if let (Some(one), Some(other)) = (before.as_f64(), after.as_f64()) {
            if one == other && !(before.is_u64() && after.is_u64()) {
                return;
            }
            // Of 0 there is no share: any other number is beyond it. Counts may differ where their
            // floating-point numbers are one.
            if self.tolerance > 0.0
                && one != 0.0
                && (other - one).abs() <= self.tolerance * one.abs()
            {
                self.tolerated += 1;
                return;
            }
        }
        self.change(at, Some(before), Some(after));
    }

    fn change(&mut self, at: &Place, before: Option<&Value>, after: Option<&Value>) {
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        let change = match (number(before), number(after)) {
            (Some(one), Some(other)) if one != 0.0 => Some(other / one - 1.0),
            _ => None,
        };
        let Place { of, name } = at.clone();
        let (before, after) = (before.cloned(), after.cloned());
        self.changes.push(Change { of, name, before, after, change });
    }
}

fn of_rows(list: &[Value]) -> bool {
    list.iter().any(|value| identity(value).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(misses: u64) -> Value {
        let row = |policy: &str, misses| json!({ "policy": policy, "phase": "decode", "misses": misses, "ms": 0.5 });
        json!({ "schema": "hotset/1", "settings": { "hotset": "1", "seed": 0 },
                "rows": [row("lru", misses), row("fifo", 7)] })
    }

    fn changes(before: &Value, after: &Value, tolerance: f64) -> Vec<(String, String)> {
        let found = diff(("a", before), ("b", after), tolerance).unwrap();
        assert_eq!(found.same, found.changes.is_empty());
        found.changes.into_iter().map(|change| (change.of, change.name)).collect()
    }

    #[test]
    fn one_miss_is_found_and_tolerated() {
        let (before, after) = (result(1000), result(1001));
        let of = "rows policy=lru phase=decode".to_owned();
        assert_eq!(changes(&before, &after, 0.0), [(of, "misses".to_owned())]);
        assert!(changes(&before, &after, 0.001).is_empty());
        assert!(!changes(&before, &after, 0.0009).is_empty());
        let found = diff(("a", &before), ("b", &after), 0.0).unwrap();
        assert_eq!(found.changes[0].change, Some(1001.0 / 1000.0 - 1.0));
    }

    #[test]
    fn rows_are_matched_by_what_they_are_of() {
        let before = result(5);
        let mut after = result(5);
        after["settings"]["hotset"] = json!("2");
        after["rows"].as_array_mut().unwrap().reverse();
        assert!(changes(&before, &after, 0.0).is_empty());
        after["rows"].as_array_mut().unwrap().remove(0);
        let gone = ("rows policy=fifo phase=decode".to_owned(), String::new());
        assert_eq!(changes(&before, &after, 0.0), [gone]);
        let new = changes(&after, &before, 0.0);
        assert_eq!(new, [("rows policy=fifo phase=decode".to_owned(), String::new())]);
        after["settings"]["seed"] = json!("0");
        assert_eq!(changes(&before, &after, 1.0)[0], (String::new(), "settings.seed".to_owned()));
    }

    #[test]
    fn zero_has_no_share_and_large_counts_no_rounding() {
        let of = |value: Value| json!({ "schema": "hotset/1", "n": value });
        assert_eq!(changes(&of(json!(0)), &of(json!(1)), 1.0).len(), 1);
        assert_eq!(changes(&of(json!(0)), &of(json!(0.0)), 0.0).len(), 0);
        let large = 1_u64 << 60;
        assert_eq!(changes(&of(json!(large)), &of(json!(large + 1)), 0.0).len(), 1);
        assert_eq!(changes(&of(json!(null)), &of(json!(1)), 1.0).len(), 1);
        assert_eq!(changes(&of(json!([1, 2])), &of(json!([1, 2, 3])), 1.0).len(), 1);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        assert!(matches!(read_result("x", b"{"), Err(DiffError::Json { .. })));
        assert!(matches!(read_result("x", b"{}"), Err(DiffError::NoResult { .. })));
        assert!(matches!(read_result("x", b"[1]"), Err(DiffError::NoResult { .. })));
        let (one, other) = (json!({ "schema": "hotset/1" }), json!({ "schema": "hotset/2" }));
        assert!(matches!(diff(("a", &one), ("b", &other), 0.0), Err(DiffError::Schema { .. })));
    }
}
