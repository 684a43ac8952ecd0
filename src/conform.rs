//! Does an engine decide as a policy does? Its decision log against the policy over a trace.
//!
//! [`assert_conforms`] and [`Conformance`] are what an engine's own tests call; they come with
//! [`policies`](crate::policies), which an engine links, and read no file. Here is the same for
//! logs: JSON, one event a line, in memory that does not grow with the log. The format is in
//! `docs/conform.md`.

use std::cell::Cell;
use std::io::{self, BufRead, Read, Write};

use hotset_sim::{EventSink, SimError, Steps, check_columns, drive};
use hotset_traces::{IdColumn, Phase, Trace};
use thiserror::Error;

pub use hotset_policies::conform::*;
use hotset_policies::{ExpertId, PolicySpec, Slots};

/// Longest line of a log: an event of thousands of experts fits many times.
const LONGEST_LINE: u64 = 4 << 20;

/// What drives the policy: the steps of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Replayed<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its steps.
    pub steps: &'a Steps,
    /// The steps to replay; `None`: all.
    pub phase: Option<Phase>,
}

/// How a log that could be read to its end, or to its first divergence, turned out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was compared, up to the divergence.
    pub compared: Compared,
    /// The first event that differs, with the line that logs it, from 1.
    pub divergence: Option<(u64, Divergence)>,
}

/// Why a log cannot be compared.
#[derive(Debug, Error)]
pub enum LogError {
    /// It cannot be read, or the reference's cannot be written.
    #[error("line {line}: {reason}")]
    Io {
        /// The line, from 1.
        line: u64,
        /// The system's reason.
        reason: io::Error,
    },
    /// A line that is not an event.
    #[error(
        "line {line} is not an event: {reason}; a line is like {{\"layer\":0,\"hits\":[3],\
         \"fetches\":[{{\"expert\":7,\"evicted\":null}}]}}, see docs/conform.md"
    )]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// Where and why.
        reason: String,
    },
    /// A line that is an event, but not the one whose turn it is.
    #[error("line {line}: {reason}")]
    Event {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        reason: ConformError,
    },
    /// Fewer events than the trace has.
    #[error(
        "the log ends after {events} events, the trace's steps have {of}: is it cut short, or of \
         other steps (--phase, --chunk)?"
    )]
    Short {
        /// Events in the log.
        events: u64,
        /// Events of the trace.
        of: u64,
    },
    /// More events than the trace has.
    #[error(
        "line {line}: the log goes on after the {of} events of the trace's steps: is it of other \
         steps (--phase, --chunk)?"
    )]
    Long {
        /// The first line too many, from 1.
        line: u64,
        /// Events of the trace.
        of: u64,
    },
    /// A policy or a cache that cannot be the reference.
    #[error(transparent)]
    Reference(#[from] ConformError),
    /// A trace that cannot drive it.
    #[error(transparent)]
    Trace(#[from] SimError),
}

impl Replayed<'_> {
    /// Compares an engine's log with `policy` over `slots`, to the first event that differs.
    ///
    /// # Errors
    /// The log is malformed, or not of this trace.
    pub fn check(
        &self,
        policy: &PolicySpec,
        slots: &Slots,
        log: impl BufRead,
    ) -> Result<Outcome, LogError> {
        let mut checker = Checker { log: Lines::new(log), of: self.events(), divergence: None };
        let conformance = self.run(policy, slots, &mut checker)?;
        if checker.divergence.is_none() && checker.log.next()?.is_some() {
            return Err(LogError::Long { line: checker.log.line, of: self.events() });
        }
        Ok(Outcome { compared: conformance.compared(), divergence: checker.divergence })
    }

    /// Writes what the policy itself does, in the log's format. Returns the number of events.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn record(
        &self,
        policy: &PolicySpec,
        slots: &Slots,
        log: impl Write,
    ) -> Result<u64, LogError> {
        let mut recorder = Recorder { log: io::BufWriter::new(log) };
        let conformance = self.run(policy, slots, &mut recorder)?;
        let events = conformance.compared().events;
        recorder.log.flush().map_err(|reason| LogError::Io { line: events, reason })?;
        Ok(events)
    }

    /// Events of the steps that are replayed.
    #[must_use]
    pub fn events(&self) -> u64 {
        let phase = |step| self.trace.phase(self.steps.row(self.steps.places(step).start));
        let steps = (0..self.steps.len()).filter(|&step| self.wants(phase(step))).count();
        steps as u64 * self.trace.shape().layers().len() as u64
    }

    fn wants(&self, phase: Phase) -> bool {
        self.phase.is_none_or(|only| only == phase)
    }

    fn run(
        &self,
        policy: &PolicySpec,
        slots: &Slots,
        work: &mut dyn Work,
    ) -> Result<Conformance, LogError> {
        let layers = self.trace.shape().layers();
        if let Some(phase) = self.phase
            && !self.trace.phases().contains(&(phase as u8))
        {
            return Err(SimError::NoTokens { phase: phase.name() }.into());
        }
        check_columns(self.trace, policy)?;
        let (experts, top_k): (Vec<u32>, Vec<u32>) =
            layers.iter().map(|layer| (layer.experts, layer.top_k)).unzip();
        let model = Model { experts: &experts, top_k: &top_k };
        let stop = Cell::new(false);
        let mut sink = Sink {
            conformance: Conformance::new(policy, &model, slots)?,
            work,
            stop: &stop,
            error: None,
            wide: Vec::new(),
        };
        let wanted = |phase| !stop.get() && self.wants(phase);
        match self.trace.ids() {
            IdColumn::U8(ids) => drive(self.trace, ids, self.steps, wanted, &mut sink),
            IdColumn::U16(ids) => drive(self.trace, ids, self.steps, wanted, &mut sink),
        }
        match sink.error {
            Some(error) => Err(error),
            None => Ok(sink.conformance),
        }
    }
}

