//! Records out of JSON: lines, arrays, pretty printed, one inside another.
//!
//! Objects are cut out of the stream by their brackets, so that neither lines nor the size of an
//! array matter; each is read by the names of its keys straight into a [`Record`].

use std::io::BufRead;

use super::keys::Keys;
use super::names::Names;
use super::object::{Sink, read_object};
use super::record::{Record, Requests};
use crate::error::Result;
use crate::import::input::{Input, Stream};
use crate::import::lines::at_line;

/// Bytes of one object, at most.
const MAX_OBJECT: usize = 256 << 20;
/// Cuts objects out of a stream.
struct Objects<'a, 'b> {
    stream: &'b mut Stream<'a>,
    line: u64,
}

impl Objects<'_, '_> {
    /// The next object, and the line where it begins. What stands between objects is passed over:
    /// brackets of lists, commas, comments.
    fn next(&mut self, input: &Input<'_>, object: &mut Vec<u8>) -> Result<Option<u64>> {
        object.clear();
        let (mut depth, mut quoted, mut escaped, mut comment) = (0usize, false, false, false);
        let mut begun = self.line;
        loop {
            let bytes = self.stream.fill_buf().map_err(|e| input.io(e))?;
            if bytes.is_empty() {
                return match depth {
                    0 => Ok(None),
                    _ => Err(at_line(input, begun, "an object that does not end")),
                };
            }
            let (mut start, mut end, mut done) = (if depth > 0 { 0 } else { usize::MAX }, 0, false);
            for (at, &byte) in bytes.iter().enumerate() {
                end = at + 1;
                match byte {
                    b'\n' => {
                        self.line += 1;
                        comment = false;
                    }
                    _ if comment => {}
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' if depth > 0 => quoted = !quoted,
                    _ if quoted => {}
                    b'{' => {
                        if depth == 0 {
                            (start, begun) = (at, self.line);
                        }
                        depth += 1;
                    }
                    b'}' if depth > 0 => {
                        depth -= 1;
                        if depth == 0 {
                            done = true;
                            break;
                        }
                    }
                    b'#' | b'/' if depth == 0 => comment = true,
                    _ => {}
                }
            }
            if start < end {
                object.extend_from_slice(&bytes[start..end]);
            }
            self.stream.consume(end);
            if object.len() > MAX_OBJECT {
                let most = MAX_OBJECT >> 20;
                return Err(at_line(input, begun, format!("an object of over {most} MiB")));
            }
            if done {
                return Ok(Some(begun));
            }
        }
    }
}

/// Reads all objects of a stream.
pub(super) fn read(
    input: &Input<'_>,
    stream: &mut Stream<'_>,
    names: &Names,
    requests: &mut Requests,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut objects = Objects { stream, line: 1 };
    let mut object = Vec::new();
    let mut keys = Keys::new(names);
    let mut record = Record::default();
    while let Some(line) = objects.next(input, &mut object)? {
        record.clear();
        let read = read_object(&object, &mut keys, requests, sink, &mut record);
        let read = match read {
            // Python writes NaN where JSON has no word for it.
            Err(_) if has_nan(&object) => {
                without_nan(&mut object);
                record.clear();
                read_object(&object, &mut keys, requests, sink, &mut record)
            }
            other => other,
        };
        read.map_err(|problem| at_line(input, line, problem))?;
    }
    Ok(())
}

const NANS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

fn has_nan(object: &[u8]) -> bool {
    NANS.iter().any(|nan| object.windows(nan.len()).any(|part| part == *nan))
}

/// Writes `null` for what is no number, outside of texts.
fn without_nan(object: &mut Vec<u8>) {
    let mut out = Vec::with_capacity(object.len());
    let (mut at, mut quoted) = (0, false);
    while at < object.len() {
        let rest = &object[at..];
        if !quoted && let Some(nan) = NANS.iter().find(|nan| rest.starts_with(nan)) {
            out.extend_from_slice(b"null");
            at += nan.len();
            continue;
        }
        if quoted && rest[0] == b'\\' && rest.len() > 1 {
            out.extend_from_slice(&rest[..2]);
            at += 2;
            continue;
        }
        quoted ^= rest[0] == b'"';
        out.push(rest[0]);
        at += 1;
    }
    *object = out;
}
