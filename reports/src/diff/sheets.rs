//! A difference laid out: the answer, then what changed most.

use serde_json::Value;

use super::{Change, Difference};
use crate::sheet::thousands;
use crate::{Cell, Field, Output, RenderError, Sheet, one_line};

/// Changes that people are shown.
const SHOWN: usize = 40;
/// Characters of a value that people are shown.
const LONGEST: usize = 28;

/// A difference in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn difference(found: &Difference) -> Result<Output, RenderError> {
    let mut changes: Vec<&Change> = found.changes.iter().collect();
    // What cannot be measured goes first; of equals the order of the result before.
    let size = |change: &Change| change.change.map_or(f64::INFINITY, f64::abs);
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changes.truncate(SHOWN);
    let mut sheet = Sheet::of(headline(found), COLUMNS, changes);
    let left = found.changes.len().saturating_sub(SHOWN);
    if left > 0 {
        sheet.note =
            format!("{} more changes are in `Format::Json` and CSV", thousands(left as u64));
    }
    let mut output = Output::new(found, vec![sheet])?;
    output.flat = Some(Sheet::of("", FLAT, &found.changes));
    Ok(output)
}

fn headline(found: &Difference) -> String {
    let within = match found.tolerance {
        0.0 => String::new(),
        share => format!(" beyond {}%", share * 100.0),
    };
    let verdict = match found.changes.len() as u64 {
        0 => format!("nothing differs{within}"),
        1 => format!("1 value differs{within}"),
        changes => format!("{} values differ{within}", thousands(changes)),
    };
    let tolerated = match found.tolerated {
        0 => String::new(),
        some => format!(", {} within it", thousands(some)),
    };
    format!(
        "{verdict}: {} against {}\n{} values compared{tolerated}",
        one_line(&found.after),
        one_line(&found.before),
        thousands(found.compared)
    )
}

const COLUMNS: &[Field<Change>] = &[
    Field::left("of", "of", |change| change.of.as_str().into()),
    Field::left("value", "name", |change| match change.name.as_str() {
        "" => "the row".into(),
        name => name.into(),
    }),
    Field::right("before", "before", |change| shown(change.before.as_ref())),
    Field::right("after", "after", |change| shown(change.after.as_ref())),
    Field::right("change\n%", "change_percent", |change| match change.change {
        Some(share) => format!("{:+.4}", share * 100.0).into(),
        None => Cell::Empty,
    }),
];

const FLAT: &[Field<Change>] = &[
    Field::flat("of", |change| change.of.as_str().into()),
    Field::flat("name", |change| change.name.as_str().into()),
    Field::flat("before", |change| whole(change.before.as_ref())),
    Field::flat("after", |change| whole(change.after.as_ref())),
    Field::flat("change", |change| Cell::number(change.change, 6)),
];

fn whole(value: Option<&Value>) -> Cell {
    match value {
        None => Cell::Empty,
        Some(Value::String(text)) => text.as_str().into(),
        Some(value) => value.to_string().into(),
    }
}

/// A long text's beginning; what is no single value, as that.
fn shown(value: Option<&Value>) -> Cell {
    match value {
        Some(Value::Object(_) | Value::Array(_)) => "there".into(),
        value => match whole(value) {
            Cell::Text(text) if text.chars().count() > LONGEST => {
                let start: String = text.chars().take(LONGEST - 1).collect();
                format!("{start}\u{2026}").into()
            }
            cell => cell,
        },
    }
}
