//! The engine that copies nothing: it drives the real cache, counts its plans and tells timelines.

use hotset_policies::{Action, CacheError, ExpertCache, ExpertId, Plan, Policy, Slots};
use hotset_traces::{Phase, Shape};

use crate::forecast::{Forecaster, Guided, Protect};
use crate::timeline::{Asked, Timeline};
use crate::{Bucket, Counts, EventSink, Misses, Prefill};

/// What an engine does beside demanding experts.
pub(crate) struct Habits<'a> {
    pub forecaster: Option<Forecaster<'a>>,
    pub guided: Option<Guided<'a>>,
    /// Bytes of an expert in each layer, where they are counted.
    pub expert_bytes: Vec<u64>,
    pub prefill: Prefill,
    pub misses: Misses,
    pub resizes: &'a [(u64, Slots)],
    pub warmup: Option<u64>,
}

/// Drives one cache through a trace; any number of timelines, one a link, follow its plans.
pub(crate) struct Engine<'a, P, E> {
    cache: ExpertCache<P>,
    habits: Habits<'a>,
    timelines: Vec<Timeline>,
    counts: Counts,
    phase: Phase,
    steady: bool,
    tokens: u64,
    experts: Vec<u32>,
    bases: Vec<u32>,
    /// Slots that a streamed prefill borrows, and whose experts it overwrote.
    borrowed: u32,
    overwritten: Vec<bool>,
    /// When each expert was last asked for, in events, where misses are chosen by it.
    recency: Vec<u64>,
    events: u64,
    /// The budget of prefetches that is left to the step, in bytes.
    budget: u64,
    to_fetch: Vec<u32>,
    /// Whether each expert of the layer is wanted by the event, where prefetches are cancelled.
    wanted: Vec<bool>,
    shown: Vec<E>,
    shown_weights: Vec<f32>,
    absent: Vec<(u64, u32, usize)>,
    /// The first change of slots that the cache refused.
    refused: Option<CacheError>,
}

impl<'a, P: Policy, E: ExpertId> Engine<'a, P, E> {
    /// `borrowed` slots are what a streamed prefill takes.
    pub fn new(
        cache: ExpertCache<P>,
        shape: &Shape,
        habits: Habits<'a>,
        borrowed: u32,
        timelines: Vec<Timeline>,
    ) -> Self {
        let experts = shape.total_experts() as usize;
        let widest = shape.max_experts() as usize;
        let of = |wanted: bool| if wanted { experts } else { 0 };
        let control = habits.forecaster.as_ref().map(Forecaster::control);
        let protects = control.is_none_or(|control| control.protect == Protect::Guesses);
        let cancels = control.is_some_and(|control| control.cancel);
        let cache = cache.with_ordered_copies();
        let timelines = match cancels {
            true => timelines.into_iter().map(Timeline::with_cancelling).collect(),
            false => timelines,
        };
        Self {
            wanted: vec![false; if cancels { widest } else { 0 }],
            cache: if protects { cache } else { cache.with_unprotected_prefetch() },
            budget: 0,
            to_fetch: Vec::new(),
            timelines,
            counts: Counts::new(shape.layers().len()).with_layers(),
            phase: Phase::Decode,
            steady: false,
            tokens: 0,
            experts: shape.layers().iter().map(|layer| layer.experts).collect(),
            bases: (0..shape.layers().len()).map(|layer| shape.key_base(layer)).collect(),
            borrowed,
            overwritten: vec![false; of(habits.prefill == Prefill::Streamed)],
            recency: vec![0; of(habits.misses != Misses::Fetch)],
            events: 0,
            shown: Vec::with_capacity(widest),
            shown_weights: Vec::new(),
            absent: Vec::with_capacity(widest),
            refused: None,
            habits,
        }
    }

    /// Counts, times and recordings of the run.
    ///
    /// # Errors
    /// The cache refused a change of its slots.
    pub fn finish(self) -> Result<(Counts, Vec<Timeline>), CacheError> {
        match self.refused {
            Some(refused) => Err(refused),
            None => Ok((self.counts, self.timelines)),
        }
    }

    fn bucket(&mut self) -> &mut Bucket {
        self.counts.bucket_mut(self.phase, self.steady)
    }

    /// Whether this step goes past the cache.
    fn passes_by(&self) -> bool {
        self.phase == Phase::Prefill && self.habits.prefill != Prefill::OnDemand
    }

    /// Tells the policy what the running conversations are expected to use, if that has changed.
    fn follow_profile(&mut self) {
        if let Some(guided) = &mut self.habits.guided
            && let Some(profile) = guided.changed()
        {
            self.cache.set_profile(profile);
        }
    }

