//! The rows and pictures of a page as JSON for its script: columns one by one, each text once.

use serde_json::{Map, Value, json};

use super::{definitions, table};
use crate::clean::one_line;
use crate::page::{Data, Page};
use crate::{Cell, Column, RenderError, Sheet};

/// Without a `<`, so that no text in it ends the element that it stands in.
pub(super) fn json(page: Option<&Page>) -> Result<String, RenderError> {
    let value = match page {
        Some(page) => json!({
            "figures": page.figures,
            "data": page.data.iter().map(of_data).collect::<Vec<_>>(),
        }),
        None => json!({ "figures": [], "data": [] }),
    };
    let text = crate::clean::json(&serde_json::to_string(&value)?);
    Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

fn of_data(data: &Data) -> Value {
    let columns = data.sheet.columns.iter().enumerate();
    json!({
        "name": data.name,
        "switches": data.switches,
        "length": data.sheet.rows.len(),
        "columns": columns.map(|(index, column)| of_column(&data.sheet, index, column)).collect::<Vec<_>>(),
    })
}

fn of_column(sheet: &Sheet, index: usize, column: &Column) -> Value {
    let cells = || sheet.rows.iter().filter_map(|row| row.get(index));
    let mut told = Map::from_iter([
        ("name".to_owned(), json!(column.name)),
        ("heading".to_owned(), json!(one_line(&table::heading(column)))),
        ("left".to_owned(), json!(column.left)),
    ]);
    if let Some(definition) = definitions::of(&column.name) {
        told.insert("definition".to_owned(), json!(definition));
    }
    if cells().any(|cell| matches!(cell, Cell::Text(_))) {
        let (texts, values) = texts(cells());
        told.insert("texts".to_owned(), json!(texts));
        told.insert("values".to_owned(), json!(values));
    } else {
        let decimals = cells().find_map(|cell| match cell {
            Cell::Number(_, decimals) => Some(*decimals),
            _ => None,
        });
        told.insert("decimals".to_owned(), json!(decimals));
        told.insert("values".to_owned(), cells().map(number).collect());
    }
    Value::Object(told)
}

fn number(cell: &Cell) -> Value {
    match cell {
        Cell::Count(count) => json!(count),
        Cell::Number(value, _) => json!(value),
        Cell::Text(_) | Cell::Empty => Value::Null,
    }
}

/// Each text once, and for every cell which it is; nothing for what is no text.
fn texts<'a>(cells: impl Iterator<Item = &'a Cell>) -> (Vec<String>, Vec<Option<usize>>) {
    let mut texts: Vec<String> = Vec::new();
    let mut known = std::collections::HashMap::new();
    let values = cells.map(|cell| match cell {
        Cell::Empty => None,
        cell => {
            let text = one_line(&cell.for_people());
            let index = *known.entry(text).or_insert_with_key(|text: &String| {
                texts.push(text.clone());
                texts.len() - 1
            });
            Some(index)
        }
    });
    let values = values.collect();
    (texts, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_element_stays_text() {
        let columns = vec![Column::left("p", "policy"), Column::right("n", "n")];
        let mut sheet = Sheet::new("", columns);
        sheet.rows.push(vec!["</script><script>".into(), Cell::Number(0.1, 2)]);
        sheet.rows.push(vec!["b".into(), Cell::Empty]);
        sheet.rows.push(vec!["</script><script>".into(), Cell::Count(7)]);
        let data = Data { name: "rows", sheet, switches: vec![], shown: true };
        let page = Page {
            title: String::new(),
            verdict: String::new(),
            data: vec![data],
            figures: vec![],
            sheets: None,
        };
        let text = json(Some(&page)).unwrap();
        assert!(!text.contains('<') && !text.contains('>'), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        let columns = &read["data"][0]["columns"];
        assert_eq!(columns[0]["texts"], json!(["</script><script>", "b"]));
        assert_eq!(columns[0]["values"], json!([0, 1, 0]));
        assert_eq!(columns[1]["values"], json!([0.1, null, 7]));
        assert_eq!(columns[1]["decimals"], json!(2));
    }
}
