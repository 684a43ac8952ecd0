//! Sheets as aligned columns for a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use crate::Sheet;
use crate::clean::visible;
use crate::experiment::wrap;

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// What a terminal is told beside the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colour: bool,
}

const BOLD: &str = "\u{1b}[1m";
const BEST: &str = "\u{1b}[1;32m";
const PLAIN: &str = "\u{1b}[0m";

impl Paint {
    /// Colours, or none.
    pub fn new(colour: bool) -> Self {
        Self { colour }
    }

    fn over(self, start: &str, text: &str) -> String {
        match self.colour && !text.is_empty() {
            true => format!("{start}{text}{PLAIN}"),
            false => text.to_owned(),
        }
    }
}

/// Lines no wider than [`WIDTH`].
fn lines_of(prose: &str) -> Vec<String> {
    let lines = prose.lines().flat_map(|line| match line.chars().count() > WIDTH {
        true => wrap(line, WIDTH),
        false => vec![line.to_owned()],
    });
    lines.collect()
}

/// The answer, above all tables, with an empty line below it.
pub(crate) fn answer(answer: &str, paint: Paint) -> String {
    // Names come out of files: what steers a terminal does not reach it.
    let lines = lines_of(&visible(answer)).into_iter();
    let lines: Vec<String> = lines.map(|line| paint.over(BOLD, &line)).collect();
    lines.join("\n") + "\n\n"
}

/// Title, table, note, none wider than [`WIDTH`]: text that does not fit is wrapped, numbers are not.
pub(crate) fn render(sheet: &Sheet, paint: Paint) -> String {
    let natural = table(sheet, false);
    let table = if too_wide(&natural) { table(sheet, true) } else { natural };
    let of_table = |line: &String| match sheet.marked.is_empty() || !line.contains(MARK) {
        true => line.clone(),
        // A marked cell ends in the mark.
        false => paint.over(BEST, line),
    };
    let prose = |text: &str| lines_of(&visible(text));
    let table = prose(&table).iter().map(of_table).collect();
    let lines = [prose(&sheet.title), table, prose(&sheet.note)].concat();
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// Behind what is best of its table.
const MARK: &str = " *";

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
    for (place, row) in sheet.rows.iter().enumerate() {
        table.add_row(row.iter().enumerate().map(|(column, cell)| {
            let mark = if sheet.is_marked(place, column) { MARK } else { "" };
            cell.for_people() + mark
        }));
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
        assert_eq!(render(&sheet, Paint::new(false)), expected);
    }

    #[test]
    fn what_is_best_is_marked_and_on_a_terminal_painted() {
        let columns = vec![Column::left("policy", "policy"), Column::right("ms", "ms")];
        let mut sheet = Sheet::new("", columns);
        sheet.rows.push(vec!["lru".into(), Cell::Number(2.0, 1)]);
        sheet.rows.push(vec!["arc".into(), Cell::Number(1.0, 1)]);
        sheet.marked.push((1, 0));
        assert_eq!(render(&sheet, Paint::new(false)), "policy   ms\nlru     2.0\narc *   1.0\n");
        let painted = render(&sheet, Paint::new(true));
        assert_eq!(painted, "policy   ms\nlru     2.0\n\u{1b}[1;32marc *   1.0\u{1b}[0m\n");
        assert_eq!(answer("a\u{1b}b", Paint::new(true)), "\u{1b}[1ma\u{fffd}b\u{1b}[0m\n\n");
        assert_eq!(answer("a", Paint::new(false)), "a\n\n");
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
        let text = render(&sheet, Paint::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("1.500000") && text.contains("an-unbroken-name"), "{text}");
        sheet.rows[0][1] = "short".into();
        assert!(fits(&sheet));
    }
}
