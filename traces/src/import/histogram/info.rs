//! What a reader of counts says of itself and gives, and what is plausible.

use serde::Serialize;

use crate::error::Result;
use crate::import::info::{FuzzTarget, Recognise};
use crate::import::input::Input;
use crate::shape::MAX_EXPERTS;

/// What the registry knows of a format.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HistogramInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// Whether a file is of this format, by its beginning.
    #[serde(skip)]
    pub(in crate::import) recognise: Recognise,
    /// Who mutates its samples.
    #[serde(skip)]
    pub(crate) fuzz: FuzzTarget,
    #[serde(skip)]
    pub(super) reader: Reader,
}

/// Reads the files of one histogram.
pub(super) type Reader = fn(&[Input<'_>]) -> Result<ExpertCounts>;

/// What a reader gives: counts by layer number, tokens, notes.
#[derive(Debug, Default)]
pub(super) struct ExpertCounts {
    pub(super) layers: Vec<(u32, Vec<u64>)>,
    pub(super) tokens: Option<u64>,
    pub(super) notes: Vec<String>,
}

impl ExpertCounts {
    /// ExpertCounts of all hidden layers; those without any are taken as dense.
    pub(super) fn of_hidden(layers: Vec<Vec<u64>>) -> Self {
        let empty = |counts: &Vec<u64>| counts.iter().all(|&count| count == 0);
        let dense: Vec<String> = (0..layers.len())
            .filter(|&layer| empty(&layers[layer]))
            .map(|layer| layer.to_string())
            .collect();
        let mut notes = Vec::new();
        if !dense.is_empty() && dense.len() < layers.len() {
            let list = dense.join(",");
            notes.push(format!("layers {list} have no counts: they are taken as dense"));
        }
        let layers = (0..).zip(layers).filter(|(_, counts)| !empty(counts)).collect();
        Self { layers, tokens: None, notes }
    }
}

/// Experts over all layers: ten times the largest model's.
pub(super) const MOST: usize = 1 << 20;

/// A count of a floating-point file: whole, and not more than such a number can tell apart.
pub(super) fn whole(count: f64) -> Option<u64> {
    let sane = count.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&count);
    sane.then_some(count as u64)
}

/// Whether a layer may have so many experts.
pub(super) fn experts_fit(experts: usize) -> bool {
    (1..=MAX_EXPERTS as usize).contains(&experts)
}