    fn resize(&mut self) {
        while let Some((token, slots)) = self.habits.resizes.first()
            && *token <= self.tokens
        {
            self.habits.resizes = &self.habits.resizes[1..];
            if let Err(refused) = self.cache.resize(slots) {
                self.refused.get_or_insert(refused);
            }
        }
    }

    fn borrow_slots(&mut self) {
        match self.cache.invalidate(0, 0..self.borrowed.min(self.cache.capacity())) {
            Ok(keys) => keys.iter().for_each(|&key| self.overwritten[key as usize] = true),
            Err(refused) => {
                self.refused.get_or_insert(refused);
            }
        }
    }

    fn pass_by(&mut self, layer: usize, experts: &[E]) {
        let distinct = experts.len() as u32;
        let (hits, copied, unplaced) = match self.habits.prefill {
            Prefill::Streamed => (0, self.experts[layer], 0),
            _ => {
                let there = |e: &&E| self.cache.slot_of(layer, e.index()).is_some();
                let hits = experts.iter().filter(there).count() as u32;
                (hits, distinct - hits, distinct - hits)
            }
        };
        let bucket = self.bucket();
        bucket.accesses += u64::from(distinct);
        bucket.hits += u64::from(hits);
        bucket.demand_fetches[layer] += u64::from(copied);
        bucket.unplaced += u64::from(unplaced);
        self.counts.add_layer(self.phase, layer, distinct, hits);
        for timeline in &mut self.timelines {
            if self.habits.prefill == Prefill::Streamed {
                timeline.stream_layer(layer, distinct);
            } else {
                let (copies, placements) = (copied, &[]);
                let none = Asked { layer, distinct, copies, host: 0, prefetched: 0, placements };
                timeline.demand(none);
                timeline.finish_layer();
            }
        }
    }

    /// Splits an event into what the cache is shown and what the host serves; returns how many
    /// those are.
    fn choose(&mut self, layer: usize, experts: &[E], weights: &[f32]) -> u32 {
        self.events += 1;
        self.shown.clear();
        self.shown_weights.clear();
        self.absent.clear();
        for (rank, expert) in experts.iter().enumerate() {
            let key = (self.bases[layer] + expert.index()) as usize;
            if self.cache.slot_of(layer, expert.index()).is_some() {
                self.shown.push(*expert);
                self.shown_weights.extend(weights.get(rank));
            } else {
                // Most recent first, then by id.
                self.absent.push((u64::MAX - self.recency[key], expert.index(), rank));
            }
            self.recency[key] = self.events;
        }
        self.absent.sort_unstable();
        let fetched = self.habits.misses.fetched(self.absent.len() as u32);
        for &(_, _, rank) in &self.absent[..fetched as usize] {
            self.shown.push(experts[rank]);
            self.shown_weights.extend(weights.get(rank));
        }
        self.absent.len() as u32 - fetched
    }

    /// The host serves the whole event; the cache never hears of it.
    #[cold]
    fn leave_to_host(&mut self, layer: usize, host: u32) {
        let bucket = self.bucket();
        bucket.accesses += u64::from(host);
        bucket.host_served += u64::from(host);
        self.counts.add_layer(self.phase, layer, host, 0);
        for timeline in &mut self.timelines {
            let (distinct, placements) = (host, &[]);
            timeline.demand(Asked { layer, distinct, copies: 0, host, prefetched: 0, placements });
        }
        self.finish_layer(layer);
    }

    #[inline(always)]
    fn finish_layer(&mut self, layer: usize) {
        if self.habits.forecaster.is_some() {
            self.prefetch(layer);
        }
        for timeline in &mut self.timelines {
            timeline.finish_layer();
        }
    }

    fn prefetch(&mut self, layer: usize) {
        let Some(forecaster) = &mut self.habits.forecaster else { return };
        forecaster.observe(layer);
        let budgeted = forecaster.control().budget_bytes().is_some();
        for target in forecaster.targets(layer) {
            let experts = forecaster.guess(layer, target);
            let plan = if budgeted {
                let bytes = self.habits.expert_bytes[target];
                self.to_fetch.clear();
                for &expert in experts {
                    if self.cache.slot_of(target, expert).is_none() {
                        let Some(left) = self.budget.checked_sub(bytes) else { continue };
                        self.budget = left;
                    }
                    self.to_fetch.push(expert);
                }
                self.cache.prefetch(target, &self.to_fetch)
            } else {
                self.cache.prefetch(target, experts)
            };
            let bucket = self.counts.bucket_mut(self.phase, self.steady);
            bucket.prefetches[target] += u64::from(plan.fetches);
            bucket.prefetches_wasted += u64::from(plan.wasted);
            bucket.refetches += refetches(&mut self.overwritten, self.bases[target], &plan);
            for timeline in &mut self.timelines {
                timeline.prefetch(target, &plan);
            }
        }
    }

