//! Prefetch from recorded predictions: which experts a layer is expected to need.
//!
//! `ahead` goes, once a layer's own misses are queued, through the predictions that the layer's
//! router output gave for a later layer, token by token in stored order, and hands them to
//! [`ExpertCache::prefetch`](hotset_policies::ExpertCache::prefetch).

use std::str::FromStr;

use hotset_policies::parse_parameters;
use hotset_traces::{IdColumn, Trace};
use serde::{Deserialize, Serialize};

use crate::{SimError, Steps};

/// Who says what to prefetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefetch {
    /// Nobody.
    #[default]
    None,
    /// The predictions that the trace recorded.
    Ahead(Ahead),
}

/// Recorded predictions as a prefetcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ahead {
    /// Layers between the prediction and the layer that it is for, at least 1.
    pub lookahead: u32,
    /// The best of each prediction that are fetched, at least 1; 0: all that were recorded.
    pub width: u32,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { lookahead: 1, width: 0 }
    }
}

impl FromStr for Prefetch {
    type Err = SimError;

    /// Reads `none`, `ahead` or `ahead:lookahead=2,width=4`.
    fn from_str(text: &str) -> Result<Self, SimError> {
        let wrong = |reason: String| SimError::PrefetchText { text: text.to_owned(), reason };
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        match (name.trim(), parameters) {
            ("none", "") => Ok(Self::None),
            ("none", _) => Err(wrong("'none' has no parameters".to_owned())),
            ("ahead", _) => {
                let ahead: Ahead = parse_parameters(parameters).map_err(wrong)?;
                if ahead.lookahead == 0 {
                    return Err(wrong("lookahead is at least 1 layer".to_owned()));
                }
                Ok(Self::Ahead(ahead))
            }
            _ => Err(wrong("there are 'none' and 'ahead:lookahead=1,width=0'".to_owned())),
        }
    }
}

/// The predictions of a replay's steps.
pub(crate) struct Predicted<'a> {
    ids: IdColumn<'a>,
    steps: &'a Steps,
    /// Ids before the first of the lookahead, a token's, a layer's, and those used of it.
    start: usize,
    of_token: usize,
    of_layer: usize,
    width: usize,
    lookahead: usize,
    layers: usize,
    predictions: Vec<u32>,
}

impl<'a> Predicted<'a> {
    /// Room for the predictions that `prefetch` asks for; `None` for none.
    ///
    /// # Errors
    /// The trace has no predictions, or none made so far ahead.
    pub fn of(
        trace: &'a Trace,
        steps: &'a Steps,
        prefetch: Prefetch,
    ) -> Result<Option<Self>, SimError> {
        let Prefetch::Ahead(ahead) = prefetch else { return Ok(None) };
        let Some(recorded) = trace.predictions() else {
            return Err(SimError::missing_predictions(trace));
        };
        let lookahead = ahead.lookahead as usize;
        if lookahead == 0 || lookahead > recorded.lookaheads {
            return Err(SimError::Lookahead {
                asked: ahead.lookahead,
                recorded: recorded.lookaheads,
            });
        }
        let width = match ahead.width as usize {
            0 => recorded.width,
            width => width.min(recorded.width),
        };
        let of_token = recorded.layers * recorded.width;
        Ok(Some(Self {
            ids: recorded.ids,
            steps,
            start: (lookahead - 1) * recorded.tokens * of_token,
            of_token,
            of_layer: recorded.width,
            width,
            lookahead,
            layers: recorded.layers,
            predictions: Vec::new(),
        }))
    }

    /// The layer that is predicted when `layer` runs, and the experts predicted for it in a step,
    /// token by token; an expert that several tokens predict is there several times.
    #[inline]
    pub fn after(&mut self, step: usize, layer: usize) -> Option<(usize, &[u32])> {
        let target = layer + self.lookahead;
        if target >= self.layers {
            return None;
        }
        self.predictions.clear();
        for place in self.steps.places(step) {
            let row = self.steps.row(place);
            let start = self.start + row * self.of_token + target * self.of_layer;
            let range = start..start + self.width;
            match self.ids {
                IdColumn::U8(ids) => self.predictions.extend(
                    ids[range].iter().filter(|&&id| id != u8::MAX).map(|&id| u32::from(id)),
                ),
                IdColumn::U16(ids) => self.predictions.extend(
                    ids[range].iter().filter(|&&id| id != u16::MAX).map(|&id| u32::from(id)),
                ),
            }
        }
        Some((target, &self.predictions))
    }
}

#[cfg(test)]
mod tests {
    use hotset_traces::testing::full_trace;

    use super::*;

    #[test]
    fn prefetchers_are_read_by_name() {
        assert_eq!("none".parse(), Ok(Prefetch::None));
        assert_eq!("ahead".parse(), Ok(Prefetch::Ahead(Ahead { lookahead: 1, width: 0 })));
        let two = Prefetch::Ahead(Ahead { lookahead: 2, width: 4 });
        assert_eq!("ahead:lookahead=2,width=4".parse(), Ok(two));
        let told = |text: &str| text.parse::<Prefetch>().unwrap_err().to_string();
        assert!(told("ahead:lookahead=0").contains("at least 1 layer"));
        assert!(told("ahead:depth=1").contains("unknown field `depth`"));
        assert!(told("magic").contains("there are 'none' and 'ahead"));
    }

    #[test]
    fn a_step_predicts_what_its_tokens_do() {
        // Recorded steps 0: rows 0 and 2; layer 1 is predicted from row `t` to need `t % 4`, and
        // nothing beside it (none markers).
        let trace = full_trace();
        let steps = Steps::of(&trace, 1);
        let ahead = |lookahead| Prefetch::Ahead(Ahead { lookahead, width: 0 });
        let mut one = Predicted::of(&trace, &steps, ahead(1)).unwrap().unwrap();
        assert_eq!(one.after(0, 0), Some((1, &[0, 2][..])));
        assert_eq!(one.after(0, 1), None, "there is no layer 2");
        let mut two = Predicted::of(&trace, &steps, ahead(2)).unwrap().unwrap();
        assert_eq!(two.after(0, 0), None);
        let told = |text| Predicted::of(&trace, &steps, text).map(|_| ()).unwrap_err().to_string();
        assert!(told(ahead(3)).contains("3 layers ahead; the trace has them for 1 to 2"));
    }
}
