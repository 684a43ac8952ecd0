//! Sheets as Markdown tables.

use crate::Sheet;
use crate::clean::{one_line, visible};

/// The answer, above all tables.
pub(crate) fn answer(answer: &str) -> String {
    format!("**{}**\n\n", inert(&one_line(answer)).replace('*', "\\*"))
}

/// Title as a heading, table, note.
pub(crate) fn render(sheet: &Sheet) -> String {
    let mut text = String::new();
    if !sheet.title.is_empty() {
        text.push_str(&format!("### {}\n\n", inert(&visible(&sheet.title)).replace('\n', " · ")));
    }
    let headings = sheet.columns.iter().map(|column| match column.heading.as_str() {
        "" => escape(&column.name),
        // A break after a hyphen is one word's.
        heading => escape(&heading.replace("-\n", "-").replace('\n', " ")),
    });
    line(&mut text, headings);
    line(&mut text, sheet.columns.iter().map(|c| if c.left { ":--" } else { "--:" }.to_owned()));
    for (place, row) in sheet.rows.iter().enumerate() {
        let bold = |column| if sheet.is_marked(place, column) { "**" } else { "" };
        let cell = |(column, cell): (usize, &crate::Cell)| {
            format!("{0}{1}{0}", bold(column), escape(&cell.for_people()))
        };
        line(&mut text, row.iter().enumerate().map(cell));
    }
    if !sheet.note.is_empty() {
        text.push_str(&format!("\n{}\n", inert(&visible(&sheet.note))));
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push_str(&format!("| {} |\n", cells.collect::<Vec<_>>().join(" | ")));
}

fn escape(cell: &str) -> String {
    inert(&one_line(cell)).replace('|', "\\|")
}

/// No element and no link: a viewer loads what a name points to.
fn inert(text: &str) -> String {
    text.replace('<', "&lt;").replace("](", "]\\(")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Column};

    #[test]
    fn cells_cannot_break_the_table() {
        let columns = vec![Column::left("a\nb", "a"), Column::right("h200-\npcie", "ms")];
        let mut sheet = Sheet::new("one\ntwo", columns);
        sheet.rows.push(vec!["x|y\nz".into(), Cell::Count(1000)]);
        let expected = "### one · two\n\n| a b | h200-pcie |\n| :-- | --: |\n| x\\|y z | 1,000 |\n";
        assert_eq!(render(&sheet), expected);
    }

    #[test]
    fn names_are_neither_elements_nor_links() {
        let mut sheet = Sheet::new("<b>", vec![Column::left("a", "a")]);
        sheet.rows.push(vec!["![x](y)<i>".into()]);
        sheet.note = "<u>".to_owned();
        let expected = "### &lt;b>\n\n| a |\n| :-- |\n| ![x]\\(y)&lt;i> |\n\n&lt;u>\n";
        assert_eq!(render(&sheet), expected);
    }

    #[test]
    fn names_out_of_files_do_nothing() {
        let mut sheet = Sheet::new("a\u{1b}b", vec![Column::left("", "a|b\nc")]);
        sheet.rows.push(vec!["x\u{202e}\r\ny".into()]);
        sheet.note = "n\u{7}".to_owned();
        let expected =
            "### a\u{fffd}b\n\n| a\\|b c |\n| :-- |\n| x\u{fffd}\u{fffd} y |\n\nn\u{fffd}\n";
        assert_eq!(render(&sheet), expected);
    }
}
