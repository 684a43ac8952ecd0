//! Prefetch: a predictor's guesses, what of them is fetched, and the tokens that they are made of.
//!
//! Once a layer's own misses are queued, each token of the step is shown to the predictor, and its
//! guesses for the layers further on are handed to
//! [`ExpertCache::prefetch`](hotset_policies::ExpertCache::prefetch).

mod control;
mod feed;
mod guided;
mod oracle;
mod recorded;
mod score;
mod spec;

use hotset_policies::PolicySpec;
use hotset_policies::predict::{
    AnyPredictor, Guess, Horizon, Layers, Opening, Predictor, PredictorNeed, Token,
};
use hotset_traces::{Phase, Trace};

use crate::{SimError, Steps};

pub use control::{Control, Priority, Protect};
pub(crate) use guided::Guided;
pub use guided::trained_guide;
pub use oracle::OracleConfig;
pub use score::{Quality, score, score_predictor, train_predictor};
pub use spec::{Forecast, Learn, Prefetch, Source, predictors};

use feed::{Feed, Reads};
use oracle::Oracle;
use recorded::Recorded;

/// The model as predictors see it.
pub(crate) fn layers(trace: &Trace) -> Layers {
    let (experts, top_k): (Vec<u32>, Vec<u32>) =
        trace.shape().layers().iter().map(|layer| (layer.experts, layer.top_k)).unzip();
    Layers::new(&experts, &top_k)
}

/// A predictor that has seen a part of a trace and may go on learning, or not.
///
/// # Errors
/// The trace lacks the router's weights and the predictor needs them.
pub fn trained(
    forecast: &Forecast,
    trace: &Trace,
    steps: &Steps,
    phase: Option<Phase>,
) -> Result<Option<AnyPredictor>, SimError> {
    let Source::Learned(spec) = &forecast.source else { return Ok(None) };
    let reads = needs(forecast, trace)?;
    let mut predictor = spec.build(&layers(trace), forecast.horizon());
    feed::train(&mut predictor, trace, steps, phase, reads);
    Ok(Some(predictor))
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
    crate::check_columns(trace, policy)?;
    let Prefetch::By(forecast) = prefetch else { return Ok(()) };
    if forecast.source == Source::Recorded {
        Recorded::of(trace, forecast)?;
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
        Source::Learned(spec) => spec.guide(),
        Source::Recorded | Source::Oracle(_) => None,
    };
    guided::check(trace, ("prefetcher", info.name), guide.as_ref())?;
    Ok(Reads { weights, future: guide.is_some_and(|guide| guide.needs_future()) })
}

/// Whoever predicts, at work.
enum Guesser<'a> {
    Recorded(Recorded<'a>),
    Oracle(Oracle),
    Learned(Box<dyn Predictor>),
}

/// A predictor that follows a replay.
pub(crate) struct Forecaster<'a> {
    feed: Feed<'a>,
    guesser: Guesser<'a>,
    control: Control,
    horizon: Horizon,
    guesses: Vec<Guess>,
    /// The guesses' experts, each once, in the order in which they are to be fetched.
    experts: Vec<u32>,
    /// The round in which an expert was last guessed, and the round.
    seen: Vec<u32>,
    round: u32,
}

impl<'a> Forecaster<'a> {
    /// Follows a replay of the steps of `phase`. `trained`: the predictor as training left it;
    /// `None`: it begins knowing nothing.
    ///
    /// # Errors
    /// A column that the trace lacks; predictions further ahead than were recorded.
    pub fn of(
        trace: &'a Trace,
        steps: &'a Steps,
        phase: Option<Phase>,
        forecast: &Forecast,
        trained: Option<&AnyPredictor>,
    ) -> Result<Self, SimError> {
        let reads = needs(forecast, trace)?;
        let guesser = match &forecast.source {
            Source::Recorded => Guesser::Recorded(Recorded::of(trace, forecast)?),
            Source::Oracle(config) => Guesser::Oracle(Oracle::new(*config)),
            Source::Learned(spec) => {
                let mut predictor = match trained {
                    Some(trained) if forecast.learn != Learn::Online => trained.clone(),
                    _ => spec.build(&layers(trace), forecast.horizon()),
                };
                predictor.set_learning(forecast.learn != Learn::Trained);
                Guesser::Learned(Box::new(predictor))
            }
        };
        let feed = Feed::new(trace, steps, phase, reads);
        Ok(Self::with(feed, guesser, forecast.control))
    }