    /// Takes back the prefetches for a layer that have not begun and that the event does not want.
    #[cold]
    fn cancel_unwanted(&mut self, layer: usize, experts: &[E]) {
        let mark = |wanted: &mut [bool], to| {
            experts.iter().for_each(|expert| wanted[expert.index() as usize] = to);
        };
        mark(&mut self.wanted, true);
        let (wanted, cancelled) = (&self.wanted, &mut self.to_fetch);
        cancelled.clear();
        for timeline in &mut self.timelines {
            timeline.route_and_cancel(layer, |expert| {
                let unwanted = !wanted[expert as usize];
                if unwanted {
                    cancelled.push(expert);
                }
                unwanted
            });
        }
        mark(&mut self.wanted, false);
        let bucket = self.counts.bucket_mut(self.phase, self.steady);
        for &expert in &self.to_fetch {
            self.cache.discard(layer, expert);
            bucket.prefetches[layer] -= 1;
            bucket.prefetches_cancelled += 1;
        }
    }
}

/// How many of a plan's fetches bring back what a streamed prefill overwrote.
fn refetches(overwritten: &mut [bool], base: u32, plan: &Plan<'_>) -> u64 {
    if overwritten.is_empty() {
        return 0;
    }
    let fetched = plan.placements.iter().filter(|p| p.action == Action::Fetch);
    let again = |key: u32| u64::from(std::mem::take(&mut overwritten[key as usize]));
    fetched.map(|placement| base + placement.expert).map(again).sum()
}

impl<P: Policy, E: ExpertId> EventSink<E> for Engine<'_, P, E> {
    const WEIGHTS: bool = P::OBSERVES;

    fn begin_step(&mut self, step: usize, phase: Phase, tokens: u32) {
        self.resize();
        self.steady = match self.habits.warmup {
            Some(warmup) => self.tokens >= warmup,
            None => self.steady || self.cache.resident() == self.cache.capacity(),
        };
        self.phase = phase;
        self.tokens += u64::from(tokens);
        self.bucket().tokens += u64::from(tokens);
        if !self.passes_by() {
            self.cache.begin_step(tokens);
        } else if self.habits.prefill == Prefill::Streamed {
            self.borrow_slots();
        }
        if let Some(guided) = &mut self.habits.guided {
            guided.begin_step(step);
            self.follow_profile();
        }
        if let Some(forecaster) = &mut self.habits.forecaster {
            forecaster.begin_step(step);
            self.budget = forecaster.control().budget_bytes().unwrap_or(0);
        }
        for timeline in &mut self.timelines {
            timeline.begin_step(phase, self.steady, tokens);
        }
    }

    #[inline]
    fn event(&mut self, layer: usize, experts: &[E], weights: &[f32]) {
        if let Some(guided) = &mut self.habits.guided {
            guided.observe(layer);
            if layer == 0 {
                self.follow_profile();
            }
        }
        if self.passes_by() {
            if let Some(forecaster) = &mut self.habits.forecaster {
                forecaster.observe(layer);
            }
            return self.pass_by(layer, experts);
        }
        if !self.wanted.is_empty() {
            self.cancel_unwanted(layer, experts);
        }
        let mut host = 0;
        let plan = if self.recency.is_empty() {
            self.cache.demand_weighted(layer, experts, weights)
        } else {
            host = self.choose(layer, experts, weights);
            if self.shown.is_empty() {
                return self.leave_to_host(layer, host);
            }
            self.cache.demand_weighted(layer, &self.shown, &self.shown_weights)
        };
        let mut asked = Asked::of(layer, &plan);
        (asked.distinct, asked.host) = (asked.distinct + host, host);
        let bucket = self.counts.bucket_mut(self.phase, self.steady);
        bucket.accesses += u64::from(asked.distinct);
        bucket.hits += u64::from(plan.hits);
        bucket.demand_fetches[layer] += u64::from(asked.copies);
        bucket.unplaced += u64::from(plan.unplaced);
        bucket.overflow_events += u64::from(plan.overflow);
        bucket.prefetches_used += u64::from(plan.prefetch_hits);
        bucket.prefetches_wasted += u64::from(plan.wasted);
        bucket.host_served += u64::from(host);
        bucket.refetches += refetches(&mut self.overwritten, self.bases[layer], &plan);
        self.counts.add_layer(self.phase, layer, asked.distinct, plan.hits);
        for timeline in &mut self.timelines {
            timeline.demand(asked);
        }
        self.finish_layer(layer);
        self.cache.release(layer);
    }

    fn end_step(&mut self) {
        for timeline in &mut self.timelines {
            timeline.end_step();
        }
    }
}
