//! Sheets as aligned columns for a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use crate::Sheet;
use crate::clean::visible;
use crate::experiment::wrap;

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// Title, table, note, none wider than [`WIDTH`]: text that does not fit is wrapped, numbers are not.
pub(crate) fn render(sheet: &Sheet) -> String {
    let mut text = String::new();
    let mut prose = |prose: &str| {
        for line in prose.lines() {
            let lines = match line.chars().count() > WIDTH {
                true => wrap(line, WIDTH),
                false => vec![line.to_owned()],
            };
            lines.iter().for_each(|line| text.extend([line, "\n"]));
        }
    };
    prose(&sheet.title);
    let natural = table(sheet, false);
    prose(if too_wide(&natural) { table(sheet, true) } else { natural }.as_str());
    prose(&sheet.note);
    // Names come out of files: what steers a terminal does not reach it.
    visible(&text)
}

/// Whether the table, whatever its title, fits as it is.
pub(crate) fn fits(sheet: &Sheet) -> bool {
    !too_wide(&table(sheet, false))
}

fn too_wide(table: &str) -> bool {
    table.lines().any(|line| line.chars().count() > WIDTH)
}

/// The table alone; `squeezed`: with cells of text wrapped.
fn table(sheet: &Sheet, squeezed: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if squeezed {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH as u16);
    }
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
            if squeezed && !column.left {
                of_table.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
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

    #[test]
    fn what_is_too_wide_is_wrapped_where_it_is_text() {
        let columns = vec![
            Column::left("name", "name"),
            Column::left("source", "source"),
            Column::right("MiB", "mib"),
        ];
        let mut sheet = Sheet::new("a caption of many words ".repeat(5), columns);
        let source = "who measured it, where and how ".repeat(4);
        sheet.rows.push(vec!["an-unbroken-name".into(), source.into(), Cell::Number(1.5, 6)]);
        assert!(!fits(&sheet));
        let text = render(&sheet);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("1.500000") && text.contains("an-unbroken-name"), "{text}");
        sheet.rows[0][1] = "short".into();
        assert!(fits(&sheet));
    }
}
