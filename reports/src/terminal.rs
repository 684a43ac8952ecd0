//! Sheets as aligned columns for a terminal.

use comfy_table::{CellAlignment, Table, presets};

use crate::Sheet;

/// Title, table, note.
pub(crate) fn render(sheet: &Sheet) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if sheet.columns.iter().any(|column| !column.heading.is_empty()) {
        table.set_header(sheet.columns.iter().map(|column| column.heading.as_str()));
    }
    for row in &sheet.rows {
        table.add_row(row.iter().map(|cell| cell.for_people()));
    }
    for (index, column) in sheet.columns.iter().enumerate() {
        if let Some(of_table) = table.column_mut(index) {
            of_table.set_padding((if index == 0 { 0 } else { 2 }, 0));
            of_table.set_cell_alignment(if column.left {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            });
        }
    }
    let mut text = String::new();
    if !sheet.title.is_empty() {
        text.push_str(&sheet.title);
        text.push('\n');
    }
    for line in table.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !sheet.note.is_empty() {
        text.push_str(&sheet.note);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Column};

    #[test]
    fn numbers_stand_right_and_headings_break() {
        let columns = vec![
            Column::left("policy", "policy"),
            Column::right("hit\n%", "hit_rate"),
            Column::right("h200-\npcie", "ms"),
        ];
        let mut sheet = Sheet::new("decode", columns);
        sheet.rows.push(vec!["lru".into(), Cell::percent(Some(0.5)), Cell::Number(12.345, 2)]);
        sheet.rows.push(vec!["belady".into(), Cell::percent(None), Cell::Number(1.0, 2)]);
        sheet.note = "ms a token".to_owned();
        let expected = "decode\n\
                        policy    hit  h200-\n\
                        \u{20}           %   pcie\n\
                        lru     50.00  12.35\n\
                        belady      -   1.00\n\
                        ms a token\n";
        assert_eq!(render(&sheet), expected);
    }
}