/// What is done with each event. Whether to go on.
trait Work {
    fn event(
        &mut self,
        conformance: &mut Conformance,
        layer: usize,
        experts: &[u32],
        weights: &[f32],
    ) -> Result<bool, LogError>;
}

/// Hands a trace's events to the work until it has seen enough.
struct Sink<'a> {
    conformance: Conformance,
    work: &'a mut dyn Work,
    stop: &'a Cell<bool>,
    error: Option<LogError>,
    wide: Vec<u32>,
}

impl<E: ExpertId> EventSink<E> for Sink<'_> {
    const WEIGHTS: bool = true;

    fn begin_step(&mut self, _: usize, _: Phase, tokens: u32) {
        self.conformance.begin_step(tokens);
    }

    fn event(&mut self, layer: usize, experts: &[E], weights: &[f32]) {
        if self.stop.get() {
            return; // The rest of the step in which the work ended.
        }
        self.wide.clear();
        self.wide.extend(experts.iter().map(|expert| expert.index()));
        match self.work.event(&mut self.conformance, layer, &self.wide, weights) {
            Ok(true) => {}
            Ok(false) => self.stop.set(true),
            Err(error) => {
                self.error = Some(error);
                self.stop.set(true);
            }
        }
    }

    fn end_step(&mut self) {}
}

struct Checker<R> {
    log: Lines<R>,
    of: u64,
    divergence: Option<(u64, Divergence)>,
}

impl<R: BufRead> Work for Checker<R> {
    fn event(
        &mut self,
        conformance: &mut Conformance,
        layer: usize,
        experts: &[u32],
        weights: &[f32],
    ) -> Result<bool, LogError> {
        let Some(text) = self.log.next()? else {
            return Err(LogError::Short { events: conformance.compared().events, of: self.of });
        };
        let decision: Decision =
            serde_json::from_slice(text).map_err(|error| malformed(self.log.line, &error))?;
        match conformance.event(layer, experts, weights, &decision) {
            Ok(()) => Ok(true),
            Err(ConformError::Diverged(divergence)) => {
                self.divergence = Some((self.log.line, *divergence));
                Ok(false)
            }
            Err(reason) => Err(LogError::Event { line: self.log.line, reason }),
        }
    }
}

fn malformed(line: u64, error: &serde_json::Error) -> LogError {
    // A line stands alone, so "at line 1" would mislead.
    let (column, text) = (error.column(), error.to_string());
    let what = text.split(" at line ").next().unwrap_or(&text);
    LogError::Malformed { line, reason: format!("{what} at column {column}") }
}

struct Recorder<W: Write> {
    log: io::BufWriter<W>,
}

impl<W: Write> Work for Recorder<W> {
    fn event(
        &mut self,
        conformance: &mut Conformance,
        layer: usize,
        experts: &[u32],
        weights: &[f32],
    ) -> Result<bool, LogError> {
        let line = conformance.compared().events + 1;
        let mut decision = conformance.decide(layer, experts, weights)?;
        for held in &mut decision.hits {
            held.slot = None; // Said when it was fetched.
        }
        serde_json::to_writer(&mut self.log, &decision)
            .map_err(io::Error::from)
            .and_then(|()| self.log.write_all(b"\n"))
            .map_err(|reason| LogError::Io { line, reason })?;
        Ok(true)
    }
}

/// A text line by line, through one buffer.
struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The line last read, from 1.
    line: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), line: 0 }
    }

    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<&[u8]>, LogError> {
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
