//! What the numbers are: ids of experts, a map of ones, or scores. All of them are looked at.

use super::plan::{Pass, Plan};
use super::store::Store;
use crate::error::Result;
use crate::import::input::Input;

/// How each token's experts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ids, best first, -1 behind the last.
    Ids,
    /// One flag for each expert.
    Map,
    /// One score for each expert.
    Scores,
}

/// What was found in all values.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) least: f64,
    pub(super) most: f64,
    /// Nothing but whole numbers.
    pub(super) whole: bool,
    /// Nothing but 0 and 1.
    pub(super) flags: bool,
    /// A number that is no id and no padding.
    below: Option<f64>,
    /// Experts of a token in a layer, at most: numbers before the padding.
    pub(super) width: usize,
    /// Ones of a token in a layer, at most.
    pub(super) ones: usize,
    /// Layers that have any expert at all.
    pub(super) used: Vec<bool>,
    /// Where a token first has one number twice in a layer: token, layer, number.
    repeats: Option<(u64, usize, f64)>,
    /// Where an id first comes behind padding.
    gap: Option<(u64, usize)>,
    /// Scores of a token sum to 1.
    pub(super) shares: bool,
    /// Tokens of each sequence before its unfilled tail.
    pub(super) filled: Vec<usize>,
    pub(super) tokens: u64,
}

/// The layers' widths: all the same.
pub(super) fn extent(input: &Input<'_>, plan: &Plan) -> Result<(usize, usize)> {
    let mut passes = plan.sequences.iter().flatten();
    let first = passes.next().map(|pass| super::plan::widths(input, pass)).transpose()?;
    let first = first.unwrap_or_default();
    let Some(&width) = first.first().filter(|&&width| width > 0) else {
        return Err(super::plan::refuse(input, "no values in its arrays"));
    };
    if let Some((layer, other)) = first.iter().enumerate().find(|(_, other)| **other != width) {
        let problem = format!(
            "layer {layer} has {other} numbers a token, layer 0 has {width}: every layer has one \
             top-k, or one number of experts"
        );
        return Err(super::plan::refuse(input, problem));
    }
    let layers = first.len();
    for pass in passes {
        let found = super::plan::widths(input, pass)?;
        if found != first {
            let (l, w) = (found.len(), found.first().copied().unwrap_or(0));
            let problem = format!(
                "{l} layers of {w} numbers a token after {layers} of {width}; one trace has one model"
            );
            return Err(super::plan::refuse(input, problem));
        }
    }
    Ok((layers, width))
}

/// Visits the tokens of a pass, block by block: `[tokens, layers, width]`.
pub(super) fn each_block(
    store: &mut Store<'_>,
    pass: &Pass,
    weights: bool,
    extent: (usize, usize),
    limit: usize,
    mut visit: impl FnMut(&[f64]) -> Result<()>,
) -> Result<()> {
    let (layers, width) = extent;
    let row = layers * width;
    let views = if weights { &pass.weights } else { &pass.views };
    let (mut part, mut rows) = (Vec::new(), Vec::new());
    let tokens = pass.tokens.min(limit);
    let each = Store::block(row);
    for first in (0..tokens).step_by(each) {
        let count = each.min(tokens - first);
        if let [only] = &views[..] {
            store.read(only, first, count, &mut rows)?;
        } else {
            rows.clear();
            rows.resize(count * row, 0.0);
            let mut at = 0;
            for view in views {
                store.read(view, first, count, &mut part)?;
                let wide = view.layers * view.width;
                for (row, part) in rows.chunks_exact_mut(row).zip(part.chunks_exact(wide)) {
                    row[at..at + wide].copy_from_slice(part);
                }
                at += wide;
            }
        }
        visit(&rows)?;
    }
    Ok(())
}

impl Seen {
    /// Looks at all values of a plan.
    pub(super) fn of(store: &mut Store<'_>, plan: &Plan, extent: (usize, usize)) -> Result<Self> {
        let (layers, width) = extent;
        let mut seen = Self {
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            whole: true,
            flags: true,
            below: None,
            width: 0,
            ones: 0,
            used: vec![false; layers],
            repeats: None,
            gap: None,
            shares: true,
            filled: Vec::new(),
            tokens: 0,
        };
        for passes in &plan.sequences {
            let (mut count, mut zeros) = (0, 0);
            for pass in passes {
                each_block(store, pass, false, extent, usize::MAX, |rows| {
                    for row in rows.chunks_exact(layers * width) {
                        for (layer, values) in row.chunks_exact(width).enumerate() {
                            seen.values(layer, values);
                        }
                        zeros = if row.iter().all(|&value| value == 0.0) { zeros + 1 } else { 0 };
                        count += 1;
                        seen.tokens += 1;
                    }
                    Ok(())
                })?;
            }
            seen.filled.push(count - zeros);
        }
        Ok(seen)
    }

