//! The predictions that the trace recorded: a later layer's router on an earlier layer's output.

use hotset_policies::predict::{Guess, Horizon, PredictorInfo, PredictorNeed, RankRecord};
use hotset_traces::{IdColumn, Trace};

use crate::SimError;

/// What people are told of it.
pub const INFO: PredictorInfo = PredictorInfo {
    name: "ahead",
    summary: "the recorded predictions of the router ahead",
    definition: "The experts that the router of layer l+d chose when it was given the output of layer l, as the trace recorded them, in stored order. The confidence is the share of the guesses at that rank and layer that were right so far.",
    source: "FATE, Mixtral-offloading, llama.cpp's pilot: the next layer's gate on this layer's output",
    needs: PredictorNeed::Predictions,
    parameters: &[],
};

/// The recorded predictions of a trace.
#[derive(Debug, Clone)]
pub(super) struct Recorded<'a> {
    ids: IdColumn<'a>,
    tokens: usize,
    layers: usize,
    width: usize,
    chances: RankRecord,
}

/// One prediction: where its ids begin, and where its ranks' chances do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    start: usize,
    chances: usize,
}

impl<'a> Recorded<'a> {
    /// # Errors
    /// The trace has no predictions, or none made so far ahead.
    pub fn of(trace: &'a Trace, horizon: Horizon) -> Result<Self, SimError> {
        let Some(recorded) = trace.predictions() else {
            return Err(SimError::missing_predictions(trace));
        };
        let farthest = horizon.farthest;
        if farthest > recorded.lookaheads {
            return Err(SimError::Lookahead { asked: farthest, recorded: recorded.lookaheads });
        }
        Ok(Self {
            ids: recorded.ids,
            tokens: recorded.tokens,
            layers: recorded.layers,
            width: recorded.width,
            chances: RankRecord::new(recorded.layers * recorded.width),
        })
    }

    /// The most guesses of one token for one layer.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where the token at `row` predicted layer `target` from the layer `distance` before it.
    #[inline]
    pub fn place(&self, row: usize, distance: usize, target: usize) -> Place {
        let start = (((distance - 1) * self.tokens + row) * self.layers + target) * self.width;
        Place { start, chances: target * self.width }
    }

    /// What was predicted at `place`.
    #[inline]
    pub fn guess(&self, place: Place, width: usize, guesses: &mut Vec<Guess>) {
        let Place { start, chances } = place;
        let range = start..start + width.min(self.width);
        let guess = |(rank, expert): (usize, u32)| Guess {
            expert,
            confidence: self.chances.share(chances + rank),
        };
        match self.ids {
            IdColumn::U8(ids) => {
                let ids = ids[range].iter().enumerate().filter(|&(_, &id)| id != u8::MAX);
                guesses.extend(ids.map(|(rank, &id)| guess((rank, u32::from(id)))));
            }
            IdColumn::U16(ids) => {
                let ids = ids[range].iter().enumerate().filter(|&(_, &id)| id != u16::MAX);
                guesses.extend(ids.map(|(rank, &id)| guess((rank, u32::from(id)))));
            }
        }
    }

    /// The token uses `truth` in the layer that was predicted at `place`: were the ranks right?
    #[inline]
    pub fn learn(&mut self, place: Place, truth: &[u32]) {
        let entry = self.ids.slice(place.start..place.start + self.width);
        let none = entry.none_marker();
        for (rank, id) in entry.iter().enumerate().filter(|&(_, id)| id != none) {
            self.chances.record(place.chances + rank, truth.contains(&id));
        }
    }
}
