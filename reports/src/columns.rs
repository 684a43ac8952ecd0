//! A column in one line: what it is called, and the cell that a row has in it.
//!
//! A report lists its columns as [`Field`]s; name and value stand at one place, so that a column is
//! added, moved or taken out without counting positions.

use std::borrow::Borrow;

use crate::{Cell, Column, Sheet};

/// A column of every table of `R`s.
#[derive(Debug)]
pub struct Field<R> {
    heading: &'static str,
    name: &'static str,
    left: bool,
    cell: fn(&R) -> Cell,
}

impl<R> Field<R> {
    /// A column of text: its heading for people, its name for programs.
    pub const fn left(heading: &'static str, name: &'static str, cell: fn(&R) -> Cell) -> Self {
        Self { heading, name, left: true, cell }
    }

    /// A column of numbers.
    pub const fn right(heading: &'static str, name: &'static str, cell: fn(&R) -> Cell) -> Self {
        Self { heading, name, left: false, cell }
    }

    /// A column for programs alone, which read no heading.
    pub const fn flat(name: &'static str, cell: fn(&R) -> Cell) -> Self {
        Self::right(name, name, cell)
    }

    /// Its name for programs.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The widest line of its heading, in characters.
    pub fn heading_width(&self) -> usize {
        self.heading.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    fn column(&self) -> Column {
        Column { heading: self.heading.to_owned(), name: self.name.to_owned(), left: self.left }
    }
}

/// One column whose name or value only a report tells, as a link's.
struct Told<'a, R> {
    column: Column,
    cell: Box<dyn Fn(&R) -> Cell + 'a>,
}

/// Columns of a table, of which some depend on what is reported.
pub struct Columns<'a, R> {
    all: Vec<Told<'a, R>>,
}

impl<'a, R: 'a> Columns<'a, R> {
    /// The columns of a list.
    pub fn of(fields: &'a [Field<R>]) -> Self {
        Self { all: Vec::new() }.and(fields)
    }

    /// And those of another list behind them.
    #[must_use]
    pub fn and(mut self, fields: &'a [Field<R>]) -> Self {
        self.add_all(fields);
        self
    }

    /// And those of another list.
    pub fn add_all(&mut self, fields: &'a [Field<R>]) {
        for field in fields {
            self.add(field.column(), field.cell);
        }
    }

    /// And one more.
    pub fn add(&mut self, column: Column, cell: impl Fn(&R) -> Cell + 'a) {
        self.all.push(Told { column, cell: Box::new(cell) });
    }

    /// A table of these rows.
    pub fn sheet<I>(&self, title: impl Into<String>, rows: I) -> Sheet
    where
        I: IntoIterator,
        I::Item: Borrow<R>,
    {
        let mut sheet =
            Sheet::new(title, self.all.iter().map(|told| told.column.clone()).collect());
        let cells = |row: I::Item| self.all.iter().map(|told| (told.cell)(row.borrow())).collect();
        sheet.rows = rows.into_iter().map(cells).collect();
        sheet
    }
}

impl Sheet {
    /// A table with the columns of a list.
    pub fn of<'a, R: 'a, I>(title: impl Into<String>, fields: &'a [Field<R>], rows: I) -> Self
    where
        I: IntoIterator,
        I::Item: Borrow<R>,
    {
        Columns::of(fields).sheet(title, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        name: &'static str,
        hits: u64,
    }

    const COLUMNS: &[Field<Row>] = &[
        Field::left("who", "name", |row| row.name.into()),
        Field::right("hits\nof all", "hits", |row| Cell::Count(row.hits)),
    ];

    #[test]
    fn a_column_is_its_name_and_its_cell() {
        let rows = [Row { name: "lru", hits: 3 }, Row { name: "fifo", hits: 2 }];
        let mut columns = Columns::of(COLUMNS);
        columns.add(Column::right("twice", "twice"), |row| Cell::Count(row.hits * 2));
        let sheet = columns.sheet("title", &rows);
        let names: Vec<&str> = sheet.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["name", "hits", "twice"]);
        assert_eq!(sheet.rows[0], ["lru".into(), Cell::Count(3), Cell::Count(6)]);
        assert_eq!(sheet.rows[1], ["fifo".into(), Cell::Count(2), Cell::Count(4)]);
        assert!(sheet.columns[0].left && !sheet.columns[1].left);
        assert_eq!(COLUMNS[1].heading_width(), 6);
        assert_eq!(Sheet::of("title", COLUMNS, &rows).rows[1].len(), 2);
    }
}
