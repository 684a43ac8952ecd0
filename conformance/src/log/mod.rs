//! An engine's decision log against a policy over the steps of a trace, and a policy's own log.
//!
//! JSON, one event a line, read as a stream: memory does not grow with the log. The format is in
//! `docs/conform.md`.

mod error;
mod lines;

use std::cell::Cell;
use std::io::{self, BufRead, Write};

use hotset_policies::{ExpertId, PolicySpec, Slots};
use hotset_sim::{EventSink, SimError, Steps, check_columns, drive};
use hotset_traces::{IdColumn, Phase, Trace};

use crate::check::Conformance;
use crate::compared::Compared;
use crate::decision::Decision;
use crate::divergence::Divergence;
use crate::error::ConformError;
use crate::shape::ModelShape;
pub use error::LogError;
use lines::Lines;

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
    /// The first event that differs.
    pub divergence: Option<LoggedDivergence>,
}

/// An event of a log that differs from the policy's.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedDivergence {
    /// The line that logs it, from 1.
    pub line: u64,
    /// How it differs.
    pub divergence: Divergence,
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
        let model = ModelShape { experts: &experts, top_k: &top_k };
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
    divergence: Option<LoggedDivergence>,
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
                self.divergence =
                    Some(LoggedDivergence { line: self.log.line, divergence: *divergence });
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