    fn with(feed: Feed<'a>, guesser: Guesser<'a>, control: Control) -> Self {
        let layers = feed.layers();
        let widest = (0..layers.len()).map(|layer| layers.experts(layer)).max().unwrap_or(0);
        Self {
            feed,
            guesser,
            control,
            horizon: control.horizon(),
            guesses: Vec::new(),
            experts: Vec::new(),
            seen: vec![0; widest],
            round: 0,
        }
    }

    /// What of the guesses is fetched.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// A step begins.
    pub fn begin_step(&mut self, step: usize) {
        match &mut self.guesser {
            Guesser::Learned(predictor) => self.feed.begin_step(step, predictor.as_mut()),
            Guesser::Recorded(_) | Guesser::Oracle(_) => self.feed.begin_step(step, &mut Deaf),
        }
    }

    /// The router has decided a layer for all tokens of the step.
    #[inline]
    pub fn observe(&mut self, layer: usize) {
        match &mut self.guesser {
            Guesser::Learned(predictor) => self.feed.observe(layer, predictor.as_mut()),
            Guesser::Recorded(recorded) => {
                let Some(distance) = self.horizon.distance_to(layer) else { return };
                for index in 0..self.feed.tokens() {
                    let row = self.feed.token(index, layer).row;
                    recorded.learn(row, (distance, layer), self.feed.truth(index, layer));
                }
            }
            Guesser::Oracle(_) => {}
        }
    }

    /// The layers that are predicted once `layer` is decided, nearest first.
    pub fn targets(&self, layer: usize) -> impl Iterator<Item = usize> + use<> {
        let last = self.feed.layers().len();
        (layer + self.horizon.nearest..=layer + self.horizon.farthest)
            .take_while(move |&t| t < last)
    }

    /// The experts of `target` to fetch once `layer` is decided, each once.
    #[inline]
    pub fn guess(&mut self, layer: usize, target: usize) -> &[u32] {
        self.next_round();
        self.experts.clear();
        let by_confidence = self.control.priority == Priority::Confidence;
        if by_confidence {
            self.guesses.clear();
        }
        for index in 0..self.feed.tokens() {
            let start = if by_confidence { self.guesses.len() } else { 0 };
            self.guesses.truncate(start);
            self.guess_token(index, (layer, target));
            if !by_confidence {
                self.keep_each_once();
            }
        }
        if by_confidence {
            // Stable: equal confidences keep the order of tokens and ranks.
            self.guesses.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
            self.keep_each_once();
        }
        &self.experts
    }

    fn keep_each_once(&mut self) {
        let threshold = self.control.threshold as f32;
        for guess in self.guesses.iter().filter(|guess| guess.confidence >= threshold) {
            let seen = &mut self.seen[guess.expert as usize];
            if *seen != self.round {
                *seen = self.round;
                self.experts.push(guess.expert);
            }
        }
    }

    #[inline]
    fn guess_token(&mut self, index: usize, (layer, target): (usize, usize)) {
        let asked = match (self.control.width as usize, &self.guesser) {
            (0, Guesser::Learned(_)) => self.feed.layers().places(target).len(),
            (0, Guesser::Recorded(recorded)) => recorded.width(),
            (0, Guesser::Oracle(_)) => usize::MAX,
            (width, _) => width,
        };
        let token = self.feed.token(index, layer);
        match &mut self.guesser {
            Guesser::Learned(predictor) => {
                predictor.predict(&token, target as u32, asked, &mut self.guesses);
            }
            Guesser::Recorded(recorded) => {
                recorded.guess(token.row, (target - layer, target), asked, &mut self.guesses);
            }
            Guesser::Oracle(oracle) => {
                let truth = self.feed.truth(index, target);
                let experts = self.feed.layers().experts(target);
                oracle.guess((token.row, target), truth, experts, asked, &mut self.guesses);
            }
        }
    }

    fn next_round(&mut self) {
        if self.round == u32::MAX {
            self.seen.fill(0);
            self.round = 0;
        }
        self.round += 1;
    }
}

/// Learns nothing: for guessers that look things up.
struct Deaf;

impl Predictor for Deaf {
    fn observe(&mut self, _: &Token<'_>) {}
    fn begin_sequence(&mut self, _: u32, _: &Opening<'_>) {}
    fn predict(&mut self, _: &Token<'_>, _: u32, _: usize, _: &mut Vec<Guess>) {}
    fn set_learning(&mut self, _: bool) {}
}
