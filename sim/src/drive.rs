//! Walks through a trace's steps and hands out events: one layer of one step, distinct experts.

use std::ops::Range;
use std::sync::Arc;

use hotset_policies::ExpertId;
use hotset_traces::{IdColumn, Phase, Trace, WeightColumn};

use crate::sequences::SequencePrices;
use crate::{ReplayProgress, SimError, Steps};

/// Receives a trace's events.
pub trait EventSink<E> {
    /// Whether the router's weights are wanted with each event.
    const WEIGHTS: bool;

    /// Whether they are wanted all the same: for what only a run's setting says.
    fn wants_weights(&self) -> bool {
        Self::WEIGHTS
    }

    /// Whether [`EventSink::wanted_by`] is to be called.
    fn wants_tokens(&self) -> bool {
        false
    }

    /// How many tokens want each expert of the event that follows; called for steps of several tokens
    /// only.
    fn wanted_by(&mut self, tokens: &[u32]) {
        let _ = tokens;
    }

    /// The steps that follow are of this sequence; called only where sequences are counted.
    fn begin_sequence(&mut self, sequence: u32) {
        let _ = sequence;
    }

    /// Step `step` of the [`Steps`] begins, over `tokens` tokens of one phase.
    fn begin_step(&mut self, step: usize, phase: Phase, tokens: u32);

    /// One layer of the step: its distinct experts in order of first appearance, and the weight of
    /// each summed over the step's tokens (empty unless wanted and recorded).
    fn event(&mut self, layer: usize, experts: &[E], weights: &[f32]);

    /// The step ends.
    fn end_step(&mut self);
}

/// Sends the steps of the phases that `wanted` picks through `sink`. `ids` is the trace's id
/// column in its own width.
pub fn drive<E: ExpertId>(
    trace: &Trace,
    ids: &[E],
    steps: &Steps,
    wanted: impl Fn(Phase) -> bool,
    sink: &mut impl EventSink<E>,
) {
    // Nobody asks it to stop.
    let _ = walk(trace, ids, &Way::new(steps, &()), wanted, sink);
}

/// [`drive`] that stops on the way when it is asked to.
///
/// # Errors
/// [`SimError::Interrupted`], within so many accesses of being asked as some milliseconds take.
pub fn drive_watched<E: ExpertId>(
    trace: &Trace,
    ids: &[E],
    (steps, progress): (&Steps, &dyn ReplayProgress),
    wanted: impl Fn(Phase) -> bool,
    sink: &mut impl EventSink<E>,
) -> Result<(), SimError> {
    walk(trace, ids, &Way::new(steps, progress), wanted, sink)
}

/// [`drive`] for sinks that take ids of 16 bits, whatever the column's width: what is compiled
/// for each policy is then compiled once, not once a width.
///
/// # Errors
/// [`SimError::Interrupted`], within so many accesses of being asked as some milliseconds take.
pub(crate) fn drive_wide(
    trace: &Trace,
    way: &Way<'_>,
    wanted: impl Fn(Phase) -> bool,
    sink: &mut impl EventSink<u16>,
) -> Result<(), SimError> {
    walk(trace, WideIds::of(trace), way, wanted, sink)
}

/// The steps to walk through, and who may ask to stop on the way.
pub(crate) struct Way<'a> {
    pub steps: &'a Steps,
    pub progress: &'a dyn ReplayProgress,
    /// What sequences' counts cost, where each is counted by itself: every step is then of one.
    pub sequences: Option<&'a Arc<SequencePrices>>,
}

impl<'a> Way<'a> {
    /// Sequences are not counted.
    pub fn new(steps: &'a Steps, progress: &'a dyn ReplayProgress) -> Self {
        Self { steps, progress, sequences: None }
    }
}

/// Accesses between two looks at whether to stop.
const ACCESSES_A_LOOK: usize = 1 << 18;

/// Looks from time to time at whether to stop.
pub(crate) struct Lookout<'a> {
    progress: &'a dyn ReplayProgress,
    left: usize,
}

