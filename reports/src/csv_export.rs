//! Sheets as comma-separated values: all digits, no title, no note.

use crate::{RenderError, Sheet};

/// Header and rows.
pub(crate) fn render(sheet: &Sheet) -> Result<String, RenderError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(sheet.columns.iter().map(|column| &column.name))?;
    for row in &sheet.rows {
        writer.write_record(row.iter().map(|cell| cell.for_programs()))?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    // Written from strings, so it is UTF-8.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Column};

    #[test]
    fn text_is_quoted_where_needed() {
        let columns = vec![Column::left("policy", "policy"), Column::right("x", "x")];
        let mut sheet = Sheet::new("ignored", columns);
        sheet.rows.push(vec!["lru-k:k=2,history=kept".into(), Cell::Empty]);
        assert_eq!(render(&sheet).unwrap(), "policy,x\n\"lru-k:k=2,history=kept\",\n");
    }
}
