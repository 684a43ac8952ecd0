//! Where hotset's counts differ from libCacheSim 0.3.5's, the rules that make the difference: the
//! same caches with libCacheSim's own rules give its counts exactly.

use std::collections::{BTreeMap, HashMap};

use hotset_policies::Key;
use xxhash_rust::xxh64::xxh64;

/// Keys in order of arrival.
#[derive(Default)]
struct Order {
    keys: BTreeMap<u64, Key>,
    arrivals: HashMap<Key, u64>,
    clock: u64,
}

impl Order {
    fn push(&mut self, key: Key) {
        self.clock += 1;
        self.keys.insert(self.clock, key);
        self.arrivals.insert(key, self.clock);
    }

    fn remove(&mut self, key: Key) -> bool {
        self.arrivals.remove(&key).map(|arrival| self.keys.remove(&arrival)).is_some()
    }

    fn oldest(&self) -> Option<Key> {
        self.keys.values().next().copied()
    }

    fn pop(&mut self) -> Key {
        let key = self.oldest().unwrap();
        self.remove(key);
        key
    }

    fn contains(&self, key: Key) -> bool {
        self.arrivals.contains_key(&key)
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Every segment has floor(slots / 4); the lowest takes what the others cannot, and is cut back to
/// its size by evicting when a key cools into it, on a hit.
pub struct Slru {
    segments: [Order; 4],
    slots: usize,
}

impl Slru {
    pub fn new(slots: u32) -> Self {
        Self { segments: Default::default(), slots: slots as usize }
    }

    pub fn get(&mut self, key: Key) -> bool {
        let longest = self.slots / 4;
        if let Some(at) = self.segments.iter().position(|segment| segment.contains(key)) {
            let to = (at + 1).min(3);
            self.segments[at].remove(key);
            self.segments[to].push(key);
            let mut warm = to;
            while self.segments[warm].len() > longest {
                let cooled = self.segments[warm].pop();
                if warm > 0 {
                    warm -= 1;
                    self.segments[warm].push(cooled);
                }
            }
            return true;
        }
        if self.segments.iter().map(Order::len).sum::<usize>() == self.slots {
            self.segments.iter_mut().find(|segment| segment.len() > 0).unwrap().pop();
        }
        let to = self.segments.iter().position(|segment| segment.len() < longest).unwrap_or(0);
        self.segments[to].push(key);
        false
    }
}

/// CAR whose quotients are of integers, which forgets B1's last on a miss in a ghost list too, and
/// B2's never.
#[derive(Default)]
pub struct Car {
    t1: Order,
    t2: Order,
    used: HashMap<Key, bool>,
    b1: Order,
    b2: Order,
    p: f64,
    slots: usize,
}

impl Car {
    pub fn new(slots: u32) -> Self {
        Self { slots: slots as usize, ..Self::default() }
    }

    pub fn get(&mut self, key: Key) -> bool {
        if let Some(used) = self.used.get_mut(&key) {
            *used = true;
            return true;
        }
        let (b1, b2) = (self.b1.len(), self.b2.len());
        let in_b1 = self.b1.remove(key);
        let in_b2 = self.b2.remove(key);
        if in_b1 {
            self.p = (self.p + (b2 / b1).max(1) as f64).min(self.slots as f64);
        } else if in_b2 {
            self.p = (self.p - (b1 / b2).max(1) as f64).max(0.0);
        }
        if self.used.len() == self.slots {
            self.replace();
            if self.t1.len() + self.b1.len() >= self.slots {
                self.b1.pop();
            }
        }
        self.used.insert(key, false);
        if in_b1 || in_b2 {
            self.t2.push(key)
        } else {
            self.t1.push(key)
        }
        false
    }

    fn replace(&mut self) {
        loop {
            let from_t1 = self.t1.len() as f64 >= self.p.max(1.0);
            let key = if from_t1 { self.t1.pop() } else { self.t2.pop() };
            if self.used.insert(key, false) == Some(true) {
                self.t2.push(key);
                continue;
            }
            self.used.remove(&key);
            if from_t1 {
                self.b1.push(key)
            } else {
                self.b2.push(key)
            }
            return;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Lir,
    Hir,
    Gone,
}

/// LIRS which, on a hit on an HIR key that is not in the stack, demotes the LIR key at its bottom:
/// that evicts Q's oldest (with one HIR slot the very key, which then counts as resident while it
/// stays in the stack, without a slot), and leaves a LIR place free.
#[derive(Default)]
pub struct Lirs {
    stack: Order,
    kind: HashMap<Key, Kind>,
    q: Order,
    gone: Order,
    lirs: usize,
    most_lirs: usize,
    most_hirs: usize,
    resident: usize,
    slots: usize,
}

impl Lirs {
    pub fn new(slots: u32) -> Self {
        let slots = slots as usize;
        let most_hirs = (slots / 100).max(1);
        Self { most_hirs, most_lirs: slots - most_hirs, slots, ..Self::default() }
    }

    pub fn get(&mut self, key: Key) -> bool {
        let kind = self.kind.get(&key).copied();
        if self.stack.remove(key) {
            self.stack.push(key);
        }
        if self.q.remove(key) {
            self.q.push(key);
        }
        let hit = match kind {
            Some(Kind::Lir) => {
                self.prune();
                true
            }
            Some(Kind::Hir) => {
                self.resident -= usize::from(self.q.remove(key));
                self.make_lir_room();
                self.become_lir(key);
                true
            }
            None if self.q.contains(key) => {
                self.make_lir_room();
                self.stack.push(key);
                self.kind.insert(key, Kind::Hir);
                true
            }
            Some(Kind::Gone) => {
                self.make_lir_room();
                self.gone.remove(key);
                while self.resident == self.slots {
                    while self.q.len() >= self.most_hirs {
                        self.evict_hir();
                    }
                    self.demote();
                }
                self.become_lir(key);
                false
            }
            None => {
                if self.lirs >= self.most_lirs {
                    while self.q.len() >= self.most_hirs {
                        self.evict_hir();
                    }
                }
                self.stack.push(key);
                if self.lirs < self.most_lirs {
                    self.become_lir(key);
                } else {
                    self.kind.insert(key, Kind::Hir);
                    self.q.push(key);
                    self.resident += 1;
                }
                false
            }
        };
        while self.stack.len() > 2 * self.slots && self.gone.len() > 0 {
            let forgotten = self.gone.pop();
            self.stack.remove(forgotten);
            self.kind.remove(&forgotten);
        }
        hit
    }

    fn become_lir(&mut self, key: Key) {
        self.kind.insert(key, Kind::Lir);
        self.lirs += 1;
        self.resident += 1;
    }

    fn make_lir_room(&mut self) {
        while self.lirs >= self.most_lirs {
            self.demote();
        }
    }

    fn demote(&mut self) {
        let key = self.stack.pop();
        self.kind.remove(&key);
        self.lirs -= 1;
        while self.q.len() >= self.most_hirs {
            self.evict_hir();
        }
        self.q.push(key);
        self.prune();
    }

    fn evict_hir(&mut self) {
        let key = self.q.pop();
        self.resident -= 1;
        if let Some(kind) = self.kind.get_mut(&key) {
            *kind = Kind::Gone;
            self.gone.push(key);
        }
    }

    fn prune(&mut self) {
        while self.stack.len() > 1 {
            let bottom = self.stack.oldest().unwrap();
            if self.kind[&bottom] == Kind::Lir {
                break;
            }
            self.gone.remove(bottom);
            self.kind.remove(&bottom);
            self.stack.pop();
        }
    }
}

/// W-TinyLFU that, where both segments' sizes rounded down leave a slot of the main cache over,
/// evicts probation's oldest on a hit that cools a key into full probation; the next key of the window
/// then enters the main cache without judgement.
#[derive(Default)]
pub struct WTinyLfu {
    window: Order,
    main: [Order; 2],
    longest: [usize; 2],
    filter: Filter,
    main_hits: usize,
    most_main: usize,
    slots: usize,
}

impl WTinyLfu {
    pub fn new(slots: u32) -> Self {
        let slots = slots as usize;
        let most_main = slots - slots / 100;
        Self {
            longest: [most_main / 5, most_main * 4 / 5],
            filter: Filter::new(most_main),
            most_main,
            slots,
            ..Self::default()
        }
    }

    pub fn get(&mut self, key: Key) -> bool {
        if self.window.remove(key) {
            self.window.push(key);
            return true;
        }
        if self.main.iter_mut().any(|segment| segment.remove(key)) {
            self.main[1].push(key);
            if self.main[1].len() > self.longest[1] {
                let cooled = self.main[1].pop();
                self.main[0].push(cooled);
                while self.main[0].len() > self.longest[0] {
                    self.main[0].pop();
                }
            }
            self.filter.add(key);
            self.main_hits += 1;
            if self.main_hits == 32 * self.most_main {
                self.main_hits = 0;
                self.filter.counters.iter_mut().for_each(|count| *count /= 2);
            }
            return true;
        }
        while self.window.len() + self.in_main() == self.slots {
            self.judge();
        }
        self.window.push(key);
        self.filter.add(key);
        false
    }

    fn in_main(&self) -> usize {
        self.main[0].len() + self.main[1].len()
    }

    fn judge(&mut self) {
        let candidate = self.window.pop();
        if self.in_main() == self.most_main {
            let lowest = usize::from(self.main[0].len() == 0);
            let victim = self.main[lowest].oldest().unwrap();
            if self.filter.estimate(candidate) > self.filter.estimate(victim) {
                self.main[lowest].pop();
                self.enter_main(candidate);
            }
        } else {
            self.enter_main(candidate);
        }
        self.filter.add(candidate);
    }

    fn enter_main(&mut self, key: Key) {
        let to = (0..2).find(|&at| self.main[at].len() < self.longest[at]).unwrap_or(0);
        self.main[to].push(key);
    }
}

/// A counting Bloom filter, 0.1% wrong when as full as it was made for.
#[derive(Default)]
struct Filter {
    counters: Vec<u32>,
}

impl Filter {
    fn new(keys: usize) -> Self {
        // -ln(0.001) / ln(2)^2
        Self { counters: vec![0; (keys as f64 * 14.377_587_566_051_17).ceil() as usize] }
    }

    fn places(&self, key: Key) -> [usize; 10] {
        let id = (u64::from(key) + 1).to_le_bytes();
        let [first, step] = [0x1234_5678, 0x1234_4321].map(|seed| xxh64(&id, seed) as u32);
        std::array::from_fn(|i| {
            first.wrapping_add(step.wrapping_mul(i as u32)) as usize % self.counters.len()
        })
    }

    fn estimate(&self, key: Key) -> u32 {
        self.places(key).map(|place| self.counters[place]).into_iter().min().unwrap()
    }

    fn add(&mut self, key: Key) {
        for place in self.places(key) {
            self.counters[place] += 1;
        }
    }
}
