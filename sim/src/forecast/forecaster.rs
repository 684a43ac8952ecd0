//! [`Forecaster`]: a source of predictions that follows a replay.

use hotset_policies::predict::{
    AnyPredictor, Guess, Horizon, Opening, Predictor, PredictorNeed, PrefetchControl,
    PrefetchController, Token,
};
use hotset_policies::{ExpertCache, Plan, Policy, PolicySpec};
use hotset_traces::Trace;

use super::feed::{self, Feed, Reads};
use super::follower::{self, Asker};
use super::oracle::Oracle;
use super::recorded::Recorded;
use super::spec::{Forecast, Learn, Prefetch, PrefetchSource};
use crate::columns::check_columns;
use crate::{PhaseFilter, SimError, Steps};

/// A predictor that has seen a part of a trace and may go on learning, or not.
///
/// # Errors
/// The trace lacks the router's weights and the predictor needs them.
pub fn trained(
    forecast: &Forecast,
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
) -> Result<Option<AnyPredictor>, SimError> {
    let PrefetchSource::Learned(spec) = &forecast.source else { return Ok(None) };
    let reads = needs(forecast, trace)?;
    let mut predictor = spec.build(&feed::layers(trace), forecast.horizon());
    feed::train(&mut predictor, trace, steps, phase, reads);
    Ok(Some(predictor))
}

impl Forecast {
    /// Bytes that its predictor comes to hold over a trace; 0 without one.
    pub(crate) fn memory(&self, trace: &Trace) -> u64 {
        match &self.source {
            PrefetchSource::Learned(spec) => spec.memory(&feed::layers(trace), self.horizon()),
            PrefetchSource::Recorded | PrefetchSource::Oracle(_) => 0,
        }
    }
}

/// Refuses a policy or a prefetcher whose columns the trace lacks, saying who gives them.
///
/// # Errors
/// [`SimError::MissingColumn`], [`SimError::Lookahead`].
pub fn check_needs(
    trace: &Trace,
    policy: &PolicySpec,
    prefetch: &Prefetch,
) -> Result<(), SimError> {
    check_columns(trace, policy)?;
    let Prefetch::By(forecast) = prefetch else { return Ok(()) };
    if forecast.source == PrefetchSource::Recorded {
        Recorded::of(trace, forecast.horizon())?;
    }
    needs(forecast, trace).map(|_| ())
}

/// What the predictor reads of a trace beside the routes.
fn needs(forecast: &Forecast, trace: &Trace) -> Result<Reads, SimError> {
    let info = forecast.source.info();
    let (asked, layers) = (forecast.horizon().nearest, trace.shape().layers().len());
    if layers == 1 {
        return Err(SimError::OneLayer);
    }
    if asked >= layers {
        return Err(SimError::LookaheadPastEnd { asked, layers });
    }
    let weights = info.needs == PredictorNeed::Weights;
    if weights && trace.weights().is_none() {
        return Err(SimError::missing_column(trace, "prefetcher", info.name, "weights"));
    }
    let guide = match &forecast.source {
        PrefetchSource::Learned(spec) => spec.guide(),
        PrefetchSource::Recorded | PrefetchSource::Oracle(_) => None,
    };
    follower::check(trace, Asker::prefetcher(info.name), guide.as_ref())?;
    Ok(Reads { weights, future: guide.is_some_and(|guide| guide.needs_future()) })
}

/// A source of predictions at work.
enum ActiveSource<'a> {
    Recorded(Recorded<'a>),
    Oracle(Oracle),
    Learned(Box<dyn Predictor>),
}

/// A token of the running step, the layer that was just decided and the one that is predicted.
#[derive(Debug, Clone, Copy)]
struct Question {
    index: usize,
    layer: usize,
    target: usize,
    /// Guesses at most; 0: as many as the source gives by itself.
    width: usize,
}

impl ActiveSource<'_> {
    /// Appends the guesses that answer `question`.
    #[inline]
    fn guess(&mut self, feed: &Feed<'_>, question: Question, guesses: &mut Vec<Guess>) {
        let Question { index, layer, target, width } = question;
        let token = feed.token(index, layer);
        let or = |own: usize| if width == 0 { own } else { width };
        match self {
            Self::Learned(predictor) => {
                let width = or(feed.layers().places(target).len());
                predictor.predict(&token, target as u32, width, guesses);
            }
            Self::Recorded(recorded) => {
                let place = recorded.place(token.row, target - layer, target);
                recorded.guess(place, or(recorded.width()), guesses);
            }
            Self::Oracle(oracle) => {
                let truth = feed.truth(index, target);
                let experts = feed.layers().experts(target);
                oracle.start(token.row, target).guess(truth, experts, or(usize::MAX), guesses);
            }
        }
    }
}

/// A source of predictions that follows a replay, under the control of prefetch.
pub(crate) struct Forecaster<'a> {
    feed: Feed<'a>,
    source: ActiveSource<'a>,
    controller: PrefetchController,
}

