//! A table before it has a format: titled, with named columns and typed cells.

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text, aligned left.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number for people with this many decimals; programs get all of its digits.
    Number(f64, usize),
    /// Nothing to say.
    Empty,
}

impl Cell {
    /// A number that may be missing.
    #[must_use]
    pub fn number(value: Option<f64>, decimals: usize) -> Self {
        value.map_or(Self::Empty, |value| Self::Number(value, decimals))
    }

    /// A share (0 to 1) as percent with two decimals.
    #[must_use]
    pub fn percent(share: Option<f64>) -> Self {
        Self::number(share.map(|share| share * 100.0), 2)
    }

    /// The value as people read it.
    #[must_use]
    pub fn for_people(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => thousands(*count),
            Self::Number(value, decimals) => format!("{value:.decimals$}"),
            Self::Empty => "-".to_owned(),
        }
    }

    /// The value as programs read it: all digits, in one line, empty if missing.
    #[must_use]
    pub fn for_programs(&self) -> String {
        match self {
            Self::Text(text) => text.replace('\n', " "),
            Self::Count(count) => count.to_string(),
            Self::Number(value, _) => value.to_string(),
            Self::Empty => String::new(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A column's name: for people (may break into lines) and for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Header in terminal and Markdown; lines are separated by `\n`.
    pub heading: String,
    /// Header in CSV.
    pub name: String,
    /// Whether cells are aligned left.
    pub left: bool,
}

impl Column {
    /// A column of numbers.
    #[must_use]
    pub fn right(heading: &str, name: &str) -> Self {
        Self { heading: heading.to_owned(), name: name.to_owned(), left: false }
    }

    /// A column of text.
    #[must_use]
    pub fn left(heading: &str, name: &str) -> Self {
        Self { heading: heading.to_owned(), name: name.to_owned(), left: true }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Above the table; may have several lines. Empty for none.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, one cell a column.
    pub rows: Vec<Vec<Cell>>,
    /// Below the table. Empty for none.
    pub note: String,
    /// Cells that are best, by row and column.
    pub marked: Vec<(usize, usize)>,
}

impl Sheet {
    /// An empty table.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            title: title.into(),
            columns,
            rows: Vec::new(),
            note: String::new(),
            marked: Vec::new(),
        }
    }

    /// Whether a cell is marked as best.
    #[must_use]
    pub fn is_marked(&self, row: usize, column: usize) -> bool {
        self.marked.contains(&(row, column))
    }

    /// A two-column table of facts.
    #[must_use]
    pub fn facts(title: impl Into<String>, facts: Vec<(&str, Cell)>) -> Self {
        let columns = vec![Column::left("", "name"), Column::left("", "value")];
        let mut sheet = Self::new(title, columns);
        sheet.rows = facts.into_iter().map(|(name, value)| vec![name.into(), value]).collect();
        sheet
    }
}

/// 1234567 as 1,234,567.
#[must_use]
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_read_differently_for_people_and_programs() {
        let both = |cell: Cell| (cell.for_people(), cell.for_programs());
        assert_eq!(both(Cell::Count(1_234_567)), ("1,234,567".into(), "1234567".into()));
        assert_eq!(both(Cell::Count(12)), ("12".into(), "12".into()));
        assert_eq!(both(Cell::Number(2.0 / 3.0, 2)), ("0.67".into(), "0.6666666666666666".into()));
        assert_eq!(both(Cell::percent(Some(0.125))), ("12.50".into(), "12.5".into()));
        assert_eq!(both(Cell::percent(None)), ("-".into(), String::new()));
    }
}
