//! Records out of columns of text: commas, tabs, semicolons, bars or blanks between them.
//!
//! The header may stand behind a title or in a comment, and again where runs were appended. Lists
//! may stand in quotes, in brackets, or go on to the end of the line.

use std::io::{BufRead, Read};

use super::json::Sink;
use super::names::{Known, Meaning, Names};
use super::record::{Record, Requests, Scalar};
use crate::error::Result;
use crate::import::input::{Input, Stream};
use crate::import::lines::at_line;

/// Lines before the header, at most.
const MAX_PREAMBLE: usize = 64;
/// What may stand between columns; blanks are tried last.
const DELIMITERS: [u8; 5] = [b',', b'\t', b';', b'|', b' '];

/// A header that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) delimiter: u8,
    pub(super) columns: Vec<String>,
    pub(super) known: Vec<Option<Known>>,
    /// The rest of a preamble after it: 0 for the line itself.
    pub(super) line: usize,
    /// The line is no header but the first row.
    pub(super) is_row: bool,
}

impl Header {
    /// Whether a column of this meaning is there.
    pub(super) fn has(&self, meaning: Meaning) -> bool {
        self.known.iter().flatten().any(|known| known.meaning == meaning)
    }
}

/// The columns of a line, by one delimiter.
pub(super) fn split(line: &str, delimiter: u8) -> Vec<String> {
    let clean = |text: &str| text.trim().trim_matches('"').trim().to_owned();
    match delimiter {
        b' ' => line.split_whitespace().map(clean).collect(),
        other => line.split(char::from(other)).map(clean).collect(),
    }
}

/// A line as a header: columns of which at least a layer is known, and no numbers.
fn as_header(line: &str, names: &Names) -> Option<Header> {
    DELIMITERS.iter().find_map(|&delimiter| {
        let columns = split(line, delimiter);
        if columns.len() < 2 || columns.iter().any(|name| name.parse::<f64>().is_ok()) {
            return None;
        }
        let known: Vec<Option<Known>> = columns.iter().map(|name| names.find(name)).collect();
        let header = Header { delimiter, columns, known, line: 0, is_row: false };
        let what = header.has(Meaning::Experts) || header.has(Meaning::Count);
        (header.has(Meaning::Layer) && what).then_some(header)
    })
}

/// The header among the first lines of a text. What is in comments counts where no line of columns
/// came before it.
pub(super) fn find_header<'a>(
    lines: impl Iterator<Item = &'a str>,
    names: &Names,
) -> Option<Header> {
    let mut commented = None;
    for (number, line) in lines.take(MAX_PREAMBLE).enumerate() {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if let Some(comment) = comment(text) {
            if commented.is_none() {
                commented =
                    as_header(comment, names).map(|header| Header { line: number, ..header });
            }
            if comment.to_ascii_lowercase().contains("arcint routing trace v1") {
                commented = as_header("token layer expert_ids", names)
                    .map(|header| Header { line: number, ..header });
            }
            continue;
        }
        if let Some(header) = as_header(text, names) {
            return Some(Header { line: number, ..header });
        }
        let first = text.split([',', '\t', ';', '|', ' ']).next().unwrap_or_default();
        if first.trim_matches('"').parse::<f64>().is_ok() {
            // Rows have begun.
            return commented.map(|header| Header { line: number, is_row: true, ..header });
        }
    }
    None
}