impl<'a> Forecaster<'a> {
    /// Follows a replay of the steps that `phase` picks. `trained`: the predictor as training left
    /// it; `None`: it begins knowing nothing. `expert_bytes`: for a budget.
    ///
    /// # Errors
    /// A column that the trace lacks; predictions further ahead than were recorded.
    pub fn of(
        trace: &'a Trace,
        steps: &'a Steps,
        phase: PhaseFilter,
        forecast: &Forecast,
        trained: Option<&AnyPredictor>,
        expert_bytes: &[u64],
    ) -> Result<Self, SimError> {
        let reads = needs(forecast, trace)?;
        let source = match &forecast.source {
            PrefetchSource::Recorded => {
                ActiveSource::Recorded(Recorded::of(trace, forecast.horizon())?)
            }
            PrefetchSource::Oracle(config) => ActiveSource::Oracle(Oracle::new(*config)),
            PrefetchSource::Learned(spec) => {
                let mut predictor = match trained {
                    Some(trained) if forecast.learn != Learn::Online => trained.clone(),
                    _ => spec.build(&feed::layers(trace), forecast.horizon()),
                };
                predictor.set_learning(forecast.learn != Learn::Trained);
                ActiveSource::Learned(Box::new(predictor))
            }
        };
        let feed = Feed::new(trace, steps, phase, reads);
        Ok(Self::with(feed, source, forecast.control, expert_bytes))
    }

    /// A predictor of an engine's own.
    pub(super) fn of_predictor(
        feed: Feed<'a>,
        predictor: Box<dyn Predictor>,
        control: PrefetchControl,
    ) -> Self {
        Self::with(feed, ActiveSource::Learned(predictor), control, &[])
    }

    fn with(
        feed: Feed<'a>,
        source: ActiveSource<'a>,
        control: PrefetchControl,
        expert_bytes: &[u64],
    ) -> Self {
        let controller = PrefetchController::new(control, feed.layers(), expert_bytes.to_vec());
        Self { feed, source, controller }
    }

    /// What of the guesses is fetched.
    pub fn control(&self) -> &PrefetchControl {
        self.controller.control()
    }

    /// The distances at which is predicted.
    pub(super) fn horizon(&self) -> Horizon {
        self.controller.horizon()
    }

    /// A step begins.
    pub fn begin_step(&mut self, step: usize) {
        self.controller.begin_step();
        match &mut self.source {
            ActiveSource::Learned(predictor) => self.feed.begin_step(step, predictor.as_mut()),
            ActiveSource::Recorded(_) | ActiveSource::Oracle(_) => {
                self.feed.begin_step(step, &mut LearnsNothing);
            }
        }
    }

    /// The router has decided a layer for all tokens of the step.
    #[inline]
    pub fn observe(&mut self, layer: usize) {
        match &mut self.source {
            ActiveSource::Learned(predictor) => self.feed.observe(layer, predictor.as_mut()),
            ActiveSource::Recorded(recorded) => {
                let Some(distance) = self.controller.horizon().distance_to(layer) else { return };
                for index in 0..self.feed.tokens() {
                    let row = self.feed.token(index, layer).row;
                    let place = recorded.place(row, distance, layer);
                    recorded.learn(place, self.feed.truth(index, layer));
                }
            }
            ActiveSource::Oracle(_) => {}
        }
    }

    /// The layers that are predicted once `layer` is decided, nearest first.
    pub fn targets(&self, layer: usize) -> impl Iterator<Item = usize> + use<> {
        self.controller.targets(layer)
    }

    /// Prefetches what is predicted for `target` once `layer` is decided.
    #[inline]
    pub fn prefetch<'c, P: Policy>(
        &mut self,
        cache: &'c mut ExpertCache<P>,
        layer: usize,
        target: usize,
    ) -> Plan<'c> {
        self.select(layer, target);
        self.controller.prefetch(cache, target)
    }

    /// Prefetches into `lower`, a tier below `cache`, what is predicted and not in `cache`.
    pub fn prefetch_below<'c, P: Policy, Q: Policy>(
        &mut self,
        cache: &ExpertCache<P>,
        lower: &'c mut ExpertCache<Q>,
        layer: usize,
        target: usize,
    ) -> Plan<'c> {
        self.select(layer, target);
        self.controller.keep(|expert| cache.slot_of(target, expert).is_none());
        self.controller.prefetch(lower, target)
    }

    /// Not one instance a policy: nothing here knows the cache.
    fn select(&mut self, layer: usize, target: usize) {
        let Self { feed, source, controller } = self;
        let width = controller.control().width as usize;
        controller.select(feed.tokens(), |index, guesses| {
            source.guess(feed, Question { index, layer, target, width }, guesses);
        });
    }

    /// Scores the guesses of each token of the step by itself: `judge` is handed those that the
    /// threshold keeps and what the token used.
    pub(super) fn judge(
        &mut self,
        layer: usize,
        target: usize,
        mut judge: impl FnMut(&[Guess], &[u32]),
    ) {
        let control = *self.control();
        let width = control.width as usize;
        let mut guesses = Vec::new();
        for index in 0..self.feed.tokens() {
            guesses.clear();
            self.source.guess(&self.feed, Question { index, layer, target, width }, &mut guesses);
            guesses.retain(|guess| control.keeps(guess));
            judge(&guesses, self.feed.truth(index, target));
        }
    }
}

/// A predictor that learns nothing, for sources that look their predictions up.
struct LearnsNothing;

impl Predictor for LearnsNothing {
    fn observe(&mut self, _: &Token<'_>) {}
    fn begin_sequence(&mut self, _: u32, _: &Opening<'_>) {}
    fn predict(&mut self, _: &Token<'_>, _: u32, _: usize, _: &mut Vec<Guess>) {}
    fn set_learning(&mut self, _: bool) {}
}
