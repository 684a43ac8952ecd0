//! The control of prefetch: how much of what is predicted is fetched, in which order, and what it
//! may push out.
//!
//! [`PrefetchControl`] are the settings, [`PrefetchController`] applies them to one cache.

use serde::{Deserialize, Serialize};

use super::{Guess, Horizon, Layers};
use crate::{ExpertCache, Parameter, Plan, Policy};

/// What of a predictor's guesses is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrefetchControl {
    /// Layers between the one that runs and the nearest that is predicted, at least 1.
    pub lookahead: u32,
    /// Layers that are predicted from there on, nearest first, at least 1.
    pub reach: u32,
    /// Guesses of each token for each layer; 0: as many as the layer's top-k, or were recorded.
    pub width: u32,
    /// Guesses with less confidence are left out, 0 to 1.
    pub threshold: f64,
    /// MiB that a step may prefetch at most; 0: without limit.
    pub budget: f64,
    /// In which order a step's guesses are fetched.
    pub priority: Priority,
    /// Whether copies that have not begun are taken back once the router has decided otherwise.
    pub cancel: bool,
    /// What a prefetch may not push out.
    pub protect: Protect,
}

/// In which order a step's guesses are fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Token by token, each in its predictor's order.
    #[default]
    Token,
    /// Over all tokens of the step, the most confident first.
    Confidence,
}

/// What a prefetch may not push out, beside what the running layer needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protect {
    /// The guesses before it, resident or just fetched.
    #[default]
    Guesses,
    /// Nothing more.
    Nothing,
}

const fn parameter(name: &'static str, default: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, default, meaning }
}

impl Default for PrefetchControl {
    fn default() -> Self {
        Self {
            lookahead: 1,
            reach: 1,
            width: 0,
            threshold: 0.0,
            budget: 0.0,
            priority: Priority::Token,
            cancel: false,
            protect: Protect::Guesses,
        }
    }
}

impl PrefetchControl {
    /// The keys by which it is given.
    pub const KEYS: [&str; 8] =
        ["lookahead", "reach", "width", "threshold", "budget", "priority", "cancel", "protect"];

    /// What each key means, and that of when a predictor learns.
    pub const PARAMETERS: [Parameter; 9] = [
        parameter("lookahead", "1", "layers to the nearest that is predicted, at least 1"),
        parameter("reach", "1", "layers that are predicted from there on, nearest first"),
        parameter("width", "0", "guesses a token and layer; 0: the layer's top-k, or as recorded"),
        parameter("threshold", "0", "guesses with less confidence are left out, 0 to 1"),
        parameter("budget", "0", "MiB that a step may prefetch at most; 0: without limit"),
        parameter("priority", "token", "token by token, or most confident first: confidence"),
        parameter("protect", "guesses", "what a prefetch may not push out: guesses, nothing"),
        parameter("cancel", "false", "take back copies that have not begun and are not wanted"),
        parameter("learn", "both", "both; online: in the run alone; trained: before it alone"),
    ];

    /// Checks the ranges that the types do not.
    ///
    /// # Errors
    /// Names the parameter and its range.
    pub fn check(&self) -> Result<(), String> {
        if self.lookahead == 0 || self.reach == 0 {
            return Err("lookahead and reach are at least 1 layer".to_owned());
        }
        if self.lookahead.checked_add(self.reach).is_none_or(|sum| sum > 1 << 16) {
            return Err("lookahead and reach are at most 65536 layers together".to_owned());
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(format!("threshold = {} is not within 0 to 1", self.threshold));
        }
        if !(self.budget >= 0.0 && self.budget.is_finite()) {
            return Err(format!("budget = {} is not a number of MiB", self.budget));
        }
        Ok(())
    }

    /// The distances at which is predicted.
    #[must_use]
    pub fn horizon(&self) -> Horizon {
        let nearest = self.lookahead as usize;
        Horizon { nearest, farthest: nearest + self.reach as usize - 1 }
    }

    /// Bytes that a step may prefetch; `None`: any.
    #[must_use]
    pub fn budget_bytes(&self) -> Option<u64> {
        (self.budget > 0.0).then_some((self.budget * f64::from(1 << 20)) as u64)
    }

    /// Whether a guess is confident enough to be fetched.
    #[must_use]
    #[inline(always)]
    pub fn keeps(&self, guess: &Guess) -> bool {
        guess.confidence >= self.threshold as f32
    }

    /// The cache as this control protects its predictions.
    #[must_use]
    pub fn protecting<P: Policy>(&self, cache: ExpertCache<P>) -> ExpertCache<P> {
        match self.protect {
            Protect::Guesses => cache,
            Protect::Nothing => cache.with_unprotected_prefetch(),
        }
    }
}

