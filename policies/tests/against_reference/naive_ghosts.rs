//! Naive 2Q, ARC and S3-FIFO: lists that remember what left them. The newest key is last.

use std::collections::BTreeSet;

use hotset_policies::{Key, PoolShape};

use super::harness::Naive;

fn drop_from(list: &mut Vec<Key>, key: Key) -> bool {
    let before = list.len();
    list.retain(|&other| other != key);
    list.len() < before
}

fn oldest(list: &[Key], may_evict: &dyn Fn(Key) -> bool) -> Option<Key> {
    list.iter().copied().find(|&other| may_evict(other))
}

pub struct NaiveTwoQ {
    a1in: Vec<Key>,
    a1out: Vec<Key>,
    am: Vec<Key>,
    capacity: usize,
}

impl NaiveTwoQ {
    pub fn new(pool: &PoolShape) -> Self {
        let capacity = pool.capacity as usize;
        Self { a1in: Vec::new(), a1out: Vec::new(), am: Vec::new(), capacity }
    }
}

impl Naive for NaiveTwoQ {
    fn hit(&mut self, key: Key) {
        if drop_from(&mut self.am, key) {
            self.am.push(key);
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let (kin, kout) = (self.capacity / 4, self.capacity / 2);
        let mut left = Vec::new();
        let full = self.a1in.len() + self.am.len() == self.capacity;
        let of_am = oldest(&self.am, may_evict);
        let of_in = oldest(&self.a1in, may_evict);
        if full && of_am.is_none() && of_in.is_none() {
            return None;
        }
        let came_back = drop_from(&mut self.a1out, key);
        if full {
            let am_first = !self.am.is_empty() && self.a1in.len() <= kin;
            match (of_am, of_in) {
                (Some(victim), _) if am_first || of_in.is_none() => {
                    drop_from(&mut self.am, victim);
                    left.push(victim);
                }
                (_, of_in) => {
                    let victim = of_in.unwrap();
                    drop_from(&mut self.a1in, victim);
                    left.push(victim);
                    self.a1out.push(victim);
                    if self.a1out.len() > kout {
                        self.a1out.remove(0);
                    }
                }
            }
        }
        if !came_back {
            self.a1in.push(key);
            return Some(left);
        }
        if self.am.len() >= self.capacity - kin
            && let Some(victim) = oldest(&self.am, may_evict)
        {
            drop_from(&mut self.am, victim);
            left.push(victim);
        }
        self.am.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.a1in.iter().chain(&self.am).copied().collect()
    }
}

#[derive(Default)]
pub struct NaiveArc {
    t1: Vec<Key>,
    t2: Vec<Key>,
    b1: Vec<Key>,
    b2: Vec<Key>,
    p: f64,
    capacity: usize,
}

impl NaiveArc {
    pub fn new(pool: &PoolShape) -> Self {
        Self { capacity: pool.capacity as usize, ..Self::default() }
    }

    fn replace(&mut self, in_b2: bool, may_evict: &dyn Fn(Key) -> bool) -> Vec<Key> {
        let t1 = self.t1.len() as f64;
        let t1_first = !self.t1.is_empty() && (t1 > self.p || (in_b2 && t1 == self.p));
        let of_t1 = oldest(&self.t1, may_evict);
        let of_t2 = oldest(&self.t2, may_evict);
        let from_t1 = if t1_first { of_t1.is_some() } else { of_t2.is_none() };
        let victim = if from_t1 { of_t1 } else { of_t2 }.unwrap();
        let (list, ghosts) =
            if from_t1 { (&mut self.t1, &mut self.b1) } else { (&mut self.t2, &mut self.b2) };
        drop_from(list, victim);
        ghosts.push(victim);
        vec![victim]
    }
}

impl Naive for NaiveArc {
    fn hit(&mut self, key: Key) {
        drop_from(&mut self.t1, key);
        drop_from(&mut self.t2, key);
        self.t2.push(key);
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let c = self.capacity;
        let full = self.t1.len() + self.t2.len() == c;
        if full && !self.t1.iter().chain(&self.t2).any(|&other| may_evict(other)) {
            return None;
        }
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&key) || self.b2.contains(&key) {
            let in_b2 = self.b2.contains(&key);
            if in_b2 {
                self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
            } else {
                self.p = (self.p + (b2 / b1).max(1.0)).min(c as f64);
            }
            let left = if full { self.replace(in_b2, may_evict) } else { Vec::new() };
            drop_from(&mut self.b1, key);
            drop_from(&mut self.b2, key);
            self.t2.push(key);
            return Some(left);
        }
        let mut left = Vec::new();
        if self.t1.len() + self.b1.len() == c {
            if self.t1.len() < c {
                self.b1.remove(0);
                if full {
                    left = self.replace(false, may_evict);
                }
            } else {
                let victim = oldest(&self.t1, may_evict)?;
                drop_from(&mut self.t1, victim);
                left.push(victim);
            }
        } else if full {
            if self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() == 2 * c {
                self.b2.remove(0);
            }
            left = self.replace(false, may_evict);
        }
        self.t1.push(key);
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.t1.iter().chain(&self.t2).copied().collect()
    }
}

