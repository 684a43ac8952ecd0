//! A log line by line, in memory that does not grow with it.

use std::io::{BufRead, Read};

use super::error::LogError;

/// Longest line of a log: an event of thousands of experts fits many times.
const LONGEST_LINE: u64 = 4 << 20;

/// A text line by line, through one buffer.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The line last read, from 1.
    pub(super) line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), line: 0 }
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, LogError> {
        loop {
            self.buffer.clear();
            let line = self.line + 1;
            let read = self
                .reader
                .by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut self.buffer)
                .map_err(|reason| LogError::Io { line, reason })?;
            if read == 0 {
                return Ok(None);
            }
            self.line = line;
            if read as u64 == LONGEST_LINE && self.buffer.last() != Some(&b'\n') {
                let reason = format!("it is longer than {LONGEST_LINE} bytes");
                return Err(LogError::Malformed { line, reason });
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some(self.buffer.trim_ascii_end()));
            }
        }
    }
}