/// Turns guesses into prefetches of one cache: threshold, order, each expert once, and the budget
/// of the step. Nothing is allocated between steps once the widest step has run.
///
/// # Example
/// ```
/// use hotset_policies::predict::{Guess, Layers, PrefetchControl, PrefetchController};
/// use hotset_policies::{ExpertCache, Lru, Slots};
///
/// let layers = Layers::new(&[4, 4], &[1, 1]);
/// // Experts of 1 MiB, of which a step may prefetch two; guesses below one half are left out.
/// let control = PrefetchControl { budget: 2.0, threshold: 0.5, ..PrefetchControl::default() };
/// let mut controller = PrefetchController::new(control, &layers, vec![1 << 20; 2]);
/// let cache = ExpertCache::new(&[4, 4], &[1, 1], &Slots::Global(6), |_, pool| Lru::new(pool));
/// let mut cache = control.protecting(cache.unwrap().with_ordered_copies());
///
/// controller.begin_step();
/// cache.demand(0, &[0u32]);
/// let token = [(3, 0.9), (0, 0.8), (1, 0.4), (2, 0.7)]
///     .map(|(expert, confidence)| Guess { expert, confidence });
/// for target in controller.targets(0) {
///     let experts = controller.select(1, |_, guesses| guesses.extend(token));
///     assert_eq!(experts, [3, 0, 2]);
///     assert_eq!(controller.prefetch(&mut cache, target).fetches, 2, "the budget's two");
/// }
/// cache.release(0);
/// ```
#[derive(Debug, Clone)]
pub struct PrefetchController {
    control: PrefetchControl,
    horizon: Horizon,
    layers: usize,
    /// Bytes of an expert in each layer; only looked at where there is a budget.
    expert_bytes: Vec<u64>,
    guesses: Vec<Guess>,
    /// The experts that were selected last, each once, in the order in which they are fetched.
    selected: Vec<u32>,
    /// The selection in which an expert was last guessed, and its number.
    seen: Vec<u32>,
    selection: u32,
    /// Bytes that the step may still prefetch.
    budget: u64,
    affordable: Vec<u32>,
}

impl PrefetchController {
    /// A controller for a model; `expert_bytes[l]` are those of an expert in layer `l`, empty
    /// where there is no budget.
    #[must_use]
    pub fn new(control: PrefetchControl, layers: &Layers, expert_bytes: Vec<u64>) -> Self {
        let widest = (0..layers.len()).map(|layer| layers.experts(layer)).max().unwrap_or(0);
        Self {
            control,
            horizon: control.horizon(),
            layers: layers.len(),
            expert_bytes,
            guesses: Vec::new(),
            selected: Vec::new(),
            seen: vec![0; widest],
            selection: 0,
            budget: 0,
            affordable: Vec::new(),
        }
    }

    /// The settings.
    #[must_use]
    pub fn control(&self) -> &PrefetchControl {
        &self.control
    }

    /// The distances at which is predicted.
    #[must_use]
    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// A step begins: its budget is whole.
    pub fn begin_step(&mut self) {
        self.budget = self.control.budget_bytes().unwrap_or(0);
    }

    /// The layers that are predicted once `layer` is decided, nearest first.
    pub fn targets(&self, layer: usize) -> impl Iterator<Item = usize> + use<> {
        let layers = self.layers;
        (layer + self.horizon.nearest..=layer + self.horizon.farthest)
            .take_while(move |&target| target < layers)
    }

    /// Selects the experts of one target layer from the guesses of the step's `tokens` tokens,
    /// which `predict` appends, token by token: those that are confident enough, each once, in the
    /// order of the control's priority.
    #[inline]
    pub fn select(
        &mut self,
        tokens: usize,
        mut predict: impl FnMut(usize, &mut Vec<Guess>),
    ) -> &[u32] {
        self.begin_selection();
        self.guesses.clear();
        match self.control.priority {
            Priority::Token => {
                for index in 0..tokens {
                    self.guesses.clear();
                    predict(index, &mut self.guesses);
                    self.keep_each_once();
                }
            }
            Priority::Confidence => {
                (0..tokens).for_each(|index| predict(index, &mut self.guesses));
                // Stable: equal confidences keep the order of tokens and ranks.
                self.guesses.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
                self.keep_each_once();
            }
        }
        &self.selected
    }

    /// Keeps of what was selected last what `wanted` says: another cache may have the rest.
    pub fn keep(&mut self, wanted: impl Fn(u32) -> bool) {
        self.selected.retain(|&expert| wanted(expert));
    }