/// Whether a row is a sum under the others.
fn is_sum(first: &str) -> bool {
    let first = first.trim().trim_matches('"');
    ["total", "sum", "all"].iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// What a comment says.
fn comment(line: &str) -> Option<&str> {
    ["#", "//", "%", "--"].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// Reads all rows behind the header.
pub(super) fn read(
    input: &Input<'_>,
    stream: &mut Stream<'_>,
    names: &Names,
    requests: &mut Requests,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut header = None;
    while header.is_none() && lines.len() < MAX_PREAMBLE {
        line.clear();
        let read = stream.by_ref().take(1 << 20).read_until(b'\n', &mut line);
        if read.map_err(|e| input.io(e))? == 0 {
            break;
        }
        lines.push(String::from_utf8_lossy(&line).into_owned());
        header = find_header(lines.iter().map(String::as_str), names);
    }
    let Some(header) = header else {
        return Err(input.error("header", "no line names its columns"));
    };
    let first = if header.is_row { line } else { Vec::new() };
    let before = lines.len() as u64 - u64::from(header.is_row);
    let token_texts = {
        let start = stream.fill_buf().map_err(|e| input.io(e))?;
        has_token_texts(&header, start)
    };
    let mut record = Record::default();
    record.token_texts = token_texts;
    let mut rows = Rows { input, header: &header, requests, sink, record };
    let all = first.as_slice().chain(stream);
    if header.delimiter == b' ' {
        return rows.blanks(all, before);
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(header.delimiter)
        .comment(Some(b'#'))
        .from_reader(all);
    let mut fields = csv::StringRecord::new();
    loop {
        let line = before + reader.position().line();
        let more = reader.read_record(&mut fields);
        if !more.map_err(|e| at_line(input, line, e.to_string()))? {
            return Ok(());
        }
        let line = before + fields.position().map_or(line, csv::Position::line);
        rows.row(line, &fields.iter().collect::<Vec<&str>>())?;
    }
}

/// Whether the column of tokens holds their texts: one of the first rows has no number there.
fn has_token_texts(header: &Header, start: &[u8]) -> bool {
    let place = header
        .known
        .iter()
        .position(|known| known.is_some_and(|known| known.meaning == Meaning::Token));
    let Some(place) = place.filter(|_| header.delimiter != b' ') else { return false };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(header.delimiter)
        .comment(Some(b'#'))
        .from_reader(start);
    let mut fields = csv::ByteRecord::new();
    // The last row may be cut.
    let mut number = None;
    while matches!(reader.read_byte_record(&mut fields), Ok(true)) {
        if number == Some(false) {
            return true;
        }
        let field = fields.get(place).and_then(|field| std::str::from_utf8(field).ok());
        let header_again = field == header.columns.get(place).map(String::as_str);
        number = field.map(|field| header_again || field.trim().parse::<f64>().is_ok());
    }
    false
}

struct Rows<'a, 'i> {
    input: &'a Input<'i>,
    header: &'a Header,
    requests: &'a mut Requests,
    sink: &'a mut dyn Sink,
    record: Record,
}

impl Rows<'_, '_> {
    /// Lines of columns with blanks between them.
    fn blanks(&mut self, mut all: impl BufRead, before: u64) -> Result<()> {
        let (mut line, mut number) = (Vec::new(), before);
        loop {
            line.clear();
            let read = all.by_ref().take(16 << 20).read_until(b'\n', &mut line);
            if read.map_err(|e| self.input.io(e))? == 0 {
                return Ok(());
            }
            number += 1;
            let text = String::from_utf8_lossy(&line);
            if comment(text.trim()).is_none() {
                let fields: Vec<&str> = text.split_whitespace().collect();
                self.row(number, &fields)?;
            }
        }
    }

    /// One row; lists in brackets that commas have cut are put together again.
    fn row(&mut self, line: u64, fields: &[&str]) -> Result<()> {
        if fields.len() <= self.header.columns.len() || !fields.iter().any(|f| f.contains('[')) {
            return self.whole_row(line, fields);
        }
        let mut joined: Vec<String> = Vec::new();
        let mut open = false;
        for field in fields {
            match joined.last_mut() {
                Some(list) if open => {
                    list.push(' ');
                    list.push_str(field);
                }
                _ => joined.push((*field).to_owned()),
            }
            open = (open || field.contains('[')) && !field.contains(']');
        }
        self.whole_row(line, &joined.iter().map(String::as_str).collect::<Vec<&str>>())
    }

    fn whole_row(&mut self, line: u64, fields: &[&str]) -> Result<()> {
        let fault = |problem: String| at_line(self.input, line, problem);
        let header = self.header;
        if fields.iter().all(|field| field.trim().is_empty()) {
            return Ok(());
        }
        let again = |(field, name): (&&str, &String)| field.trim().trim_matches('"') == name;
        if fields.len() == header.columns.len() && fields.iter().zip(&header.columns).all(again) {
            return Ok(());
        }
        if let Some(first) = fields.first()
            && comment(first.trim()).is_some()
        {
            return Ok(());
        }
        if fields.first().is_some_and(|first| is_sum(first)) {
            return Ok(());
        }
        self.record.clear();
        let last = header.columns.len() - 1;
        if fields.len() < header.columns.len()
            && !header.known[fields.len()..].iter().flatten().all(|known| known.number.is_some())
        {
            let (found, named) = (fields.len(), header.columns.len());
            return Err(fault(format!("{found} columns, the header names {named}")));
        }
        for (at, field) in fields.iter().enumerate().take(last + 1) {
            let Some(known) = header.known[at] else { continue };
            let list = matches!(known.meaning, Meaning::Experts | Meaning::Weights);
            if field.trim().is_empty() {
                continue;
            }
            if at == last && fields.len() > last + 1 && list {
                // The last column goes on to the end of the line.
                let rest = fields[at..].join(" ");
                self.record.set(known, Scalar::Text(&rest), self.requests).map_err(fault)?;
                continue;
            }
            let value = field.trim();
            if known.meaning == Meaning::Layer && super::names::layer_number(value).is_none() {
                if is_sum(value) {
                    return Ok(());
                }
                return Err(fault(format!("layer {value:?} has no number")));
            }
            self.record.set(known, Scalar::Text(value), self.requests).map_err(fault)?;
        }
        if fields.len() > last + 1
            && !header.known[last]
                .is_some_and(|known| matches!(known.meaning, Meaning::Experts | Meaning::Weights))
        {
            let (found, named) = (fields.len(), header.columns.len());
            return Err(fault(format!(
                "{found} columns, the header names {named}: put lists in quotes, or make the list \
                 the last column"
            )));
        }
        self.sink.record(&mut self.record).map_err(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Option<Header> {
        find_header(text.lines(), &Names::new(&[]).unwrap())
    }

    #[test]
    fn headers_are_found_behind_titles_and_in_comments() {
        let found = header("=== Log ===\nLayer,Token,ExpertIDs\n0,0,\"[1 2]\"\n").unwrap();
        assert_eq!((found.delimiter, found.line, found.is_row), (b',', 1, false));
        let found = header("# token_id,layer_id,expert_0,expert_1\n# more\n0,0,5,6\n").unwrap();
        assert_eq!((found.line, found.is_row), (2, true));
        assert_eq!(header("token;layer;rank;expert\n").unwrap().delimiter, b';');
        assert_eq!(header("token layer experts\n").unwrap().delimiter, b' ');
        assert_eq!(header("0,0,16\n0,1,5\n"), None);
        assert_eq!(header("a,b,c\n1,2,3\n"), None);
    }
}
