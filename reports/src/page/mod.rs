//! A report as a page: what it answers, the rows, and which pictures are drawn of them.
//!
//! A picture names columns of rows that stand in the page once: a line, a bar and a line of the
//! table cannot say different things.

mod compare;
mod experiment;
mod live;
mod plan;
mod replay;

use serde::Serialize;

use crate::{Cell, Sheet};

pub(crate) use compare::comparison;
pub(crate) use experiment::experiment;
pub(crate) use live::live;
pub(crate) use plan::{plan, what_if};
pub(crate) use replay::in_full;

/// What a page shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// What the page is of, in a few words.
    pub title: String,
    /// The answer, in two sentences: what is best here, and how sure that is.
    pub verdict: String,
    /// The rows that pictures are drawn of.
    pub data: Vec<Data>,
    /// The pictures, in order.
    pub figures: Vec<Figure>,
    /// The tables below, where the rows say more than those of a terminal would.
    pub sheets: Option<Vec<Sheet>>,
}

impl Page {
    /// The rows that a picture is drawn of.
    #[must_use]
    pub fn rows(&self, figure: &Figure) -> Option<&Sheet> {
        let named = self.data.iter().find(|data| data.name == figure.data);
        named.map(|data| &data.sheet)
    }
}

/// Rows with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// By which pictures name them.
    pub name: &'static str,
    /// The rows; columns are named as in JSON and CSV.
    pub sheet: Sheet,
    /// Columns of which a reader looks at one value at a time, as a phase or a link: a switch each.
    pub switches: Vec<&'static str>,
    /// Whether they are shown as a table too.
    pub shown: bool,
}

/// A picture of rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name, for links and tests.
    pub name: &'static str,
    /// Above it.
    pub title: String,
    /// How to read it, in a sentence.
    pub reading: String,
    /// The name of its rows.
    pub data: &'static str,
    /// Switches of its own, beside those of the rows.
    pub switches: Vec<&'static str>,
    /// What is drawn.
    #[serde(flatten)]
    pub shape: Shape,
}

/// What is drawn of which columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "shape", rename_all = "kebab-case")]
pub enum Shape {
    /// A line a series; of several columns for an axis the reader chooses one.
    Lines {
        /// Along.
        x: Vec<&'static str>,
        /// Up.
        y: Vec<&'static str>,
        /// Which line a row is of.
        series: &'static str,
        /// A level to be held against, as an optimum.
        level: Option<f64>,
    },
    /// A bar a row, stacked of parts.
    Stacked {
        /// Whose bar.
        label: &'static str,
        /// Its parts, from the left.
        parts: Vec<&'static str>,
        /// How long it may be.
        limit: Option<&'static str>,
    },
    /// A point a row, those of a series joined.
    Points {
        /// Along.
        x: &'static str,
        /// Up.
        y: &'static str,
        /// Which series a row is of.
        series: &'static str,
        /// Whether the points should lie where both are equal.
        diagonal: bool,
    },
    /// A coloured field a row.
    Heat {
        /// Along.
        x: &'static str,
        /// Down.
        y: &'static str,
        /// What the colour says; the reader chooses.
        value: Vec<&'static str>,
    },
    /// An interval a row.
    Intervals {
        /// Whose.
        label: &'static str,
        /// What it is around.
        estimate: &'static str,
        /// Its lower end.
        low: &'static str,
        /// Its upper end.
        high: &'static str,
    },
}

/// Of these columns those in which some row says something.
fn told(sheet: &Sheet, names: &[&'static str]) -> Vec<&'static str> {
    with_some(sheet, names, |cell| *cell != Cell::Empty)
}

/// Of these columns those in which some row has more than nothing.
fn positive(sheet: &Sheet, names: &[&'static str]) -> Vec<&'static str> {
    with_some(sheet, names, |cell| matches!(cell, Cell::Number(value, _) if *value > 0.0))
}

fn with_some(sheet: &Sheet, names: &[&'static str], is: fn(&Cell) -> bool) -> Vec<&'static str> {
    let is_told = |name: &&'static str| {
        let index = sheet.columns.iter().position(|column| column.name == **name);
        index.is_some_and(|index| sheet.rows.iter().any(|row| is(&row[index])))
    };
    names.iter().copied().filter(is_told).collect()
}