    /// Prefetches what was selected last for `target`, as far as the step's budget goes: an expert
    /// that is not resident and does not fit what is left of it is passed over.
    ///
    /// # Panics
    /// If the budget is limited and the layer has no bytes, or the selection is of another layer.
    #[inline]
    pub fn prefetch<'c, P: Policy>(
        &mut self,
        cache: &'c mut ExpertCache<P>,
        target: usize,
    ) -> Plan<'c> {
        if self.control.budget_bytes().is_none() {
            return cache.prefetch(target, &self.selected);
        }
        let bytes = self.expert_bytes[target];
        self.affordable.clear();
        for &expert in &self.selected {
            if cache.slot_of(target, expert).is_none() {
                let Some(left) = self.budget.checked_sub(bytes) else { continue };
                self.budget = left;
            }
            self.affordable.push(expert);
        }
        cache.prefetch(target, &self.affordable)
    }

    fn begin_selection(&mut self) {
        self.selected.clear();
        if self.selection == u32::MAX {
            self.seen.fill(0);
            self.selection = 0;
        }
        self.selection += 1;
    }

    fn keep_each_once(&mut self) {
        for guess in self.guesses.iter().filter(|guess| self.control.keeps(guess)) {
            let seen = &mut self.seen[guess.expert as usize];
            if *seen != self.selection {
                *seen = self.selection;
                self.selected.push(guess.expert);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::miss::{Asked, MissDispatcher, MissHandler};
    use crate::{Lru, Slots};

    fn guesses(of: &[(u32, f32)]) -> Vec<Guess> {
        of.iter().map(|&(expert, confidence)| Guess { expert, confidence }).collect()
    }

    #[test]
    fn experts_are_selected_once_in_the_order_of_the_priority() {
        let tokens = [guesses(&[(2, 0.5), (1, 0.2)]), guesses(&[(3, 0.9), (2, 0.8)])];
        let select = |control| {
            let layers = Layers::new(&[4], &[2]);
            let mut controller = PrefetchController::new(control, &layers, Vec::new());
            controller.select(2, |index, all| all.extend_from_slice(&tokens[index])).to_vec()
        };
        let control = PrefetchControl::default();
        assert_eq!(select(control), [2, 1, 3]);
        assert_eq!(select(PrefetchControl { threshold: 0.3, ..control }), [2, 3]);
        let confident = PrefetchControl { priority: Priority::Confidence, ..control };
        assert_eq!(select(confident), [3, 2, 1]);
    }

    /// An engine that links this crate alone: misses shared between link and host, and a prefetch
    /// that may bring in one expert a step.
    #[test]
    fn an_engine_runs_the_balanced_handler_and_a_budgeted_prefetch() {
        let experts = [4, 4];
        let layers = Layers::new(&experts, &[2, 2]);
        let control = PrefetchControl { budget: 1.0, ..PrefetchControl::default() };
        let mut controller = PrefetchController::new(control, &layers, vec![1 << 20; 2]);
        let balanced = MissHandler::balanced(500);
        let mut dispatcher = MissDispatcher::new(balanced, &experts);
        let cache = ExpertCache::new(&experts, &[2, 2], &Slots::Global(6), |_, p| Lru::new(p));
        let mut cache = control.protecting(cache.unwrap().with_ordered_copies());

        // A step is told by the experts of both layers; the predictor says 0 and 1 for layer 1.
        let mut step = |routes: [&[u16]; 2]| {
            let (mut fetched, mut host, mut ahead, mut used) = (0, 0, 0, 0);
            controller.begin_step();
            cache.begin_step(1);
            for (layer, experts) in routes.iter().enumerate() {
                let event = dispatcher.choose(&cache, &Asked::by_one_token(layer, experts, &[]));
                host += event.host;
                let plan = cache.demand(layer, event.demanded);
                fetched += plan.fetches;
                used += plan.prefetch_hits;
                for target in controller.targets(layer) {
                    controller.select(1, |_, all| all.extend(guesses(&[(0, 1.0), (1, 1.0)])));
                    ahead += controller.prefetch(&mut cache, target).fetches;
                }
                cache.release(layer);
            }
            (fetched, host, ahead, used)
        };
        // Layer 0 misses two: one copied, one by the host. One prefetch of 1 MiB fits: expert 0,
        // a hit in layer 1, of whose single miss half is rounded to the link's side or not.
        assert_eq!(step([&[0, 1], &[0, 2]]), (1, 2, 1, 1));
        // Again: expert 0 of both layers is resident, 1 of layer 0 is the host's, and the budget
        // now goes to expert 1 of layer 1.
        assert_eq!(step([&[0, 1], &[0, 1]]), (0, 1, 1, 1));
    }
}
