//! From numbers to the trace: the experts of each token, what is left out counted.

use super::inspect::{Kind, Seen, each_block, is_padding};
use super::plan::Plan;
use super::store::Store;
use crate::error::Result;
use crate::import::array::{Place, top_ks};
use crate::import::collect::{Collector, Precision};
use crate::import::input::Input;
use crate::import::layers::Numbering;
use crate::trace::Phase;

/// How the experts of a token are taken from its numbers.
struct Choice {
    kind: Kind,
    /// Experts of a token in a layer.
    k: usize,
    layers: usize,
    width: usize,
    /// Layers that are there at all.
    used: Vec<bool>,
    best: Vec<(f64, u16)>,
}

/// Tokens that are left out.
#[derive(Default)]
struct LeftOut {
    unfilled: u64,
    padding: u64,
    short: u64,
    not_numbers: u64,
}

/// What becomes of a token.
#[derive(PartialEq, Eq)]
enum Fate {
    Kept,
    Padding,
    Short,
    NotNumbers,
}

impl Choice {
    /// Appends the experts of a token.
    fn token(&mut self, row: &[f64], ids: &mut Vec<u16>) -> Fate {
        let start = ids.len();
        let (mut some, mut all) = (false, true);
        for (layer, values) in row.chunks_exact(self.width).enumerate() {
            if !self.used[layer] {
                continue;
            }
            let before = ids.len();
            match self.kind {
                Kind::Ids => {
                    let there = |value: &&f64| !is_padding(**value);
                    let there = values.iter().take(self.k).take_while(there);
                    ids.extend(there.map(|&value| value as u16));
                }
                Kind::Map => {
                    let ones = values.iter().enumerate().filter(|(_, value)| **value == 1.0);
                    ids.extend(ones.map(|(expert, _)| expert as u16));
                }
                Kind::Scores => {
                    if values.iter().any(|value| value.is_nan()) {
                        ids.truncate(start);
                        return Fate::NotNumbers;
                    }
                    self.highest(values, ids);
                }
            }
            let found = ids.len() - before;
            some |= found > 0;
            all &= found == self.k;
        }
        if all {
            return Fate::Kept;
        }
        ids.truncate(start);
        if some { Fate::Short } else { Fate::Padding }
    }

    /// Appends the weights of a token's experts.
    fn weights(&self, row: &[f64], weights: &mut Vec<f32>) {
        let layers = row.chunks_exact(self.width).zip(&self.used).filter(|(_, used)| **used);
        for (values, _) in layers {
            weights.extend(values[..self.k].iter().map(|&weight| weight as f32));
        }
    }

    /// The experts with the highest scores, best first; of equals the lower id.
    fn highest(&mut self, scores: &[f64], ids: &mut Vec<u16>) {
        self.best.clear();
        for (expert, &score) in scores.iter().enumerate() {
            if self.best.len() == self.k {
                if self.best.last().is_some_and(|last| score <= last.0) {
                    continue;
                }
                self.best.pop();
            }
            let at = self.best.partition_point(|better| better.0 >= score);
            self.best.insert(at, (score, expert as u16));
        }
        ids.extend(self.best.iter().map(|best| best.1));
    }
}

/// The experts of a token in a layer, as the numbers have them or the caller says.
fn top_k(
    input: &Input<'_>,
    kind: Kind,
    seen: &Seen,
    width: usize,
    into: &Collector<'_>,
) -> Result<usize> {
    match kind {
        Kind::Ids => return Ok(if seen.width == 0 { width } else { seen.width }),
        Kind::Map => return Ok(seen.ones),
        Kind::Scores => {}
    }
    let told = into.options.top_k.or(into.config.as_ref().and_then(|config| config.top_k));
    let (least, most) = (seen.least, seen.most);
    let what = if seen.shares { "probabilities, which sum to 1" } else { "router logits" };
    let found = format!("{width} scores a token and layer from {least:.3} to {most:.3} ({what})");
    let Some(k) = told else {
        return Err(super::plan::refuse(
            input,
            format!(
                "{found}, not ids: give `ImportOptions::top_k`, how many experts the model uses; \
                 the highest scores are taken"
            ),
        ));
    };
    if k == 0 || k as usize >= width {
        let problem = format!("{found}: no top-{k} of {width} experts can be chosen");
        return Err(super::plan::refuse(input, problem));
    }
    Ok(k as usize)
}

