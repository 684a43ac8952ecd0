//! Hand-worked cases under both rules.

use super::*;
use crate::Anyone;

fn lists(cache: &WTinyLfu) -> [Vec<Key>; 3] {
    [WINDOW, PROBATION, PROTECTED].map(|list| cache.queues.iter(list).collect())
}

#[test]
fn the_main_cache_takes_only_what_is_used_more() {
    // Four slots: one for the window, three for the main cache, two of them protected.
    let config = WTinyLfuConfig { counts: UseCounter::Exact, ..WTinyLfuConfig::default() };
    let mut cache = WTinyLfu::configured(&PoolShape::flat(4, 9), &config);
    for key in [0, 1, 2, 3] {
        assert!(cache.admit(key, &mut Anyone)); // what the window cannot hold is on probation
    }
    assert_eq!(lists(&cache), [vec![3], vec![2, 1, 0], vec![]]);
    cache.hit(0); // protected
    assert!(cache.admit(4, &mut Anyone)); // 3 and 1 have one use each: 3 leaves
    assert_eq!(lists(&cache), [vec![4], vec![2, 1], vec![0]]);
    cache.hit(4); // two uses: now it beats 1
    assert!(cache.admit(5, &mut Anyone));
    assert_eq!(lists(&cache), [vec![5], vec![4, 2], vec![0]]);
    assert_eq!(cache.validate(), Ok(()));
}

#[test]
fn counts_are_halved_after_a_sample_and_then_after_half() {
    let config =
        WTinyLfuConfig { counts: UseCounter::Exact, sample: 2.0, ..WTinyLfuConfig::default() };
    let mut cache = WTinyLfu::configured(&PoolShape::flat(4, 9), &config);
    assert!(cache.admit(0, &mut Anyone));
    (0..6).for_each(|_| cache.hit(0));
    assert_eq!(cache.filter.count(0), 7);
    cache.hit(0); // the eighth use of a sample of eight
    assert_eq!(cache.filter.count(0), 4);
    (0..4).for_each(|_| cache.hit(0)); // half a sample later
    assert_eq!(cache.filter.count(0), 4);
}

/// UseCounter of keys that matter are in the comments, as key:count.
#[test]
fn with_a_sketch_the_window_fills_the_main_cache_and_a_hit_may_make_room() {
    // One slot for the window, three for the main cache: two protected, and one left over, as
    // floor(3 x 0.2) = 0 are for probation.
    let mut cache = WTinyLfu::configured(&PoolShape::flat(4, 9), &WTinyLfuConfig::default());
    for key in [0, 1, 2, 3] {
        assert!(cache.admit(key, &mut Anyone));
    }
    assert_eq!(lists(&cache), [vec![3, 2, 1, 0], vec![], vec![]]);
    // 0 and 1 fill the protected, 2:2 takes what is left over and stays against 3:1.
    assert!(cache.admit(4, &mut Anyone));
    assert_eq!(lists(&cache), [vec![4], vec![2], vec![1, 0]]);
    cache.hit(2); // 0 cools into probation, which is too long
    assert_eq!(lists(&cache), [vec![4], vec![0], vec![2, 1]]);
    assert!(cache.admit(5, &mut Anyone)); // 0 leaves, nobody is judged
    assert_eq!(lists(&cache), [vec![5, 4], vec![], vec![2, 1]]);
    assert!(cache.admit(6, &mut Anyone)); // 4:2 takes the slot and stays against 5:1
    assert_eq!(lists(&cache), [vec![6], vec![4], vec![2, 1]]);
    assert_eq!(cache.validate(), Ok(()));
}

#[test]
fn a_sketch_counts_admissions_judgements_and_main_hits_and_is_halved_by_these() {
    let config = WTinyLfuConfig { main_hits: 1.0, ..WTinyLfuConfig::default() };
    let mut cache = WTinyLfu::configured(&PoolShape::flat(4, 9), &config);
    for key in [0, 1, 2, 3] {
        assert!(cache.admit(key, &mut Anyone));
    }
    cache.hit(0); // in the window
    assert_eq!(cache.filter.count(0), 1);
    assert!(cache.admit(4, &mut Anyone)); // 1, 2 and 0 fill the main cache
    assert_eq!(cache.filter.count(0), 2);
    cache.hit(1);
    cache.hit(1);
    assert_eq!(cache.filter.count(1), 4);
    cache.hit(1); // the third hit in a main cache of three
    assert_eq!(cache.filter.count(1), 2);
}
