//! Walks through a trace's steps and hands out events: one layer of one step, distinct experts.

use std::ops::Range;

use hotset_policies::ExpertId;
use hotset_traces::{IdColumn, Phase, Trace};

use crate::Steps;

/// Receives a trace's events.
pub trait EventSink<E> {
    /// Whether the router's weights are wanted with each event.
    const WEIGHTS: bool;

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
    walk(trace, ids, steps, wanted, sink);
}

/// [`drive`] for sinks that take ids of 16 bits, whatever the column's width: what is compiled
/// for each policy is then compiled once, not once a width.
pub(crate) fn drive_wide(
    trace: &Trace,
    steps: &Steps,
    wanted: impl Fn(Phase) -> bool,
    sink: &mut impl EventSink<u16>,
) {
    walk(trace, WideIds::of(trace), steps, wanted, sink);
}

/// Spans of an id column.
trait IdSpans {
    type Id: ExpertId;
    fn span(&mut self, places: Range<usize>) -> &[Self::Id];
}

impl<E: ExpertId> IdSpans for &[E] {
    type Id = E;

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
    fn span(&mut self, places: Range<usize>) -> &[u16] {
        WideIds::span(self, places)
    }
}

fn walk<S: IdSpans>(
    trace: &Trace,
    mut ids: S,
    steps: &Steps,
    wanted: impl Fn(Phase) -> bool,
    sink: &mut impl EventSink<S::Id>,
) {
    let shape = trace.shape();
    let row_len = shape.row_len();
    let layers: Vec<(usize, usize)> = shape
        .layers()
        .iter()
        .enumerate()
        .map(|(index, layer)| (shape.row_offset(index), layer.top_k as usize))
        .collect();
    let mut union = Union::new(trace);
    for step in 0..steps.len() {
        let places = steps.places(step);
        let first = steps.row(places.start);
        let phase = trace.phase(first);
        if !wanted(phase) {
            continue;
        }
        sink.begin_step(step, phase, places.len() as u32);
        if places.len() == 1 {
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
                union.clear();
                for place in places.clone() {
                    let start = steps.row(place) * row_len + offset;
                    union.add(trace, ids.span(start..start + top_k), start, weighted(sink));
                }
                sink.event(layer, &union.experts, &union.weights);
            }
        }
        sink.end_step();
    }
}

fn weighted<E, S: EventSink<E>>(_: &S) -> bool {
    S::WEIGHTS
}

/// The distinct experts of several tokens in one layer.
struct Union<E> {
    experts: Vec<E>,
    weights: Vec<f32>,
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
    }

    fn add(&mut self, trace: &Trace, experts: &[E], start: usize, weighted: bool) {
        let weights = trace.weights().filter(|_| weighted);
        for (rank, &expert) in experts.iter().enumerate() {
            let weight = weights.map(|weights| weights.get(start + rank));
            let place = &mut self.place[expert.index() as usize];
            if place.0 == self.round {
                if let Some(weight) = weight {
                    self.weights[place.1 as usize] += weight;
                }
            } else {
                *place = (self.round, self.experts.len() as u32);
                self.experts.push(expert);
                self.weights.extend(weight);
            }
        }
    }

    fn weights_of(&mut self, trace: &Trace, start: usize, count: usize) -> &[f32] {
        self.weights.clear();
        if let Some(weights) = trace.weights() {
            self.weights.extend((start..start + count).map(|index| weights.get(index)));
        }
        &self.weights
    }
}
