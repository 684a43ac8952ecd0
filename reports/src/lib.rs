//! Results for people and programs: terminal tables, CSV, JSON, Markdown and HTML.
//!
//! A command makes an [`Output`]: its result for JSON and the same as [`Sheet`]s. Every text
//! format is rendered from the sheets, one file a format.

mod advice;
mod clean;
mod columns;
mod compare;
mod csv_export;
mod curves;
mod diff;
mod experiment;
mod flat;
mod html;
mod live;
mod loaded;
mod markdown;
mod misses;
mod page;
mod placed;
mod plan;
mod plot;
mod replay;
mod sampled;
mod sheet;
mod sweep;
mod terminal;
mod tiers;
mod verdict;
mod verified;
mod what_if;

use hotset_sim::SCHEMA;
use serde::Serialize;
use thiserror::Error;

pub use advice::advice;
pub use clean::{one_line, visible};
pub use columns::{Columns, Field};
pub use compare::comparison;
pub use diff::{Change, DiffError, Difference, diff, difference, read_result};
pub use experiment::{ablation, prefetch, semantic};
pub use live::{LiveChecks, live};
pub use page::{Data, Figure, Page, Shape};
pub use placed::placed;
pub use plan::{plan, preflight};
pub use plot::{Plot, PlotError, PlotFormat, plot};
pub use replay::in_full;
pub use sheet::{Cell, Column, Sheet};
pub use sweep::sweep;
pub use verified::verified;
pub use what_if::what_if;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for a terminal of 80 characters.
    Table,
    /// The result as JSON.
    Json,
    /// Comma-separated values with one header line; several tables as `table,title,row,column,value`.
    Csv,
    /// Markdown tables.
    Markdown,
    /// One HTML file with pictures, which loads nothing.
    Html,
}

/// What a command prints.
#[derive(Debug, Clone)]
pub struct Output {
    json: serde_json::Value,
    /// For people: the terminal and Markdown.
    pub sheets: Vec<Sheet>,
    /// For Markdown, where that has room for more columns than a terminal.
    pub wide: Option<Vec<Sheet>>,
    /// For CSV, where that needs another layout than the sheets for people.
    pub flat: Option<Sheet>,
    /// Warnings; they go beside the output, not into it (JSON and HTML have them inside).
    pub warnings: Vec<String>,
    /// For HTML: the answer, and what is drawn.
    pub page: Option<Page>,
    /// The command that made the result, for HTML.
    pub command: Option<String>,
    /// The answer, above the tables for people; HTML and JSON have that of the page too.
    pub verdict: Option<String>,
    /// Whether a terminal's table is coloured: the answer bold, what is best green.
    pub colour: bool,
}

/// Why an output could not be rendered.
#[derive(Debug, Error)]
pub enum RenderError {
    /// A result that JSON cannot hold.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A result that CSV cannot hold.
    #[error("cannot write the result as CSV: {0}")]
    Csv(#[from] csv::Error),
}

impl Output {
    /// An output of `result`, laid out for people as `sheets`. Its JSON begins with the schema.
    ///
    /// # Errors
    /// The result cannot be written as JSON.
    pub fn new(result: &impl Serialize, sheets: Vec<Sheet>) -> Result<Self, RenderError> {
        let mut json = serde_json::Map::from_iter([("schema".to_owned(), SCHEMA.into())]);
        match serde_json::to_value(result)? {
            serde_json::Value::Object(fields) => json.extend(fields),
            list => drop(json.insert("results".to_owned(), list)),
        }
        let json = json.into();
        let (wide, flat, page, command, verdict) = (None, None, None, None, None);
        let warnings = Vec::new();
        Ok(Self { json, sheets, wide, flat, warnings, page, command, verdict, colour: false })
    }

    /// Adds a field to the JSON.
    pub(crate) fn add(&mut self, name: &str, value: &impl Serialize) -> Result<(), RenderError> {
        let value = serde_json::to_value(value)?;
        if let serde_json::Value::Object(fields) = &mut self.json {
            fields.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// The answer in words, wherever it stands; `None` where there is none.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        let of_page = || self.page.as_ref().map(|page| page.verdict.as_str());
        self.verdict.as_deref().or_else(of_page).filter(|answer| !answer.is_empty())
    }

    /// The JSON, with the answer behind the schema.
    fn json(&self) -> Result<String, RenderError> {
        let mut json = self.json.clone();
        if let (Some(answer), serde_json::Value::Object(fields)) = (self.answer(), &mut json) {
            fields.shift_insert(1, "verdict".to_owned(), answer.into());
        }
        Ok(clean::json(&serde_json::to_string_pretty(&json)?) + "\n")
    }

    /// Renders the output; the text ends with a line break.
    ///
    /// # Errors
    /// The result does not fit the format.
    pub fn render(&self, format: Format) -> Result<String, RenderError> {
        match format {
            Format::Json => self.json(),
            Format::Table => {
                let paint = terminal::Paint::new(self.colour);
                let answer = self.verdict.as_ref().map(|answer| terminal::answer(answer, paint));
                let tables = join(&self.sheets, |sheet| terminal::render(sheet, paint));
                Ok(answer.unwrap_or_default() + &tables)
            }
            Format::Markdown => {
                let answer = self.verdict.as_ref().map(|answer| markdown::answer(answer));
                let tables = join(self.wide.as_ref().unwrap_or(&self.sheets), markdown::render);
                Ok(answer.unwrap_or_default() + &tables)
            }
            Format::Html => html::render(self),
            Format::Csv => match &self.flat {
                Some(sheet) => csv_export::render(sheet),
                None => csv_export::render_all(&self.sheets),
            },
        }
    }
}

/// Sheets one after another with an empty line between them.
fn join(sheets: &[Sheet], render: impl Fn(&Sheet) -> String) -> String {
    sheets.iter().map(render).collect::<Vec<_>>().join("\n")
}
