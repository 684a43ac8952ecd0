//! A trace's tokens as predictors see them: which lane each sequence has, and each token's routes.

use std::ops::Range;

use hotset_policies::predict::{Layers, Opening, Predictor, Token, TokenPlace};
use hotset_traces::Trace;

use crate::capacity::dimensions;
use crate::{PhaseFilter, Steps};

const NO_LANE: u32 = u32::MAX;

/// What is read of a trace beside the routes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// The router's weights.
    pub weights: bool,
    /// What each sequence is going to use: for a ceiling.
    pub future: bool,
}

/// The model as predictors see it.
pub(crate) fn layers(trace: &Trace) -> Layers {
    let (experts, top_k) = dimensions(trace.shape());
    Layers::new(&experts, &top_k)
}

/// Walks with a replay through its steps.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    trace: &'a Trace,
    steps: &'a Steps,
    phase: PhaseFilter,
    layers: Layers,
    reads: Reads,
    /// Last row of each sequence that is replayed.
    last: Vec<usize>,
    /// The lane of each sequence that runs.
    lanes: Vec<u32>,
    free: Vec<u32>,
    taken: u32,
    /// Lanes whose sequences ended with the latest step.
    ended: Vec<u32>,
    /// Lane and row of each token of the step, and their routes and weights one after another.
    tokens: Vec<(u32, usize)>,
    routes: Vec<u32>,
    weights: Vec<f32>,
    known: Known,
}

/// What a sequence opens with.
#[derive(Debug, Default)]
struct Known {
    embeddings: [Vec<f32>; 2],
    prompt_uses: Vec<u32>,
    own_uses: Vec<u32>,
}

impl<'a> Feed<'a> {
    /// For a replay of the steps that `phase` picks. Weights are read where there are any.
    pub fn new(trace: &'a Trace, steps: &'a Steps, phase: PhaseFilter, reads: Reads) -> Self {
        let wanted = |row: &usize| phase.wants(trace.phase(*row));
        let last = |rows: std::ops::Range<usize>| rows.rev().find(wanted).unwrap_or(usize::MAX);
        let sequences = trace.sequences();
        Self {
            trace,
            steps,
            phase,
            layers: layers(trace),
            reads: Reads { weights: reads.weights && trace.weights().is_some(), ..reads },
            last: sequences.iter().map(|sequence| last(sequence.rows.clone())).collect(),
            lanes: vec![NO_LANE; sequences.len()],
            free: Vec::new(),
            taken: 0,
            ended: Vec::new(),
            tokens: Vec::new(),
            routes: Vec::new(),
            weights: Vec::new(),
            known: Known::default(),
        }
    }

    /// The model.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// A step begins: sequences that are over leave their lanes, new ones take one.
    pub fn begin_step(&mut self, step: usize, predictor: &mut dyn Predictor) {
        for lane in std::mem::take(&mut self.ended) {
            predictor.end_sequence(lane);
            self.free.push(lane);
        }
        let (trace, row_len) = (self.trace, self.layers.row_len());
        self.tokens.clear();
        self.routes.clear();
        self.weights.clear();
        for place in self.steps.places(step) {
            let row = self.steps.row(place);
            let sequence = trace.sequence_of(row);
            if self.lanes[sequence] == NO_LANE {
                self.open(sequence, row, predictor);
            }
            let lane = self.lanes[sequence];
            if row == self.last[sequence] {
                self.ended.push(lane);
                self.lanes[sequence] = NO_LANE;
            }
            self.tokens.push((lane, row));
            let places = row * row_len..(row + 1) * row_len;
            match trace.ids() {
                hotset_traces::IdColumn::U8(ids) => {
                    self.routes.extend(ids[places.clone()].iter().map(|&id| u32::from(id)));
                }
                hotset_traces::IdColumn::U16(ids) => {
                    self.routes.extend(ids[places.clone()].iter().map(|&id| u32::from(id)));
                }
            }
            if let Some(weights) = trace.weights().filter(|_| self.reads.weights) {
                self.weights.extend(places.map(|place| weights.get(place)));
            }
        }
    }

