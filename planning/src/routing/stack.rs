//! LRU's hits at every capacity for steps of several tokens, in one cheap pass.
//!
//! As in `hotset_sim`'s exact curve, residents are ordered by the event that used them last, and a
//! cache of `C` slots holds the newest such groups whole and of the first that does not fit as many
//! as fit. Which of that group's experts those are the exact curve finds out at every capacity, and
//! for events of a hundred experts that takes most of its time; here each is as likely. The two
//! differ only where a capacity cuts a group, by less than one event's experts.

use hotset_policies::{ExpertId, Key};
use hotset_sim::EventSink;
use hotset_traces::{Phase, Shape};

const NEVER: u32 = u32::MAX;

/// Experts that were last used by one event, and what a running event found of them.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// Their first place, and the one behind their last.
    start: u32,
    end: u32,
    /// The event that last asked.
    asked: u32,
    /// Experts in newer groups, and in this one.
    newer: u32,
    size: u32,
}

/// One pool over all layers.
#[derive(Debug)]
pub(super) struct GroupStack {
    bases: Vec<Key>,
    /// Live experts before each place, as a Fenwick tree; the expert at each place.
    tree: Vec<u32>,
    at: Vec<Key>,
    next: u32,
    live: u32,
    /// Each expert's place and group.
    places: Vec<u32>,
    of: Vec<u32>,
    groups: Vec<Group>,
    event: u32,
    /// Steps that warm up, and those that ran.
    cold: u64,
    steps: u64,
    widest: u32,
    accesses: u64,
    /// By capacity, what changes in the slope of the hits.
    slopes: Vec<f64>,
}

impl GroupStack {
    pub fn new(shape: &Shape, cold: u64) -> Self {
        let experts = shape.total_experts();
        // Room for many events between two tidyings.
        let room = experts as usize * 4 + 1024;
        Self {
            bases: (0..shape.layers().len()).map(|layer| shape.key_base(layer)).collect(),
            tree: vec![0; room + 1],
            at: vec![NEVER; room],
            next: 0,
            live: 0,
            places: vec![NEVER; experts as usize],
            of: vec![NEVER; experts as usize],
            groups: Vec::new(),
            event: 0,
            cold,
            steps: 0,
            widest: 1,
            accesses: 0,
            slopes: vec![0.0; experts as usize + 2],
        }
    }

    /// The widest event, accesses that were counted, and hits with 0, 1, ... slots.
    pub fn finish(self) -> (u32, u64, Vec<f64>) {
        let (mut slope, mut hits) = (0.0, 0.0);
        let experts = self.slopes.len() - 2;
        let by_capacity = self.slopes.iter().take(experts + 1).map(|change| {
            let before = hits;
            slope += change;
            hits += slope;
            before
        });
        let by_capacity = by_capacity.collect();
        (self.widest, self.accesses, by_capacity)
    }

    /// Live experts before a place.
    fn before(&self, place: u32) -> u32 {
        let (mut index, mut sum) = (place as usize, 0);
        while index > 0 {
            sum += self.tree[index];
            index &= index - 1;
        }
        sum
    }

    fn change(&mut self, place: u32, by: u32) {
        let mut index = place as usize + 1;
        while index < self.tree.len() {
            self.tree[index] = self.tree[index].wrapping_add(by);
            index += index & index.wrapping_neg();
        }
    }

    /// Moves what is live to the front, in order, and forgets what is not.
    fn tidy(&mut self) {
        let mut place = 0u32;
        let mut groups: Vec<Group> = Vec::new();
        let mut last = NEVER;
        for old in 0..self.next as usize {
            let key = self.at[old];
            if key == NEVER {
                continue;
            }
            if self.of[key as usize] != last {
                last = self.of[key as usize];
                groups.push(Group { start: place, end: place, asked: 0, newer: 0, size: 0 });
            }
            let group = groups.len() - 1;
            groups[group].end = place + 1;
            self.at[place as usize] = key;
            self.places[key as usize] = place;
            // Groups are fewer than experts.
            self.of[key as usize] = group as u32;
            place += 1;
        }
        self.at[place as usize..].fill(NEVER);
        self.next = place;
        self.groups = groups;
        // A tree over `place` ones.
        for index in 1..self.tree.len() {
            let low = index - (index & index.wrapping_neg());
            let live = place as usize;
            self.tree[index] = (index.min(live) - low.min(live)) as u32;
        }
    }

    /// What an access to a live expert found: `newer` experts before its group, `size` in it.
    fn find(&mut self, key: Key) -> (u32, u32) {
        let index = self.of[key as usize] as usize;
        let group = self.groups[index];
        if group.asked != self.event {
            let end = self.before(group.end);
            let size = end - self.before(group.start);
            let found = &mut self.groups[index];
            (found.asked, found.newer, found.size) = (self.event, self.live - end, size);
        }
        (self.groups[index].newer, self.groups[index].size)
    }
}

impl<E: ExpertId> EventSink<E> for GroupStack {
    const WEIGHTS: bool = false;

    fn begin_step(&mut self, _: usize, _: Phase, _: u32) {
        self.steps += 1;
    }

    fn event(&mut self, layer: usize, experts: &[E], _: &[f32]) {
        if self.next as usize + experts.len() > self.at.len() {
            self.tidy();
        }
        self.event += 1;
        self.widest = self.widest.max(experts.len() as u32);
        let base = self.bases[layer];
        let counted = self.steps > self.cold;
        if counted {
            self.accesses += experts.len() as u64;
        }
        // Hits are those of the cache as the event finds it.
        for expert in experts {
            let key = base + expert.index();
            if counted && self.of[key as usize] != NEVER {
                let (newer, size) = self.find(key);
                // With `newer` slots none of the group, with `newer + size` all.
                self.slopes[newer as usize] += 1.0 / f64::from(size);
                self.slopes[(newer + size) as usize] -= 1.0 / f64::from(size);
            }
        }
        let group = self.groups.len() as u32;
        let start = self.next;
        for expert in experts {
            let key = base + expert.index();
            let old = self.places[key as usize];
            if old == NEVER {
                self.live += 1;
            } else {
                self.change(old, u32::MAX);
                self.at[old as usize] = NEVER;
            }
            self.change(self.next, 1);
            self.at[self.next as usize] = key;
            self.places[key as usize] = self.next;
            self.of[key as usize] = group;
            self.next += 1;
        }
        self.groups.push(Group { start, end: self.next, asked: 0, newer: 0, size: 0 });
    }

    fn end_step(&mut self) {}
}