/// Reads what a plan names into the trace.
pub(super) fn emit(
    input: &Input<'_>,
    store: &mut Store<'_>,
    plan: &Plan,
    into: &mut Collector<'_>,
) -> Result<()> {
    let extent = super::inspect::extent(input, plan)?;
    let (layers, width) = extent;
    let place = Place { path: input.path(), name: "of experts" };
    top_ks(place, layers, width)?;
    let seen = Seen::of(store, plan, extent)?;
    let kind = seen.kind(input, store, plan, extent)?;
    let k = top_k(input, kind, &seen, width, into)?;
    say(kind, &seen, plan, width, into);
    let used = if kind == Kind::Ids { seen.used.clone() } else { vec![true; layers] };
    let numbers: Vec<u32> = match &plan.numbers {
        Some(numbers) => numbers.clone(),
        None => (0..layers as u32).collect(),
    };
    let kept: Vec<u32> =
        numbers.iter().zip(&used).filter(|(_, used)| **used).map(|(number, _)| *number).collect();
    let all_there = kept.len() == layers;
    let numbering = match &plan.numbers {
        None if all_there => Numbering::Unknown,
        _ => Numbering::Numbered(&kept),
    };
    let count = kept.len();
    into.layers(input, numbering, &top_ks(place, count, k)?)?;
    if !all_there {
        let missing = layers - count;
        into.note(format!("{missing} layers are left out: no token has an expert in them"));
    }
    if kind != Kind::Ids {
        into.stated_experts = into.stated_experts.max(u32::try_from(width).ok());
    }
    let weighted = kind == Kind::Ids;
    let mut writer = Writer {
        choice: Choice { kind, k, layers, width, used, best: Vec::new() },
        out: LeftOut::default(),
        weighted,
        step: 0,
    };
    for (passes, &filled) in plan.sequences.iter().zip(&seen.filled) {
        // One row of one zero is expert 0, not a row that was never filled.
        let tokens: usize = passes.iter().map(|pass| pass.tokens).sum();
        let filled = if kind == Kind::Ids && width == 1 { tokens } else { filled };
        writer.sequence(input, store, plan, passes, filled, into)?;
    }
    writer.out.say(into);
    Ok(())
}

/// Sequences on their way into the trace.
struct Writer {
    choice: Choice,
    out: LeftOut,
    weighted: bool,
    step: u32,
}

impl Writer {
    fn sequence(
        &mut self,
        input: &Input<'_>,
        store: &mut Store<'_>,
        plan: &Plan,
        passes: &[super::plan::Pass],
        filled: usize,
        into: &mut Collector<'_>,
    ) -> Result<()> {
        let Self { choice, out, weighted, step } = self;
        let extent = (choice.layers, choice.width);
        let row = choice.layers * choice.width;
        into.sequence(input, None)?;
        let (mut position, mut left) = (0u64, filled);
        for pass in passes {
            let limit = pass.tokens.min(left);
            left -= limit;
            out.unfilled += (pass.tokens - limit) as u64;
            let (mut ids, mut dropped, mut places) = (Vec::new(), Vec::new(), Vec::new());
            let (mut steps, mut at) = (Vec::new(), 0usize);
            each_block(store, pass, false, extent, limit, |rows| {
                ids.clear();
                places.clear();
                steps.clear();
                for values in rows.chunks_exact(row) {
                    let fate = choice.token(values, &mut ids);
                    match fate {
                        Fate::Kept => places.push(position as u32),
                        Fate::Padding => out.padding += 1,
                        Fate::Short => out.short += 1,
                        Fate::NotNumbers => out.not_numbers += 1,
                    }
                    if fate != Fate::Kept {
                        dropped.push(at);
                    }
                    position += 1;
                    at += 1;
                }
                if plan.steps {
                    steps.resize(places.len(), *step);
                    into.steps(&steps)?;
                }
                into.ids(input, &ids)?;
                into.places(&places, &vec![Phase::Decode as u8; places.len()])
            })?;
            if *weighted && pass.weights.len() == pass.views.len() {
                let (mut at, mut dropped) = (0, dropped.into_iter().peekable());
                each_block(store, pass, true, extent, limit, |rows| {
                    let mut kept = Vec::with_capacity(rows.len());
                    for values in rows.chunks_exact(row) {
                        if dropped.next_if_eq(&at).is_none() {
                            choice.weights(values, &mut kept);
                        }
                        at += 1;
                    }
                    into.weights(Precision::F32, &kept)
                })?;
            }
            *step = step.saturating_add(1);
        }
        Ok(())
    }
}

impl LeftOut {
    fn say(&self, into: &mut Collector<'_>) {
        let mut say = |count: u64, why: &str| {
            if count > 0 {
                into.note(format!("{count} rows are left out: {why}"));
            }
        };
        say(self.unfilled, "zeros at the end of an array, which was never filled to its end");
        say(self.padding, "they hold no experts (padding)");
        say(self.short, "they lack experts in some layers (-1)");
        say(self.not_numbers, "scores that are NaN");
    }
}

/// What the caller should know of how the numbers were read.
fn say(kind: Kind, seen: &Seen, plan: &Plan, width: usize, into: &mut Collector<'_>) {
    if kind == Kind::Scores {
        into.note(
            "the highest scores are taken as the chosen experts, best first: models with a \
             selection bias or groups of experts (DeepSeek-V3, Kimi K2, GLM-4.5 and others) \
             choose otherwise",
        );
    }
    if kind == Kind::Map {
        into.note("a map of the chosen experts has no rank: ids are ascending");
    }
    if kind == Kind::Ids && seen.width < width {
        into.note(format!(
            "top-{}: the other {} of {width} columns hold -1, which is padding",
            seen.width,
            width - seen.width
        ));
    }
    for note in &plan.notes {
        into.note(note.as_str());
    }
    if let Some([tokens, layers, _]) = plan.assumed
        && tokens <= layers
    {
        into.note(format!(
            "read as [{tokens} tokens, {layers} layers, experts]; if it is [layers, tokens, \
             experts], give `ImportOptions::layers` {tokens}"
        ));
    }
}
