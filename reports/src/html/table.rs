//! Tables that can be sorted and filtered: in markup whole, or empty for rows that stand in the
//! page's data.

use super::definitions;
use super::text::{escape, lines};
use crate::page::Data;
use crate::{Cell, Column, Sheet};

/// What a column is called, in one line.
pub(super) fn heading(column: &Column) -> String {
    match column.heading.as_str() {
        "" => column.name.clone(),
        // A break behind a hyphen is one word's.
        heading => heading.replace("-\n", "-").replace("\n/", "/").replace('\n', " "),
    }
}

/// Title, filter, table, note.
pub(super) fn of_sheet(page: &mut String, sheet: &Sheet) {
    // What stands before an empty line is of everything that follows.
    let (before, title) = sheet.title.rsplit_once("\n\n").unwrap_or(("", &sheet.title));
    if !before.trim().is_empty() {
        page.push_str(&format!("<p class=\"note\">{}</p>\n", lines(before.trim())));
    }
    open(page, title);
    page.push_str("<div class=\"scroll\" tabindex=\"0\"><table>");
    head(page, &sheet.columns);
    page.push_str("<tbody>\n");
    for row in &sheet.rows {
        page.push_str("<tr>");
        for (cell, column) in row.iter().zip(&sheet.columns) {
            self::cell(page, cell, column);
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    if !sheet.note.trim().is_empty() {
        page.push_str(&format!("<p class=\"note\">{}</p>\n", lines(sheet.note.trim())));
    }
    page.push_str("</section>\n");
}

/// The same without rows, which the script takes from the page's data.
pub(super) fn filled_by_script(page: &mut String, data: &Data) {
    open(page, &data.sheet.title);
    page.push_str(&format!(
        "<div class=\"scroll\" tabindex=\"0\"><table data-rows=\"{}\" id=\"table-{0}\">",
        escape(data.name)
    ));
    head(page, &data.sheet.columns);
    page.push_str("<tbody></tbody></table></div>\n</section>\n");
}

fn open(page: &mut String, title: &str) {
    page.push_str("<section class=\"table\">\n");
    if !title.trim().is_empty() {
        page.push_str(&format!("<h2>{}</h2>\n", escape(title)));
    }
    page.push_str(
        "<p class=\"controls\"><input type=\"search\" placeholder=\"filter rows by words\" \
         aria-label=\"filter rows by words\"><output class=\"quiet\"></output></p>\n",
    );
}

fn head(page: &mut String, columns: &[Column]) {
    page.push_str("<thead><tr>");
    for column in columns {
        let class = if column.left { " class=\"left\"" } else { "" };
        let hover = definitions::of(&column.name)
            .map_or(String::new(), |told| format!(" title=\"{}\"", escape(told)));
        let name = escape(&heading(column));
        page.push_str(&format!(
            "<th scope=\"col\"{class}><button type=\"button\"{hover}>{name}</button></th>"
        ));
    }
    page.push_str("</tr></thead>\n");
}

fn cell(page: &mut String, cell: &Cell, column: &Column) {
    let class = if column.left { " class=\"left\"" } else { "" };
    let value = match cell {
        Cell::Text(_) | Cell::Empty => String::new(),
        number => format!(" data-v=\"{}\"", number.for_programs()),
    };
    page.push_str(&format!("<td{class}{value}>{}</td>", lines(&cell.for_people())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_all_their_digits_beside_those_shown() {
        let columns = vec![Column::left("pol\nicy", "policy"), Column::right("hit\n%", "hit")];
        let mut sheet = Sheet::new("of all\n\na <b>\nc", columns);
        sheet.rows.push(vec!["<i>".into(), Cell::Number(1.0 / 3.0, 2)]);
        sheet.rows.push(vec!["x".into(), Cell::Empty]);
        let mut page = String::new();
        of_sheet(&mut page, &sheet);
        assert!(page.contains("<h2>a &lt;b&gt; c</h2>"), "{page}");
        let row =
            "<tr><td class=\"left\">&lt;i&gt;</td><td data-v=\"0.3333333333333333\">0.33</td></tr>";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("<td>-</td>") && page.contains(">pol icy</button>"), "{page}");
    }
}
