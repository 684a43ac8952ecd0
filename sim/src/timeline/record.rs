//! What ran when, for a person to look at: Chrome's trace events, which Perfetto opens.

use std::io::{self, Write};
use std::ops::Range;

/// Where something ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The compute stream.
    Compute,
    /// The copy engines.
    Copy,
    /// The host's cores.
    Host,
    /// The disk.
    Disk,
}

/// Something that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where.
    pub lane: Lane,
    /// What.
    pub name: &'static str,
    /// For which layer.
    pub layer: u32,
    /// For which expert, if for one.
    pub expert: Option<u32>,
    /// In which step, counted from the replay's first.
    pub step: u64,
    /// Start in picoseconds.
    pub begin: u64,
    /// End in picoseconds.
    pub end: u64,
}

/// Spans of some steps of a replay, at most so many.
#[derive(Debug)]
pub struct Recorder {
    spans: Vec<Span>,
    most: usize,
    skip: u64,
    step: u64,
    dropped: u64,
}

impl Recorder {
    /// Records from step `skip` on (0: the first), at most `most` spans (64 bytes each).
    #[must_use]
    pub fn new(skip: u64, most: usize) -> Self {
        Self { spans: Vec::new(), most, skip, step: 0, dropped: 0 }
    }

    pub(super) fn begin_step(&mut self) {
        self.step += 1;
    }

    pub(super) fn add(
        &mut self,
        lane: Lane,
        name: &'static str,
        layer: u32,
        expert: Option<u32>,
        span: Range<u64>,
    ) {
        let step = self.step.saturating_sub(1);
        let Range { start: begin, end } = span;
        if step < self.skip || begin == end {
            return;
        }
        if self.spans.len() == self.most {
            self.dropped += 1;
            return;
        }
        self.spans.push(Span { lane, name, layer, expert, step, begin, end });
    }

    /// What was recorded.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Spans that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes Chrome's trace events as JSON, one a line. Times are microseconds with six digits:
    /// every picosecond.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_chrome(&self, title: &str, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"title\":\"{}\",\"dropped\":{}}},\"traceEvents\":[",
            escaped(title),
            self.dropped
        )?;
        let disk = self.spans.iter().any(|span| span.lane == Lane::Disk);
        let lanes = [
            (Lane::Compute, "compute"),
            (Lane::Copy, "copies"),
            (Lane::Host, "host"),
            (Lane::Disk, "disk"),
        ];
        for (lane, name) in lanes.into_iter().take(if disk { 4 } else { 3 }) {
            writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}},",
                lane as u32
            )?;
        }
        for span in &self.spans {
            write!(
                out,
                "{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":\"{}\",\"ts\":{},\"dur\":{},\"args\":{{\"step\":{},\"layer\":{}",
                span.lane as u32,
                span.name,
                micros(span.begin),
                micros(span.end - span.begin),
                span.step,
                span.layer
            )?;
            if let Some(expert) = span.expert {
                write!(out, ",\"expert\":{expert}")?;
            }
            writeln!(out, "}}}},")?;
        }
        // The format has no comma after the last event: one more event ends the list.
        writeln!(
            out,
            "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"hotset replay\"}}}}\n]}}"
        )
    }
}

fn micros(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

/// A text within a JSON string.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_bounded_and_come_out_as_chrome_events() {
        let mut recorder = Recorder::new(1, 2);
        for step in 0..4 {
            recorder.begin_step();
            let begin = 10_000_000 * step;
            recorder.add(Lane::Copy, "demand", 3, Some(7), begin..begin + 1_500_001);
            recorder.add(Lane::Compute, "dense", 3, None, begin..begin);
        }
        assert_eq!((recorder.spans().len(), recorder.dropped()), (2, 1));
        let mut json = Vec::new();
        recorder.write_chrome("a \"b\"", &mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert!(json.contains(
            "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"demand\",\"ts\":10.000000,\
             \"dur\":1.500001,\"args\":{\"step\":1,\"layer\":3,\"expert\":7}},"
        ));
        assert!(json.contains("\"title\":\"a \\\"b\\\"\",\"dropped\":1"));
    }
}