    /// The run is over, and with it every sequence.
    pub fn finish(&mut self, predictor: &mut dyn Predictor) {
        self.ended.extend(self.lanes.iter().filter(|&&lane| lane != NO_LANE));
        self.ended.drain(..).for_each(|lane| predictor.end_sequence(lane));
    }

    fn open(&mut self, sequence: usize, row: usize, predictor: &mut dyn Predictor) {
        let lane = self.free.pop().unwrap_or(self.taken);
        self.taken = self.taken.max(lane + 1);
        self.lanes[sequence] = lane;
        let Known { embeddings, prompt_uses, own_uses } = &mut self.known;
        embeddings.iter_mut().for_each(Vec::clear);
        if let Some(recorded) = self.trace.embeddings() {
            let both = [recorded.input(sequence), recorded.output(sequence)];
            for (embedding, recorded) in embeddings.iter_mut().zip(both) {
                embedding.extend(recorded.iter().map(|value| value.to_f32()));
            }
        }
        let rows = self.trace.sequences()[sequence].rows.clone();
        let count = |rows: Range<usize>, uses: &mut Vec<u32>, only: PhaseFilter| {
            uses.clear();
            uses.resize(self.layers.total_experts(), 0);
            let rows = rows.filter(|&row| only.wants(self.trace.phase(row)));
            rows.map(|row| add_uses(self.trace, &self.layers, row, uses)).count() as u32
        };
        // What lies before the first row that is replayed ran too: another cache served it.
        let prompt_tokens = count(rows.start..row, prompt_uses, PhaseFilter::All);
        let own_tokens = if self.reads.future { count(rows, own_uses, self.phase) } else { 0 };
        let opening = Opening {
            embedding: &embeddings[0],
            embedding_out: &embeddings[1],
            prompt_uses: if prompt_tokens > 0 { prompt_uses } else { &[] },
            prompt_tokens,
            own_uses: if own_tokens > 0 { own_uses } else { &[] },
            own_tokens,
        };
        predictor.begin_sequence(lane, &opening);
    }

    /// Shows a predictor what the router decided in a layer, token by token.
    #[inline]
    pub fn observe(&self, layer: usize, predictor: &mut dyn Predictor) {
        (0..self.tokens()).for_each(|index| predictor.observe(&self.token(index, layer)));
    }

    /// How many tokens the step runs.
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// A token of the step whose router has decided the layers up to `layer`.
    #[inline(always)]
    pub fn token(&self, index: usize, layer: usize) -> Token<'_> {
        let row_len = self.layers.row_len();
        let (lane, row) = self.tokens[index];
        let places = index * row_len..(index + 1) * row_len;
        let weights = if self.reads.weights { &self.weights[places.clone()] } else { &[] };
        Token::new(
            TokenPlace { lane, row, layer: layer as u32 },
            &self.layers,
            &self.routes[places],
            weights,
        )
    }

    /// The experts that a token of the step will use in a layer: for sources that know the future.
    #[inline(always)]
    pub fn truth(&self, index: usize, layer: usize) -> &[u32] {
        let start = index * self.layers.row_len();
        let places = self.layers.places(layer);
        &self.routes[start + places.start..start + places.end]
    }
}

fn add_uses(trace: &Trace, layers: &Layers, row: usize, uses: &mut [u32]) {
    for layer in 0..layers.len() {
        let base = layers.keys(layer).start;
        trace.layer_ids(row, layer).iter().for_each(|id| uses[base + id as usize] += 1);
    }
}

/// Lets a predictor see the steps that `phase` picks of a trace, learning and predicting nothing.
pub(crate) fn train(
    predictor: &mut dyn Predictor,
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
    reads: Reads,
) {
    let mut feed = Feed::new(trace, steps, phase, reads);
    for step in 0..steps.len() {
        let first = steps.row(steps.places(step).start);
        if !phase.wants(trace.phase(first)) {
            continue;
        }
        feed.begin_step(step, predictor);
        for layer in 0..feed.layers().len() {
            feed.observe(layer, predictor);
        }
    }
    feed.finish(predictor);
}
