//! What an engine does beside demands, to every policy of the registry: slots are invalidated,
//! taken away and given back, and some keys may not leave.

use std::collections::BTreeSet;

use hotset_policies::{Bound, Event, Key, POLICIES, Policy, PolicySpec, PoolShape, Room, Visitor};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const KEYS: u32 = 14;

#[derive(Debug, Clone)]
enum Change {
    /// Access a key while others, a bit each, may not leave.
    Use(Key, u32),
    /// The slot of the resident with this number, modulo how many there are, is invalidated.
    Invalidate(usize),
    /// The pool is resized, while some may not leave.
    Resize(u32, u32),
}

/// Notes who leaves, and refuses those that may not.
struct Busy {
    busy: u32,
    left: Vec<Key>,
}

impl Room for Busy {
    fn may_evict(&self, key: Key) -> bool {
        self.busy >> key & 1 == 0
    }

    fn evict(&mut self, key: Key) {
        assert!(self.may_evict(key), "{key} was evicted, but may not leave");
        self.left.push(key);
    }
}

struct Drive<'a>(&'a [Change]);

impl Visitor for Drive<'_> {
    type Output = ();

    fn online<P: Policy + Send>(self, build: impl Fn(&PoolShape) -> P) {
        let mut capacity = 5;
        let mut policy = build(&PoolShape::flat(capacity, KEYS));
        let mut residents: BTreeSet<Key> = BTreeSet::new();
        for change in self.0 {
            if let Change::Use(key, _) = *change
                && P::OBSERVES
            {
                policy.begin_step(1);
                policy.begin_event(&Event { layer: 0, keys: &[key], weights: &[0.5] });
            }
            match *change {
                Change::Use(key, _) if residents.contains(&key) => policy.hit(key),
                Change::Use(key, busy) => {
                    let mut room = Busy { busy: busy & !(1 << key), left: Vec::new() };
                    let stuck = residents.iter().all(|&other| !room.may_evict(other));
                    let full = residents.len() as u32 == capacity;
                    let admitted = policy.admit(key, &mut room);
                    assert_eq!(admitted, !(full && stuck));
                    assert!(admitted || room.left.is_empty());
                    for left in room.left {
                        assert!(residents.remove(&left), "{left} left, but was not in");
                    }
                    residents.extend(admitted.then_some(key));
                }
                Change::Invalidate(number) => {
                    if let Some(&key) = residents.iter().nth(number % residents.len().max(1)) {
                        policy.remove(key);
                        residents.remove(&key);
                    }
                }
                Change::Resize(to, busy) => {
                    let mut room = Busy { busy, left: Vec::new() };
                    while policy.len() > to && policy.evict_one(&mut room) {}
                    for left in room.left {
                        assert!(residents.remove(&left), "{left} left, but was not in");
                    }
                    capacity = to.max(policy.len());
                    policy.set_capacity(capacity);
                }
            }
            assert_eq!(policy.validate(), Ok(()), "after {change:?}");
            let found: BTreeSet<Key> = (0..KEYS).filter(|&key| policy.contains(key)).collect();
            assert_eq!(found, residents, "after {change:?}");
            assert_eq!(policy.len() as usize, residents.len());
        }
    }

    fn offline(self, _: Bound) {}

    // What was chosen beforehand is admitted or not by that choice, not by room.
    fn trained<P: Policy + Send>(self, _: impl Fn(&PoolShape, &[u64]) -> P) {}
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        16 => (0..KEYS, any::<u32>(), any::<u32>()).prop_map(|(key, a, b)| Change::Use(key, a & b)),
        4 => (0..4u32).prop_map(|key| Change::Use(key, 0)),
        1 => any::<usize>().prop_map(Change::Invalidate),
        1 => (0..=KEYS, any::<u32>(), any::<u32>()).prop_map(|(to, a, b)| Change::Resize(to, a & b)),
    ];
    prop::collection::vec(change, 1..200)
}

#[test]
fn every_policy_survives_invalidated_and_resized_slots() {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    for info in POLICIES {
        let spec: PolicySpec = info.name.parse().unwrap();
        TestRunner::new(config.clone())
            .run(&changes(), |changes| {
                spec.visit(Drive(&changes));
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{}: {failure}", info.name));
    }
}