    /// The numbers of one token in one layer.
    fn values(&mut self, layer: usize, values: &[f64]) {
        let (mut filled, mut ones, mut sum, mut open) = (0, 0, 0.0, true);
        let mut zero = true;
        for &value in values {
            // NaN is what tables have where nothing is.
            let padding = is_padding(value);
            if !padding || value == -1.0 {
                self.least = self.least.min(value);
                self.most = self.most.max(value);
                self.whole &= value.fract() == 0.0;
                if value < 0.0 && !padding {
                    self.below.get_or_insert(value);
                }
            }
            self.flags &= value == 0.0 || value == 1.0;
            zero &= value == 0.0;
            ones += usize::from(value == 1.0);
            sum += value;
            if padding {
                open = false;
            } else if open {
                filled += 1;
            } else {
                self.gap.get_or_insert((self.tokens, layer));
            }
        }
        // A slot of zeros is a dense layer or a row that was never filled.
        if !zero || values.len() == 1 {
            self.width = self.width.max(filled);
        }
        self.ones = self.ones.max(ones);
        self.used[layer] |= filled > 0;
        self.shares &= zero || (sum - 1.0).abs() < 0.02;
        if self.repeats.is_none() && self.whole && !zero {
            let chosen = &values[..filled];
            self.repeats = twice(chosen).map(|value| (self.tokens, layer, value));
        }
    }

    /// What the numbers are.
    pub(super) fn kind(
        &self,
        input: &Input<'_>,
        store: &Store<'_>,
        plan: &Plan,
        extent: (usize, usize),
    ) -> Result<Kind> {
        let (layers, width) = extent;
        let views = plan.sequences.iter().flatten().flat_map(|pass| &pass.views).next();
        let Some(table) = views.map(|view| &store.tables[view.table]) else {
            return Err(super::plan::refuse(input, "no tokens"));
        };
        let element = table.element;
        let (least, most) = (self.least, self.most);
        let found = format!(
            "[{} tokens, {layers} layers, {width}] of {} from {least} to {most}",
            self.tokens,
            element.name()
        );
        let refuse = |problem: String| Err(super::plan::refuse(input, problem));
        if self.least > self.most {
            return refuse(format!("{found}: nothing but padding"));
        }
        let boolean = element == crate::import::element::Element::Bool;
        if self.flags && width > 1 && (boolean || self.repeats.is_some()) {
            return Ok(Kind::Map);
        }
        let ids = self.whole && self.repeats.is_none() && self.below.is_none();
        if ids && most <= f64::from(u16::MAX) {
            if let Some((token, layer)) = self.gap {
                return refuse(format!(
                    "token {token}, layer {layer}: an id behind a -1; -1 is padding behind the ids \
                     of a token, and one before an id hides what was there ({found})"
                ));
            }
            return Ok(Kind::Ids);
        }
        if element.is_float() && !self.whole {
            return Ok(Kind::Scores);
        }
        match self.repeats {
            Some((token, layer, value)) => refuse(format!(
                "token {token}, layer {layer} has {value} twice: {found} are no ids of experts, \
                 which differ within a token, and whole numbers are no scores. Counts (which have \
                 no order) are an array [layers, experts] named expert_counts"
            )),
            None => refuse(format!("{found}: no ids of experts, which are 0 to 65535")),
        }
    }
}

/// Whether a number in the place of an id fills up a row: -1, also as types without a sign have it,
/// or NaN, as tables have it where nothing is.
pub(in crate::import) fn is_padding(id: f64) -> bool {
    const UNSIGNED: [f64; 5] =
        [u16::MAX as f64, i32::MAX as f64, u32::MAX as f64, i64::MAX as f64, u64::MAX as f64];
    id == -1.0 || id.is_nan() || UNSIGNED.contains(&id)
}

/// A number that is there twice.
pub(in crate::import) fn twice(values: &[f64]) -> Option<f64> {
    if values.len() <= 16 {
        let again = |(at, value): &(usize, &f64)| values[..*at].contains(value);
        return values.iter().enumerate().find(again).map(|(_, value)| *value);
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