/// Keys with their uses; ghosts without.
pub struct NaiveS3Fifo {
    small: Vec<(Key, u32)>,
    main: Vec<(Key, u32)>,
    ghosts: Vec<Key>,
    most_small: usize,
    most_ghosts: usize,
    has_evicted: bool,
    capacity: usize,
}

impl NaiveS3Fifo {
    pub fn new(pool: &PoolShape, small: f64, ghost: f64) -> Self {
        Self {
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            most_small: (small * f64::from(pool.capacity)) as usize,
            most_ghosts: (ghost * f64::from(pool.capacity)) as usize,
            has_evicted: false,
            capacity: pool.capacity as usize,
        }
    }

    fn pop_main(&mut self, may_evict: &dyn Fn(Key) -> bool) -> Option<Key> {
        loop {
            let place = self.main.iter().position(|&(other, _)| may_evict(other))?;
            let (key, uses) = self.main.remove(place);
            if uses == 0 {
                return Some(key);
            }
            self.main.push((key, uses.min(3) - 1));
        }
    }

    fn pop_small(&mut self, may_evict: &dyn Fn(Key) -> bool) -> Option<Key> {
        loop {
            let place = self.small.iter().position(|&(other, _)| may_evict(other))?;
            let (key, uses) = self.small.remove(place);
            if uses < 2 {
                self.ghosts.push(key);
                if self.ghosts.len() > self.most_ghosts {
                    self.ghosts.remove(0);
                }
                return Some(key);
            }
            self.main.push((key, 0));
        }
    }
}

impl Naive for NaiveS3Fifo {
    fn hit(&mut self, key: Key) {
        for entry in self.small.iter_mut().chain(&mut self.main) {
            entry.1 += u32::from(entry.0 == key);
        }
    }

    fn admit(&mut self, key: Key, may_evict: &dyn Fn(Key) -> bool) -> Option<Vec<Key>> {
        let full = self.small.len() + self.main.len() == self.capacity;
        if full && !self.residents().into_iter().any(may_evict) {
            return None;
        }
        let ghost = drop_from(&mut self.ghosts, key);
        let mut left = Vec::new();
        while full && left.is_empty() {
            let main_may = self.main.iter().any(|&(other, _)| may_evict(other));
            let small_may = self.small.iter().any(|&(other, _)| may_evict(other));
            let main_first =
                self.main.len() > self.capacity - self.most_small || self.small.is_empty();
            let main = if main_first { main_may } else { !small_may };
            left.extend(if main { self.pop_main(may_evict) } else { self.pop_small(may_evict) });
        }
        let filling = !self.has_evicted && left.is_empty() && self.small.len() >= self.most_small;
        self.has_evicted |= !left.is_empty();
        if ghost || filling {
            self.main.push((key, 0));
        } else {
            self.small.push((key, 0));
        }
        Some(left)
    }

    fn residents(&self) -> BTreeSet<Key> {
        self.small.iter().chain(&self.main).map(|&(key, _)| key).collect()
    }
}