impl<'a> Lookout<'a> {
    pub fn new(progress: &'a dyn ReplayProgress) -> Self {
        Self { progress, left: ACCESSES_A_LOOK }
    }

    /// So many accesses are done.
    ///
    /// # Errors
    /// [`SimError::Interrupted`].
    #[inline(always)]
    pub fn pass(&mut self, accesses: usize) -> Result<(), SimError> {
        self.left = self.left.saturating_sub(accesses);
        if self.left == 0 { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self) -> Result<(), SimError> {
        self.left = ACCESSES_A_LOOK;
        if self.progress.cancelled() { Err(SimError::Interrupted) } else { Ok(()) }
    }
}

/// Spans of an id column.
trait IdSpans {
    type Id: ExpertId;
    fn span(&mut self, places: Range<usize>) -> &[Self::Id];
    fn raw(&self, places: Range<usize>) -> RawSpan<'_, Self::Id>;
}

/// A span as it lies in the column: in the width that is handed out, or narrower.
#[derive(Clone, Copy)]
enum RawSpan<'a, E> {
    Own(&'a [E]),
    Narrow(&'a [u8]),
}

impl<E: ExpertId> RawSpan<'_, E> {
    #[inline(always)]
    fn each(self, mut visit: impl FnMut(usize, E)) {
        match self {
            Self::Own(ids) => ids.iter().enumerate().for_each(|(at, &id)| visit(at, id)),
            Self::Narrow(ids) => {
                ids.iter().enumerate().for_each(|(at, &id)| visit(at, E::of_index(u32::from(id))))
            }
        }
    }
}

impl<E: ExpertId> IdSpans for &[E] {
    type Id = E;

    #[inline(always)]
    fn raw(&self, places: Range<usize>) -> RawSpan<'_, E> {
        RawSpan::Own(&self[places])
    }

    #[inline(always)]
    fn span(&mut self, places: Range<usize>) -> &[E] {
        &self[places]
    }
}

/// An id column in 16 bits: as it lies, or widened span by span.
pub(crate) struct WideIds<'a> {
    ids: IdColumn<'a>,
    widened: Vec<u16>,
}

impl<'a> WideIds<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        Self { ids: trace.ids(), widened: Vec::with_capacity(trace.shape().row_len()) }
    }

    /// The ids at these places of the column.
    #[inline(always)]
    pub fn span(&mut self, places: Range<usize>) -> &[u16] {
        match self.ids {
            IdColumn::U8(ids) => {
                self.widened.clear();
                self.widened.extend(ids[places].iter().map(|&id| u16::from(id)));
                &self.widened
            }
            IdColumn::U16(ids) => &ids[places],
        }
    }
}

impl IdSpans for WideIds<'_> {
    type Id = u16;

    #[inline(always)]
    fn raw(&self, places: Range<usize>) -> RawSpan<'_, u16> {
        match self.ids {
            IdColumn::U8(ids) => RawSpan::Narrow(&ids[places]),
            IdColumn::U16(ids) => RawSpan::Own(&ids[places]),
        }
    }

    #[inline(always)]
    fn span(&mut self, places: Range<usize>) -> &[u16] {
        WideIds::span(self, places)
    }
}

