//! One reader of named columns: JSON lines, JSON arrays, CSV and its kin, plain text with a header.
//!
//! Columns are told by their names (`names`), a line is read into a `Record` whatever its syntax
//! (`json`, `text`), records become cells and rows (`cells`, `passes`), rows are kept outside of
//! memory (`store`) until all layers and sequences are known, and then become a trace (`finish`).

mod cells;
mod finish;
mod json;
mod kind;
mod names;
mod passes;
mod record;
mod store;
#[cfg(test)]
mod tests;
mod text;

use self::cells::Cells;
use self::store::Store;
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::sniff::Sniff;
use crate::error::Result;

pub(super) use self::json::Sink;
pub(super) use self::kind::{Kind, kind};
pub(super) use self::names::{Names, phase};
pub(super) use self::record::{Record, Requests};

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "columns",
    description: "named columns, as JSON lines, JSON arrays, CSV or text with a header: one token \
                  and layer, one selection, or one layer of several tokens a line",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    extensions: &["jsonl", "json", "csv", "tsv", "txt", "log", "trace", "ndjson"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Columns,
    importer: Importer::All(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Possible.when(kind(sniff) == Some(Kind::Routes))
}

fn import(inputs: &[Input<'_>], into: &mut Collector<'_>) -> Result<()> {
    let mut all = Read::of(inputs, into, false)?;
    // Numbers that fall without any of them coming twice are no passes: lines in no order.
    if finish::is_scattered(&all.files, &all.rows) && inputs.iter().all(Input::can_be_read_again)
        // Where they are too many, or contradict each other, what is said of their order is better.
        && let Ok(sorted) = Read::of(inputs, into, true)
    {
        into.note("lines are in no order of tokens: they are sorted by their numbers");
        all = sorted;
    }
    all.sources.into_iter().for_each(|source| into.read(source));
    finish::finish(inputs, all.files, all.rows, into)
}

/// What was read of all files.
struct Read {
    files: Vec<cells::File>,
    rows: store::Rows,
    /// What provenance says of each.
    sources: Vec<serde_json::Value>,
}

impl Read {
    fn of(inputs: &[Input<'_>], into: &Collector<'_>, any_order: bool) -> Result<Self> {
        let mut store = Store::new(into.spool());
        let (mut files, mut sources) = (Vec::new(), Vec::new());
        for input in inputs {
            let names = Names::new(&into.options.columns);
            let names = names.map_err(|problem| input.error("columns", problem))?;
            let mut requests = Requests::default();
            let begun = files
                .last()
                .map_or((0, 0), |file: &cells::File| (file.next_sequence, file.next_pass));
            let mut cells = Cells::new(&mut store, begun, into.options.top_k, any_order);
            sources.push(read(input, &names, &mut requests, &mut cells)?);
            files.push(cells.finish(input)?);
        }
        Ok(Self { files, rows: store.finish()?, sources })
    }
}

/// Reads all records of a file, and says what provenance says of it.
pub(super) fn read(
    input: &Input<'_>,
    names: &Names,
    requests: &mut Requests,
    sink: &mut dyn Sink,
) -> Result<serde_json::Value> {
    let mut stream = input.stream()?;
    if is_json(&mut stream).map_err(|e| input.io(e))? {
        json::read(input, &mut stream, names, requests, sink)?;
    } else {
        text::read(input, &mut stream, names, requests, sink)?;
    }
    stream.source()
}

/// Whether a text is JSON, by its first letter.
fn is_json(stream: &mut super::input::Stream<'_>) -> std::io::Result<bool> {
    use std::io::BufRead;
    let start = stream.fill_buf()?;
    // Comments before JSON are passed over.
    let mut comment = false;
    for &byte in start {
        match byte {
            b'\n' => comment = false,
            _ if comment || byte.is_ascii_whitespace() => {}
            b'#' | b'/' => comment = true,
            other => return Ok(matches!(other, b'{' | b'[')),
        }
    }
    Ok(false)
}
