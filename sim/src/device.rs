//! What does the work that an engine's cache decides on.

use hotset_policies::{Action, Key, Placement, Plan, Resized};
use hotset_traces::Phase;

/// One layer of a step, as the cache and the miss handler split it.
#[derive(Debug, Clone, Copy)]
pub struct DeviceEvent<'a> {
    /// The layer.
    pub layer: usize,
    /// Experts that the accelerator computes, and where each lies or comes to lie.
    pub placements: &'a [Placement],
    /// Dense keys of experts that left without another taking their slot at once.
    pub dropped: &'a [Key],
    /// Experts that host cores compute.
    pub on_host: &'a [u32],
    /// Experts that nobody computes as asked: dropped, or others stand in for them.
    pub left_out: u32,
}

/// An expert of an event that goes past the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedExpert {
    /// The expert's id within its layer.
    pub expert: u32,
    /// Its slot if it is resident; else it comes through a transient buffer.
    pub slot: Option<u32>,
}

/// What does the copies and runs the kernels that a cache decides on, in the order of its calls.
///
/// For each step: [`begin_step`](Self::begin_step); for each layer one of
/// [`demand`](Self::demand), [`pass_by`](Self::pass_by) and [`stream`](Self::stream), then any
/// number of [`prefetch`](Self::prefetch), then [`finish_layer`](Self::finish_layer); then
/// [`end_step`](Self::end_step). Copies are ordered: a copy that is asked for later runs later, and
/// the layer's kernel waits for those that it needs.
pub trait Device {
    /// An expert lies in a slot before the first step.
    fn place(&mut self, key: Key, layer: usize, expert: u32, slot: u32);

    /// A step of `tokens` tokens of one phase begins.
    fn begin_step(&mut self, phase: Phase, tokens: u32);

    /// The number of slots has changed.
    fn resized(&mut self, resized: &Resized);

    /// The layer's routing is known: what is missing is copied, what host cores compute begins.
    fn demand(&mut self, event: &DeviceEvent<'_>);

    /// The same of a layer that the cache does not serve.
    fn pass_by(&mut self, layer: usize, experts: &[PassedExpert]);

    /// The same of a layer whose experts stream, all of them, through the buffer of slots
    /// `layer % 2 * widest..`: those of the layer behind it are copied now, into the other one.
    fn stream(&mut self, layer: usize, experts: &[u16]);

    /// What a prefetch for `layer` copies is queued behind what is queued already.
    fn prefetch(&mut self, layer: usize, plan: &Plan<'_>);

    /// The layer's experts run once they are there.
    fn finish_layer(&mut self);

    /// The step ends.
    fn end_step(&mut self);
}

/// A digest of everything that a cache decides: two runs with the same digest decided the same, slot
/// for slot and victim for victim.
///
/// ```
/// use hotset_sim::DecisionDigest;
///
/// let (mut a, mut b) = (DecisionDigest::default(), DecisionDigest::default());
/// a.note(&[1, 2]);
/// b.note(&[2, 1]);
/// assert_ne!(a.value(), b.value());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionDigest {
    hash: u64,
    decisions: u64,
}

impl DecisionDigest {
    /// The digest so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// Decisions so far: one for each expert of each event and each prefetch.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Takes numbers in.
    pub fn note(&mut self, numbers: &[u64]) {
        for &number in numbers {
            // A multiplication a number: this runs between an engine's decisions.
            self.hash = (self.hash.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn placements(&mut self, kind: u64, layer: usize, placements: &[Placement]) {
        self.note(&[kind, layer as u64, placements.len() as u64]);
        self.decisions += placements.len() as u64;
        for placement in placements {
            let evicted = placement.evicted().map_or(u64::MAX, u64::from);
            let slot = match placement.action {
                Action::Unplaced => u64::MAX,
                _ => u64::from(placement.slot),
            };
            self.note(&[u64::from(placement.expert), placement.action as u64, slot, evicted]);
        }
    }
}

impl Device for DecisionDigest {
    fn place(&mut self, key: Key, layer: usize, expert: u32, slot: u32) {
        self.note(&[1, u64::from(key), layer as u64, u64::from(expert), u64::from(slot)]);
    }

    fn begin_step(&mut self, phase: Phase, tokens: u32) {
        self.note(&[2, phase as u64, u64::from(tokens)]);
    }

    fn resized(&mut self, resized: &Resized) {
        self.note(&[3]);
        resized.evicted.iter().for_each(|&key| self.note(&[u64::from(key)]));
        for moved in &resized.moved {
            self.note(&[u64::from(moved.key), u64::from(moved.from), u64::from(moved.to)]);
        }
    }

    fn demand(&mut self, event: &DeviceEvent<'_>) {
        self.placements(4, event.layer, event.placements);
        event.dropped.iter().for_each(|&key| self.note(&[u64::from(key)]));
        self.note(&[event.on_host.len() as u64, u64::from(event.left_out)]);
        self.decisions += event.on_host.len() as u64;
        event.on_host.iter().for_each(|&expert| self.note(&[u64::from(expert)]));
    }

    fn pass_by(&mut self, layer: usize, experts: &[PassedExpert]) {
        self.note(&[5, layer as u64]);
        self.decisions += experts.len() as u64;
        for passed in experts {
            self.note(&[u64::from(passed.expert), passed.slot.map_or(u64::MAX, u64::from)]);
        }
    }

    fn stream(&mut self, layer: usize, experts: &[u16]) {
        self.note(&[6, layer as u64]);
        self.decisions += experts.len() as u64;
        experts.iter().for_each(|&expert| self.note(&[u64::from(expert)]));
    }

    fn prefetch(&mut self, layer: usize, plan: &Plan<'_>) {
        self.placements(7, layer, plan.placements);
    }

    fn finish_layer(&mut self) {}

    fn end_step(&mut self) {
        self.note(&[8]);
    }
}
