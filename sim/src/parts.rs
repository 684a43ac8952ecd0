//! The parts of a trace: what is replayed and what is trained on.

use std::borrow::Cow;
use std::sync::OnceLock;

use hotset_policies::miss::MissHandler;
use hotset_traces::{Phase, Trace};

use crate::columns::check_misses;
use crate::request::Compare;
use crate::sampling::{SampleSummary, choose};
use crate::{Shuffle, SimError, Steps, TrainingSplit};

/// A part of a trace, and its steps once they are asked for.
#[derive(Debug)]
pub(crate) struct Part<'t> {
    pub trace: Cow<'t, Trace>,
    steps: OnceLock<Steps>,
}

impl<'t> Part<'t> {
    fn new(trace: Cow<'t, Trace>) -> Self {
        Self { trace, steps: OnceLock::new() }
    }

    /// Its steps under a request: composed when they are first asked for.
    pub fn steps(&self, request: &Compare) -> Result<&Steps, SimError> {
        if let Some(steps) = self.steps.get() {
            return Ok(steps);
        }
        let steps = request.serving.steps(&self.trace, request.chunk)?;
        Ok(self.steps.get_or_init(|| steps))
    }
}

/// What of a trace is replayed and what is trained on.
#[derive(Debug)]
pub struct Parts<'t> {
    replayed: Part<'t>,
    training: Option<Part<'t>>,
    split: Option<TrainingSplit>,
    shuffled: Option<Trace>,
    sample: Option<SampleSummary>,
    /// Whether sequences were left out and nothing else was changed: results are then of the whole trace.
    is_cut: bool,
    /// Share of the router's weight by phase that lies beyond the ranks that are kept.
    left_out: [Option<f64>; 3],
}

impl<'t> Parts<'t> {
    /// Shuffles and cuts a trace as the request says.
    ///
    /// # Errors
    /// A trace that cannot be shuffled or cut so; a phase that what is replayed does not have.
    pub fn of(trace: &'t Trace, request: &Compare) -> Result<Self, SimError> {
        let (sample, chosen) = sample(trace, request)?;
        let from = chosen.as_ref().unwrap_or(trace);
        let shuffled = match request.training.shuffle {
            None => None,
            Some(Shuffle::Tokens) => {
                let shuffled = from.shuffle_tokens(request.seed);
                Some(shuffled.map_err(|error| SimError::Shuffle(error.to_string()))?)
            }
        };
        check_misses(from, request.serving.misses)?;
        let Some(percent) = request.training_share() else {
            let is_cut = chosen.is_some() && shuffled.is_none();
            let replayed = shuffled.or(chosen).map_or(Cow::Borrowed(trace), Cow::Owned);
            request.phase.present(&replayed)?;
            return Self { sample, is_cut, ..Self::untrained(replayed) }.with_top(request);
        };
        let cut = TrainingSplit::of(shuffled.as_ref().unwrap_or(from), percent)?;
        request.phase.present(&cut.tested)?;
        Self {
            replayed: Part::new(Cow::Owned(cut.tested)),
            training: Some(Part::new(Cow::Owned(cut.training))),
            split: Some(cut.split),
            shuffled,
            sample,
            is_cut: false,
            left_out: [None; 3],
        }
        .with_top(request)
    }

    /// The parts with the ranks that the request keeps of each token.
    fn with_top(mut self, request: &Compare) -> Result<Self, SimError> {
        let MissHandler::Top { k } = request.serving.misses else { return Ok(self) };
        let trace = &self.replayed.trace;
        self.left_out =
            Phase::ALL.map(|phase| trace.weight_beyond(k, |row| trace.phase(row) == phase));
        let kept = |part: &Part<'_>| -> Result<Part<'t>, SimError> {
            Ok(Part::new(Cow::Owned(part.trace.keep_top(k)?)))
        };
        self.replayed = kept(&self.replayed)?;
        self.training = self.training.as_ref().map(kept).transpose()?;
        Ok(self)
    }

    /// The share of the router's weight of a phase that lies beyond the ranks that are kept, 0 to 1;
    /// `None` where all are.
    pub(crate) fn left_out(&self, phase: Phase) -> Option<f64> {
        self.left_out[phase as usize]
    }

    /// A whole trace, nothing trained.
    #[must_use]
    pub fn untrained(trace: Cow<'t, Trace>) -> Self {
        Self {
            replayed: Part::new(trace),
            training: None,
            split: None,
            shuffled: None,
            sample: None,
            is_cut: false,
            left_out: [None; 3],
        }
    }

    /// A trace to replay and another to train on, cut by whoever asks.
    #[must_use]
    pub fn trained(training: &'t Trace, replayed: &'t Trace) -> Self {
        Self {
            training: Some(Part::new(Cow::Borrowed(training))),
            ..Self::untrained(Cow::Borrowed(replayed))
        }
    }

    /// What is replayed.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.replayed.trace
    }

    /// How the trace was cut, if it was.
    #[must_use]
    pub fn split(&self) -> Option<&TrainingSplit> {
        self.split.as_ref()
    }

    /// Which sequences stand for the trace, where not all do.
    #[must_use]
    pub fn sample(&self) -> Option<&SampleSummary> {
        self.sample.as_ref()
    }

    /// What is replayed, with its steps.
    pub(crate) fn replayed(&self) -> &Part<'t> {
        &self.replayed
    }

    /// What is trained on, if anything is.
    pub(crate) fn training(&self) -> Option<&Part<'t>> {
        self.training.as_ref()
    }

    /// The trace, shuffled if that was asked for, before it was cut.
    pub(crate) fn whole<'s>(&'s self, trace: &'s Trace) -> &'s Trace {
        match (&self.shuffled, &self.split) {
            (Some(shuffled), _) => shuffled,
            (None, Some(_)) => trace,
            (None, None) if self.is_cut => trace,
            (None, None) => self.trace(),
        }
    }
}

/// The request's sample of a trace, and the sequences chosen, if those are not all.
fn sample(
    trace: &Trace,
    request: &Compare,
) -> Result<(Option<SampleSummary>, Option<Trace>), SimError> {
    let Some(percent) = request.sample else { return Ok((None, None)) };
    let (sequences, chosen) = choose(trace, percent, request.seed)?;
    let summary = SampleSummary::of(percent, sequences, chosen.as_ref().unwrap_or(trace), trace);
    Ok((Some(summary), chosen))
}
