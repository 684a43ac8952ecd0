//! A trace's tokens as predictors see them: which lane each sequence has, and each token's routes.

use hotset_policies::predict::{Layers, Opening, Predictor, Token};
use hotset_traces::{Phase, Trace};

use crate::Steps;

const NO_LANE: u32 = u32::MAX;

/// Walks with a replay through its steps.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    trace: &'a Trace,
    steps: &'a Steps,
    layers: Layers,
    weighted: bool,
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
    embedding: Vec<f32>,
    prompt_uses: Vec<u32>,
}

impl<'a> Feed<'a> {
    /// For a replay of the steps of `phase` (`None`: all). `weighted`: the predictor reads the
    /// router's weights.
    pub fn new(
        trace: &'a Trace,
        steps: &'a Steps,
        phase: Option<Phase>,
        layers: Layers,
        weighted: bool,
    ) -> Self {
        let wanted = |row: &usize| phase.is_none_or(|only| trace.phase(*row) == only);
        let last = |rows: std::ops::Range<usize>| rows.rev().find(wanted).unwrap_or(usize::MAX);
        let sequences = trace.sequences();
        Self {
            trace,
            steps,
            layers,
            weighted: weighted && trace.weights().is_some(),
            last: sequences.iter().map(|sequence| last(sequence.rows.clone())).collect(),
            lanes: vec![NO_LANE; sequences.len()],
            free: Vec::new(),
            taken: 0,
            ended: Vec::new(),
            tokens: Vec::new(),
            routes: Vec::new(),
            weights: Vec::new(),
            embedding: Vec::new(),
            prompt_uses: Vec::new(),
        }
    }

    /// The model.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// A step begins: sequences that are over leave their lanes, new ones take one.
    pub fn begin_step(&mut self, step: usize, predictor: &mut impl Predictor) {
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
            if let Some(weights) = trace.weights().filter(|_| self.weighted) {
                self.weights.extend(places.map(|place| weights.get(place)));
            }
        }
    }

    /// The run is over, and with it every sequence.
    pub fn finish(&mut self, predictor: &mut impl Predictor) {
        self.ended.extend(self.lanes.iter().filter(|&&lane| lane != NO_LANE));
        self.ended.drain(..).for_each(|lane| predictor.end_sequence(lane));
    }

    fn open(&mut self, sequence: usize, row: usize, predictor: &mut impl Predictor) {
        let lane = self.free.pop().unwrap_or(self.taken);
        self.taken = self.taken.max(lane + 1);
        self.lanes[sequence] = lane;
        let opening = opening(
            (self.trace, sequence, row),
            &self.layers,
            (&mut self.embedding, &mut self.prompt_uses),
        );
        predictor.begin_sequence(lane, &opening);
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
        let weights = if self.weighted { &self.weights[places.clone()] } else { &[] };
        Token::new((lane, row, layer as u32), &self.layers, &self.routes[places], weights)
    }

    /// The experts that a token of the step will use in a layer: for those who may know the future.
    #[inline(always)]
    pub fn truth(&self, index: usize, layer: usize) -> &[u32] {
        let start = index * self.layers.row_len();
        let places = self.layers.places(layer);
        &self.routes[start + places.start..start + places.end]
    }
}

/// What is known of a sequence when `row` is the first of it that is replayed: its prompt's
/// embedding, and the routes of the prompt if it ran before (another cache served it).
fn opening<'o>(
    (trace, sequence, row): (&Trace, usize, usize),
    layers: &Layers,
    (embedding, uses): (&'o mut Vec<f32>, &'o mut Vec<u32>),
) -> Opening<'o> {
    embedding.clear();
    if let Some(embeddings) = trace.embeddings() {
        embedding.extend(embeddings.input(sequence).iter().map(|value| value.to_f32()));
    }
    uses.clear();
    let before = trace.sequences()[sequence].rows.start..row;
    let prompt_tokens = before.len() as u32;
    if prompt_tokens > 0 {
        uses.resize(layers.total_experts(), 0);
        for row in before {
            for layer in 0..layers.len() {
                let base = layers.keys(layer).start;
                for id in trace.layer_ids(row, layer).iter() {
                    uses[base + id as usize] += 1;
                }
            }
        }
    }
    Opening { embedding, prompt_uses: uses, prompt_tokens }
}

/// Lets a predictor see the steps of `phase` of a trace, learning and predicting nothing.
pub(crate) fn train(
    predictor: &mut impl Predictor,
    trace: &Trace,
    steps: &Steps,
    phase: Option<Phase>,
    (layers, weighted): (Layers, bool),
) {
    let mut feed = Feed::new(trace, steps, phase, layers, weighted);
    for step in 0..steps.len() {
        let first = steps.row(steps.places(step).start);
        if phase.is_some_and(|only| trace.phase(first) != only) {
            continue;
        }
        feed.begin_step(step, predictor);
        for layer in 0..feed.layers().len() {
            (0..feed.tokens()).for_each(|index| predictor.observe(&feed.token(index, layer)));
        }
    }
    feed.finish(predictor);
}
