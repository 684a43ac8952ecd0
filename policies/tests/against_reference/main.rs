//! Every policy against a naive reference written for clarity: the resident set after every
//! event, on random and looping sequences, in both scopes and both semantics.

mod admission;
mod harness;
mod maintenance;
mod moe;
mod naive_admission;
mod naive_basic;
mod naive_clocks_stacks;
mod naive_ghosts;
mod naive_moe;
mod naive_segments;
mod naive_values;

use harness::{check_all, check_future};
use hotset_policies::{
    Arc, Car, Clock, Fifo, History, LeCar, LeCarConfig, Lfu, LfuDecay, LfuDecayConfig, Lirs,
    LirsConfig, Lru, LruK, LruKConfig, Mru, Random, RandomConfig, S3Fifo, S3FifoConfig, Sieve,
    Slru, Slru50, SlruConfig, TwoQ, TwoQConfig, WTinyLfu, WTinyLfuConfig,
};
use naive_basic::{NaiveBelady, NaiveClock, NaiveFifo, NaiveLfu, NaiveLru};
use naive_clocks_stacks::{NaiveCar, NaiveLirs};
use naive_ghosts::{NaiveArc, NaiveS3Fifo, NaiveTwoQ};
use naive_segments::{NaiveMru, NaiveRandom, NaiveSieve, NaiveSlru, NaiveSlru50};
use naive_values::{NaiveLeCar, NaiveLowest, NaiveWTinyLfu, decayed, kth_last};

#[test]
fn lru() {
    check_all(Lru::new, NaiveLru::new);
}

#[test]
fn fifo() {
    check_all(Fifo::new, NaiveFifo::new);
}

#[test]
fn clock() {
    check_all(Clock::new, NaiveClock::new);
}

#[test]
fn lfu() {
    check_all(Lfu::new, NaiveLfu::new);
}

#[test]
fn belady() {
    check_future(NaiveBelady::new);
}

#[test]
fn mru() {
    check_all(Mru::new, NaiveMru::new);
}

#[test]
fn random() {
    let config = RandomConfig { seed: 5 };
    check_all(|pool| Random::configured(pool, &config), |pool| NaiveRandom::new(pool, 5));
}

#[test]
fn slru() {
    for segments in [2, 4] {
        let config = SlruConfig { segments };
        check_all(
            |pool| Slru::configured(pool, &config),
            |pool| NaiveSlru::new(pool, segments as usize),
        );
    }
}

#[test]
fn slru_50() {
    check_all(Slru50::new, NaiveSlru50::new);
}

#[test]
fn two_q() {
    let config = TwoQConfig::default();
    check_all(|pool| TwoQ::configured(pool, &config), NaiveTwoQ::new);
}

#[test]
fn arc() {
    check_all(Arc::new, NaiveArc::new);
}

#[test]
fn s3_fifo() {
    // The default's small queue has no slot in pools as small as these.
    for (small, ghost) in [(0.1, 0.9), (0.4, 0.6)] {
        let config = S3FifoConfig { small, ghost };
        check_all(
            |pool| S3Fifo::configured(pool, &config),
            |pool| NaiveS3Fifo::new(pool, small, ghost),
        );
    }
}

#[test]
fn sieve() {
    check_all(Sieve::new, NaiveSieve::new);
}

#[test]
fn car() {
    check_all(Car::new, NaiveCar::new);
}

#[test]
fn lirs() {
    for hirs in [0.01, 0.4] {
        let config = LirsConfig { hirs };
        check_all(|pool| Lirs::configured(pool, &config), |pool| NaiveLirs::new(pool, hirs));
    }
}

#[test]
fn lru_k() {
    for (k, history) in [(2, History::Kept), (2, History::Forgotten), (3, History::Kept)] {
        let config = LruKConfig { k, history };
        check_all(
            |pool| LruK::configured(pool, &config),
            |pool| NaiveLowest::new(pool, history == History::Kept, kth_last(k as usize)),
        );
    }
}

#[test]
fn lfu_decay() {
    for (half_life, history) in [(3.3, History::Kept), (0.7, History::Forgotten)] {
        let config = LfuDecayConfig { half_life, history };
        check_all(
            |pool| LfuDecay::configured(pool, &config),
            |pool| {
                let uses = half_life * f64::from(pool.keys_per_token);
                NaiveLowest::new(pool, history == History::Kept, decayed(uses))
            },
        );
    }
}

#[test]
fn w_tinylfu() {
    for (window, sample) in [(0.01, 10.0), (0.3, 1.5)] {
        let config = WTinyLfuConfig { window, sample, ..WTinyLfuConfig::default() };
        check_all(
            |pool| WTinyLfu::configured(pool, &config),
            |pool| NaiveWTinyLfu::new(pool, window, sample),
        );
    }
}

#[test]
fn lecar() {
    let config = LeCarConfig { seed: 3, ..LeCarConfig::default() };
    check_all(|pool| LeCar::configured(pool, &config), |pool| NaiveLeCar::new(pool, 3));
}
