//! Every order in which the threads' loads and stores can fall, by loom: run by `.ci/loom`.
//!
//! Each model plans on its first thread. Where nothing else is said, the cache has two layers of two
//! experts and as many slots as its model takes.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use super::{FetchState, Residency, SharedCache, Ticket};
use crate::{Action, ExpertCache, Lru, Slots};

fn cache(slots: u32) -> SharedCache<Lru> {
    let slots = Slots::Global(slots);
    let cache = ExpertCache::new(&[2, 2], &[1, 1], &slots, |_, pool| Lru::new(pool));
    SharedCache::new(cache.unwrap())
}

fn only_ticket(cache: &mut SharedCache<Lru>, layer: usize, expert: u8) -> Ticket {
    let plan = cache.demand(layer, &[expert]);
    let tickets: Vec<Ticket> = plan.copies().map(|(_, ticket)| ticket).collect();
    assert_eq!(tickets.len(), 1);
    tickets[0]
}

fn completing(residency: &Residency, ticket: Ticket) -> thread::JoinHandle<bool> {
    let residency = residency.clone();
    thread::spawn(move || residency.complete(ticket))
}

#[test]
fn who_finds_a_slot_finds_the_copy() {
    loom::model(|| {
        let mut cache = cache(1);
        let residency = cache.residency();
        let ticket = only_ticket(&mut cache, 0, 1);
        let memory = Arc::new(AtomicU32::new(0));
        let copier = {
            let (memory, residency) = (Arc::clone(&memory), residency.clone());
            thread::spawn(move || {
                memory.store(7, Relaxed);
                assert!(residency.complete(ticket));
            })
        };
        let reader = {
            let (memory, residency) = (Arc::clone(&memory), residency.clone());
            thread::spawn(move || {
                if residency.slot_of(0, 1).is_some() {
                    assert_eq!(memory.load(Relaxed), 7);
                }
                assert!(residency.is_resident(0, 1));
            })
        };
        // The planner too, if it is told of a hit.
        if cache.demand(0, &[1u8]).plan.hits == 1 {
            assert_eq!(memory.load(Relaxed), 7);
        }
        copier.join().unwrap();
        reader.join().unwrap();
        assert_eq!(residency.slot_of(0, 1), Some(0));
    });
}

#[test]
fn no_completion_is_lost_while_the_planner_plans() {
    loom::model(|| {
        let mut cache = cache(2);
        let residency = cache.residency();
        let tickets = [only_ticket(&mut cache, 0, 0), only_ticket(&mut cache, 1, 1)];
        let copiers = tickets.map(|ticket| completing(&residency, ticket));
        // Each may be taken in before either demand, or after.
        let first = cache.demand(0, &[0u8]).plan.hits;
        let again = cache.demand(0, &[0u8]).plan.hits;
        assert!(again >= first);
        for copier in copiers {
            assert!(copier.join().unwrap());
        }
        assert_eq!((cache.demand(0, &[0u8]).plan.hits, cache.demand(1, &[1u8]).plan.hits), (1, 1));
        assert_eq!(cache.validate(), Ok(()));
    });
}

#[test]
fn a_fetch_that_was_taken_back_cannot_complete_the_next_one() {
    loom::model(|| {
        let mut cache = cache(1);
        let residency = cache.residency();
        let old = cache.prefetch(0, &[0u8]).copies().next().unwrap().1;
        let copier = completing(&residency, old);
        assert!(cache.discard(0, 0));
        let new = cache.prefetch(0, &[0u8]).copies().next().unwrap().1;
        assert_ne!(old, new);
        assert_eq!(residency.state(old), FetchState::Dropped);
        assert_eq!(residency.state(new), FetchState::InFlight);
        assert_eq!(cache.demand(0, &[0u8]).plan.placements[0].action, Action::Pending);
        // Whether it came in time or not, it is of the old fetch.
        copier.join().unwrap();
        assert_eq!((residency.state(new), residency.slot_of(0, 0)), (FetchState::InFlight, None));
        assert!(residency.complete(new) && !residency.complete(old));
        assert_eq!(cache.demand(0, &[0u8]).plan.hits, 1);
        assert_eq!(cache.validate(), Ok(()));
    });
}

#[test]
fn a_fetch_completes_once() {
    loom::model(|| {
        let mut cache = cache(1);
        let residency = cache.residency();
        let ticket = only_ticket(&mut cache, 0, 0);
        let copiers = [completing(&residency, ticket), completing(&residency, ticket)];
        let times = copiers.map(|copier| u32::from(copier.join().unwrap())).iter().sum::<u32>();
        assert_eq!((times, cache.demand(0, &[0u8]).plan.hits), (1, 1));
        assert_eq!(cache.validate(), Ok(()));
    });
}

#[test]
fn a_slot_is_never_told_of_two_experts() {
    loom::model(|| {
        let mut cache = cache(1);
        let residency = cache.residency();
        let first = only_ticket(&mut cache, 0, 0);
        assert!(residency.complete(first));
        let reader = {
            let residency = residency.clone();
            thread::spawn(move || {
                // The later first: once its slot is found, whoever was there before is gone.
                let later = residency.slot_of(1, 1);
                (later, residency.slot_of(0, 0))
            })
        };
        cache.release(0);
        let second = only_ticket(&mut cache, 1, 1);
        assert!(residency.complete(second) && !residency.complete(first));
        let (later, before) = reader.join().unwrap();
        assert!(later.is_none() || before.is_none(), "{later:?} {before:?}");
        assert_eq!((residency.slot_of(0, 0), residency.slot_of(1, 1)), (None, Some(0)));
    });
}
