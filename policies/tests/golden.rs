//! Golden miss counts of unit-size caches (sequential semantics), from `../shared/golden`.
//! The figures' source and their standing are in its README: libCacheSim 0.3.5.

#[path = "golden/quirks.rs"]
mod quirks;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotset_policies::{
    Anyone, Belady, Car, Clock, Fifo, Future, Key, LeCar, Lfu, Lirs, Lru, Mru, Policy, PoolShape,
    S3Fifo, Sieve, Slru, TwoQ, WTinyLfu,
};

const SEQUENCES: [&str; 4] = ["moe_global", "moe_layer17", "zipf", "loopscan"];

/// The folder of golden counts; `None`, loudly, where this checkout has no `shared` beside it.
fn golden_folder() -> Option<PathBuf> {
    let shared = std::env::var_os("HOTSET_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let golden = shared.join("golden");
    if golden.is_dir() {
        return Some(golden);
    }
    assert!(std::env::var_os("CI").is_none(), "CI has no {}", golden.display());
    // Not eprintln!: the test runner would keep that to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is absent", golden.display());
    None
}

fn misses<P: Policy>(mut policy: P, accesses: &[Key]) -> u64 {
    let mut misses = 0;
    for &key in accesses {
        if policy.contains(key) {
            policy.hit(key);
        } else {
            misses += 1;
            policy.admit(key, &mut Anyone);
        }
    }
    assert_eq!(policy.validate(), Ok(()));
    misses
}

/// Compares every row of `name` in every sequence; `allowed` is the relative difference that the
/// README grants (0 for exact).
fn check<P: Policy>(name: &str, allowed: f64, policy: impl Fn(&PoolShape, &Arc<Future>) -> P) {
    check_each(name, |_| allowed, policy);
}

/// The same with the difference granted at each number of slots.
fn check_each<P: Policy>(
    name: &str,
    allowed: impl Fn(u32) -> f64,
    policy: impl Fn(&PoolShape, &Arc<Future>) -> P,
) {
    let mut sequence = (Vec::new(), 0, None);
    for_each_row(name, |accesses, capacity, expected| {
        if sequence.0 != accesses {
            let keys = accesses.iter().max().unwrap() + 1;
            let future = Arc::new(Future::new(accesses.to_vec(), keys).unwrap());
            sequence = (accesses.to_vec(), keys, Some(future));
        }
        let (_, keys, future) = &sequence;
        let policy = policy(&PoolShape::flat(capacity, *keys), future.as_ref().unwrap());
        let found = misses(policy, accesses);
        let allowed = allowed(capacity) * expected as f64;
        (found.abs_diff(expected) as f64 <= allowed, found)
    });
}

/// Hands `test` each row of `name`: accesses, slots, misses. It answers whether all is well, and
/// how many misses it found.
fn for_each_row(name: &str, mut test: impl FnMut(&[Key], u32, u64) -> (bool, u64)) {
    let Some(golden) = golden_folder() else { return };
    let mut rows = 0;
    let mut wrong = Vec::new();
    for sequence in SEQUENCES {
        let text = std::fs::read_to_string(golden.join(format!("{sequence}.txt"))).unwrap();
        let accesses: Vec<Key> = text.lines().map(|line| line.parse().unwrap()).collect();
        let table = std::fs::read_to_string(golden.join(format!("{sequence}.csv"))).unwrap();
        for row in table.lines().map(|line| line.split(',').collect::<Vec<_>>()) {
            if row[0] != name {
                continue;
            }
            let (capacity, requests, expected): (u32, u64, u64) =
                (row[1].parse().unwrap(), row[2].parse().unwrap(), row[3].parse().unwrap());
            assert_eq!(requests, accesses.len() as u64);
            let (well, found) = test(&accesses, capacity, expected);
            if !well {
                wrong.push(format!("{capacity} slots on {sequence}: {found}, golden {expected}"));
            }
            rows += 1;
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    assert!(rows >= 12, "{name} has only {rows} golden rows");
}

/// libCacheSim's own rules where hotset's are others; `get` says whether it was a hit.
fn check_quirks<C>(name: &str, new: impl Fn(u32) -> C, get: impl Fn(&mut C, Key) -> bool) {
    for_each_row(name, |accesses, capacity, expected| {
        let mut cache = new(capacity);
        let found = accesses.iter().filter(|&&key| !get(&mut cache, key)).count() as u64;
        (found == expected, found)
    });
}

#[test]
fn fifo() {
    check("FIFO", 0.0, |pool, _| Fifo::new(pool));
}

#[test]
fn lru() {
    check("LRU", 0.0, |pool, _| Lru::new(pool));
}

#[test]
fn lfu() {
    check("LFU", 0.0, |pool, _| Lfu::new(pool));
}

#[test]
fn clock() {
    check("Clock", 0.0, |pool, _| Clock::new(pool));
}

#[test]
fn belady() {
    check("Belady", 0.0, |pool, future| Belady::<false>::new(pool, Arc::clone(future)));
}

#[test]
fn mru() {
    check("MRU", 0.0, |pool, _| Mru::new(pool));
}

#[test]
fn slru() {
    // Where four does not divide the slots, libCacheSim evicts on hits; quirks.rs has its rule.
    let allowed = |slots| if slots % 4 == 0 { 0.0 } else { 0.003 };
    check_each("SLRU", allowed, |pool, _| Slru::configured(pool, &Default::default()));
}

#[test]
fn two_q() {
    check("TwoQ", 0.0, |pool, _| TwoQ::configured(pool, &Default::default()));
}

#[test]
fn arc() {
    check("ARC", 0.0, |pool, _| hotset_policies::Arc::new(pool));
}

#[test]
fn s3_fifo() {
    check("S3FIFO", 0.0, |pool, _| S3Fifo::configured(pool, &Default::default()));
}

#[test]
fn sieve() {
    check("SIEVE", 0.0, |pool, _| Sieve::new(pool));
}

/// Equal but for one rule; a hit that evicts moves the counts by a hundredth at most.
#[test]
fn lirs() {
    check("LIRS", 0.01, |pool, _| Lirs::configured(pool, &Default::default()));
}

/// Three rules apart, and up to an eighth: the paper's is held by its reference alone.
#[test]
fn car() {
    check("CAR", 0.14, |pool, _| Car::new(pool));
}

/// libCacheSim's rules, but that what a hit evicts there leaves here at the next miss.
#[test]
fn w_tinylfu() {
    check("W-TinyLFU", 0.02, |pool, _| WTinyLfu::configured(pool, &Default::default()));
}

#[test]
fn lecar() {
    check("LeCaR", 0.03, |pool, _| LeCar::configured(pool, &Default::default()));
}

#[test]
fn libcachesims_own_rules_give_its_counts() {
    check_quirks("SLRU", quirks::Slru::new, quirks::Slru::get);
    check_quirks("CAR", quirks::Car::new, quirks::Car::get);
    check_quirks("LIRS", quirks::Lirs::new, quirks::Lirs::get);
    check_quirks("W-TinyLFU", quirks::WTinyLfu::new, quirks::WTinyLfu::get);
}
