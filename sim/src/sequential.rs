//! Sequential semantics: policies without a cache around them, one access at a time.

use std::ops::Range;

use hotset_policies::{Anyone, Event, Key, Policy, PoolShape};
use hotset_traces::{Shape, Trace, WeightColumn};

use crate::capacity::dimensions;
use crate::drive::{Lookout, Way, WideIds};
use crate::meter::{Meter, Served};
use crate::{Counts, Setting, SimError};

/// Counts a replay of `setting` that begins with the experts `placed`, each pool under the policy
/// that `build` makes.
pub(crate) fn replay<P: Policy>(
    trace: &Trace,
    setting: &Setting,
    placed: &[Key],
    way: &Way<'_>,
    mut build: impl FnMut(usize, &PoolShape) -> P,
) -> Result<Counts, SimError> {
    let shape = trace.shape();
    let (experts, top_k) = dimensions(shape);
    let pools = setting.slots.pools(&experts, &top_k)?;
    let mut pools: Vec<P> =
        pools.iter().enumerate().map(|(index, pool)| build(index, pool)).collect();
    let layers = layers(shape, pools.len() == 1);
    let capacity = setting.slots.total();
    place(&mut pools, &layers, placed, shape);
    let meter: Meter<false> = Meter::new(layers.len(), setting.warmup);
    let mut meter = meter.with_sequences(way.sequences);
    let mut running = None;
    let mut column = WideIds::of(trace);
    let mut lookout = Lookout::new(way.progress);
    for row in 0..trace.tokens() {
        lookout.pass(shape.row_len())?;
        let phase = trace.phase(row);
        if !setting.phase.wants(phase) {
            continue;
        }
        if way.sequences.is_some() {
            let sequence = trace.sequence_of(row) as u32;
            if running != Some(sequence) {
                running = Some(sequence);
                meter.begin_sequence(sequence);
            }
        }
        meter.begin_step(phase, 1, || pools.iter().map(Policy::len).sum::<u32>() == capacity);
        if P::OBSERVES {
            pools.iter_mut().for_each(|pool| pool.begin_step(1));
        }
        let start = row * shape.row_len();
        let ids = column.span(start..start + shape.row_len());
        for (index, layer) in layers.iter().enumerate() {
            let weights = P::READS_WEIGHTS.then(|| trace.weights()).flatten();
            let weights = weights.map(|column| Weights { column, start: start + layer.ids.start });
            let ids = &ids[layer.ids.clone()];
            let copies = access_all(&mut pools[layer.pool], ids, layer, weights);
            let distinct = ids.len() as u32;
            let hits = distinct - copies;
            meter.serve(index, Served { distinct, hits, copies, ..Served::default() });
        }
    }
    Ok(meter.finish())
}

/// Brings in what is there before the first access.
fn place<P: Policy>(pools: &mut [P], layers: &[LayerRow], placed: &[Key], shape: &Shape) {
    for &key in placed {
        let below = |layer: &usize| shape.key_base(*layer) <= key;
        let layer = (0..layers.len()).take_while(below).count().saturating_sub(1);
        let LayerRow { base, pool, .. } = layers[layer];
        let local = base + key - shape.key_base(layer);
        let admitted = pools[pool].admit(local, &mut Anyone);
        if !admitted && P::OBSERVES {
            pools[pool].begin_step(0);
            pools[pool].admit(local, &mut Anyone);
        }
    }
}

/// Where one layer's ids lie in a token's row, and which keys of which pool they are.
struct LayerRow {
    ids: Range<usize>,
    base: Key,
    pool: usize,
    /// The layer's number among those of its pool.
    in_pool: u32,
}

fn layers(shape: &Shape, global: bool) -> Vec<LayerRow> {
    let row = |(layer, of_shape): (usize, &hotset_traces::LayerShape)| {
        let start = shape.row_offset(layer);
        LayerRow {
            ids: start..start + of_shape.top_k as usize,
            base: if global { shape.key_base(layer) } else { 0 },
            pool: if global { 0 } else { layer },
            in_pool: if global { layer as u32 } else { 0 },
        }
    };
    shape.layers().iter().enumerate().map(row).collect()
}

/// The router's weights of a layer's accesses, from one place of their column on.
#[derive(Clone, Copy)]
struct Weights<'a> {
    column: WeightColumn<'a>,
    start: usize,
}

/// One layer's accesses of one token, one after another. Returns the misses.
#[inline(always)]
fn access_all<P: Policy>(
    policy: &mut P,
    ids: &[u16],
    layer: &LayerRow,
    weights: Option<Weights<'_>>,
) -> u32 {
    let mut misses = 0;
    for (rank, &id) in ids.iter().enumerate() {
        let key = layer.base + u32::from(id);
        if P::OBSERVES {
            let weight = weights.map(|weights| weights.column.get(weights.start + rank));
            let event = Event { layer: layer.in_pool, keys: &[key], weights: weight.as_slice() };
            policy.begin_event(&event);
        }
        if policy.contains(key) {
            policy.hit(key);
        } else {
            misses += 1;
            policy.admit(key, &mut Anyone);
        }
    }
    misses
}
