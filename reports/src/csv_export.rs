//! Sheets as comma-separated values, one header line a file: all digits, no note, no line broken
//! for a terminal. Several sheets, whose columns differ, become one table of single values.

use crate::clean::field;
use crate::{Cell, Column, RenderError, Sheet};

/// Header and rows.
pub(crate) fn render(sheet: &Sheet) -> Result<String, RenderError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(sheet.columns.iter().map(|column| field(&column.name)))?;
    for row in &sheet.rows {
        writer.write_record(row.iter().map(|cell| match cell {
            Cell::Text(text) => field(text),
            number => number.for_programs(),
        }))?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    // Written from strings, so it is UTF-8.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// One sheet as it is; of several every value on a line of its own.
pub(crate) fn render_all(sheets: &[Sheet]) -> Result<String, RenderError> {
    if let [sheet] = sheets {
        return render(sheet);
    }
    let names = ["table", "title", "row", "column", "value"];
    let mut long = Sheet::new("", names.map(|name| Column::left(name, name)).to_vec());
    for (sheet, table) in sheets.iter().zip(1..) {
        let title = sheet.title.lines().next().unwrap_or_default();
        for (row, number) in sheet.rows.iter().zip(1..) {
            for (column, cell) in sheet.columns.iter().zip(row) {
                let place = [Cell::Count(table), title.into(), Cell::Count(number)];
                let value = [column.name.as_str().into(), cell.clone()];
                long.rows.push([&place[..], &value[..]].concat());
            }
        }
    }
    render(&long)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn text_is_quoted_where_needed() {
        let columns = vec![Column::left("policy", "policy"), Column::right("x", "x")];
        let mut sheet = Sheet::new("ignored", columns);
        sheet.rows.push(vec!["lru-k:k=2,history=kept".into(), Cell::Empty]);
        assert_eq!(render(&sheet).unwrap(), "policy,x\n\"lru-k:k=2,history=kept\",\n");
    }

    #[test]
    fn names_out_of_files_do_nothing() {
        let columns = vec![
            Column::left("", "=cmd|' /C calc'!A0"),
            Column::right("", "ms:a\nb\u{202e}c"),
            Column::right("", "ms"),
        ];
        let mut sheet = Sheet::new("", columns);
        sheet.rows.push(vec!["@x\ny\u{1b}".into(), "-1.5".into(), Cell::Number(-1.5, 1)]);
        let expected = "'=cmd|' /C calc'!A0,ms:a b\u{fffd}c,ms\n'@x y\u{fffd},-1.5,-1.5\n";
        assert_eq!(render(&sheet).unwrap(), expected);
    }

    #[test]
    fn several_sheets_become_one_table_of_values() {
        let mut sizes = Sheet::new("sizes\nof all", vec![Column::right("a\nsize", "size_gib")]);
        sizes.rows.push(vec![Cell::Number(0.5, 0)]);
        let facts = Sheet::facts("", vec![("broken\nname", Cell::Empty), ("b", Cell::Count(2))]);
        assert_eq!(
            render_all(&[sizes, facts]).unwrap(),
            "table,title,row,column,value\n1,sizes,1,size_gib,0.5\n2,,1,name,broken name\n\
             2,,1,value,\n2,,2,name,b\n2,,2,value,2\n"
        );
    }
}