fn walk<S: IdSpans>(
    trace: &Trace,
    mut ids: S,
    way: &Way<'_>,
    wanted: impl Fn(Phase) -> bool,
    sink: &mut impl EventSink<S::Id>,
) -> Result<(), SimError> {
    let steps = way.steps;
    let mut lookout = Lookout::new(way.progress);
    let shape = trace.shape();
    let row_len = shape.row_len();
    let layers: Vec<(usize, usize)> = shape
        .layers()
        .iter()
        .enumerate()
        .map(|(index, layer)| (shape.row_offset(index), layer.top_k as usize))
        .collect();
    let mut union = Union::new(trace);
    let mut running = None;
    for step in 0..steps.len() {
        let places = steps.places(step);
        let first = steps.row(places.start);
        let phase = trace.phase(first);
        if !wanted(phase) {
            continue;
        }
        if way.sequences.is_some() {
            let sequence = trace.sequence_of(first) as u32;
            if running != Some(sequence) {
                running = Some(sequence);
                sink.begin_sequence(sequence);
            }
        }
        sink.begin_step(step, phase, places.len() as u32);
        if places.len() == 1 {
            lookout.pass(row_len)?;
            let row = ids.span(first * row_len..(first + 1) * row_len);
            for (layer, &(offset, top_k)) in layers.iter().enumerate() {
                let weights = if weighted(sink) {
                    union.weights_of(trace, first * row_len + offset, top_k)
                } else {
                    &[]
                };
                sink.event(layer, &row[offset..offset + top_k], weights);
            }
        } else {
            for (layer, &(offset, top_k)) in layers.iter().enumerate() {
                lookout.pass(places.len() * top_k)?;
                union.clear();
                let recorded = if weighted(sink) { trace.weights() } else { None };
                let counted = sink.wants_tokens();
                for place in places.clone() {
                    let start = steps.row(place) * row_len + offset;
                    let experts = ids.raw(start..start + top_k);
                    match &recorded {
                        None => union.add(experts),
                        Some(weights) => union.weigh(experts, weights, start),
                    }
                    if counted {
                        union.count(experts);
                    }
                }
                if counted {
                    sink.wanted_by(&union.tokens);
                }
                sink.event(layer, &union.experts, &union.weights);
            }
        }
        sink.end_step();
    }
    Ok(())
}

fn weighted<E, S: EventSink<E>>(sink: &S) -> bool {
    S::WEIGHTS || sink.wants_weights()
}

/// The distinct experts of several tokens in one layer.
struct Union<E> {
    experts: Vec<E>,
    weights: Vec<f32>,
    tokens: Vec<u32>,
    /// Where an expert stands in `experts`, valid if stamped with the current round.
    place: Vec<(u32, u32)>,
    round: u32,
}

impl<E: ExpertId> Union<E> {
    fn new(trace: &Trace) -> Self {
        let widest = trace.shape().layers().iter().map(|layer| layer.experts).max().unwrap_or(0);
        Self {
            experts: Vec::with_capacity(widest as usize),
            weights: Vec::with_capacity(widest as usize),
            tokens: Vec::with_capacity(widest as usize),
            place: vec![(0, 0); widest as usize],
            round: 0,
        }
    }

    fn clear(&mut self) {
        if self.round == u32::MAX {
            self.place.fill((0, 0));
            self.round = 0;
        }
        self.round += 1;
        self.experts.clear();
        self.weights.clear();
        self.tokens.clear();
    }

    /// The place of an expert among the distinct ones, and whether it is new there.
    #[inline(always)]
    fn enter(&mut self, expert: E) -> (usize, bool) {
        let place = &mut self.place[expert.index() as usize];
        let new = place.0 != self.round;
        if new {
            *place = (self.round, self.experts.len() as u32);
            self.experts.push(expert);
        }
        (place.1 as usize, new)
    }

    #[inline]
    fn add(&mut self, experts: RawSpan<'_, E>) {
        experts.each(|_, expert| {
            self.enter(expert);
        });
    }

    fn weigh(&mut self, experts: RawSpan<'_, E>, weights: &WeightColumn<'_>, start: usize) {
        experts.each(|rank, expert| {
            let weight = weights.get(start + rank);
            match self.enter(expert) {
                (_, true) => self.weights.push(weight),
                (place, false) => self.weights[place] += weight,
            }
        });
    }

    /// Counts the tokens of experts that were entered.
    fn count(&mut self, experts: RawSpan<'_, E>) {
        self.tokens.resize(self.experts.len(), 0);
        experts.each(|_, expert| {
            let (place, _) = self.enter(expert);
            self.tokens[place] += 1;
        });
    }

    fn weights_of(&mut self, trace: &Trace, start: usize, count: usize) -> &[f32] {
        self.weights.clear();
        if let Some(weights) = trace.weights() {
            self.weights.extend((start..start + count).map(|index| weights.get(index)));
        }
        &self.weights
    }
}
