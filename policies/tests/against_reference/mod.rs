//! Every policy against a naive reference written for clarity: the resident set after every
//! event, on random and looping sequences, in both scopes and both semantics.

mod harness;
mod maintenance;
mod naive_admission;
mod naive_basic;
mod naive_clocks_stacks;
mod naive_ghosts;
mod naive_learned;
mod naive_moe;
mod naive_pairs;
mod naive_scores;
mod naive_segments;
mod naive_slots;
mod naive_values;

use harness::{Naive, check_all, check_future};
use hotset_policies::{
    AnyPolicy, Arc, Car, Clock, Fifo, History, LeCar, LeCarConfig, Lfu, LfuDecay, LfuDecayConfig,
    Lirs, LirsConfig, Lru, LruK, LruKConfig, Mru, PolicySpec, Random, RandomConfig, S3Fifo,
    S3FifoConfig, Sieve, Slru, Slru50, SlruConfig, TwoQ, TwoQConfig, UseCounter, WTinyLfu,
    WTinyLfuConfig,
};
use hotset_policies::{ClassLru, ClassLruConfig, Dali, DaliConfig, FineMoe, FineMoeConfig};
use hotset_policies::{HeatLru, HeatLruConfig, LeastStale, Lfru, LfruClock, LfruConfig};
use hotset_policies::{MoeInfinity, Mrs, MrsConfig, Policy, PoolShape, Static};
use hotset_policies::{PageCache, PageCacheConfig, SemanticAge, SemanticAgeConfig};
use hotset_policies::{
    TdLogistic, TdLogisticConfig, TdPairs, TdPairsConfig, TdTable, TdTableConfig,
};
use naive_admission::{Guarded, NaiveBypass, NaiveTinyLfu, NaiveUploadCap};
use naive_basic::{NaiveBelady, NaiveClock, NaiveFifo, NaiveLfu, NaiveLru};
use naive_clocks_stacks::{NaiveCar, NaiveLirs};
use naive_ghosts::{NaiveArc, NaiveS3Fifo, NaiveTwoQ};
use naive_learned::{NaiveTdLogistic, NaiveTdTable};
use naive_moe::{NaiveClassLru, NaiveDali, NaiveHeatLru, NaiveLeastStale, NaiveLfru};
use naive_pairs::NaiveTdPairs;
use naive_scores::{NaiveFineMoe, NaiveMoeInfinity, NaiveMrs, NaiveSemantic, NaiveStatic};
use naive_segments::{NaiveMru, NaivePageCache, NaiveRandom, NaiveSieve, NaiveSlru, NaiveSlru50};
use naive_values::{
    NaiveLeCar, NaiveLowest, NaiveSketchedWTinyLfu, NaiveWTinyLfu, decayed, kth_last,
};

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
fn page_cache() {
    for (ratio, refault) in [(1, true), (3, false), (10, true)] {
        let config = PageCacheConfig { ratio, refault };
        check_all(
            |pool| PageCache::configured(pool, &config),
            |pool| NaivePageCache::new(pool, ratio, refault),
        );
    }
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
fn w_tinylfu_with_exact_counts() {
    for (window, sample) in [(0.01, 10.0), (0.3, 1.5)] {
        let counts = UseCounter::Exact;
        let config = WTinyLfuConfig { window, sample, counts, ..WTinyLfuConfig::default() };
        check_all(
            |pool| WTinyLfu::configured(pool, &config),
            |pool| NaiveWTinyLfu::new(pool, window, sample),
        );
    }
}

#[test]
fn class_lru() {
    for half_life in [1.0, 128.0] {
        let config = ClassLruConfig { half_life };
        check_all(|pool| ClassLru::new(pool, &config), |pool| NaiveClassLru::new(pool, half_life));
    }
}

#[test]
fn lfru() {
    for (clock, by_access) in [(LfruClock::Event, false), (LfruClock::Access, true)] {
        let config = LfruConfig { clock };
        check_all(|pool| Lfru::new(pool, &config), |pool| NaiveLfru::new(pool, by_access));
    }
}

#[test]
fn least_stale() {
    check_all(LeastStale::new, NaiveLeastStale::new);
}

#[test]
fn dali() {
    for (window, hot, each_layer) in [(8, 0.3, false), (8, 0.3, true), (256, 0.1, false)] {
        let config = DaliConfig { window, hot, each_layer };
        check_all(
            |pool| Dali::new(pool, &config),
            |pool| NaiveDali::new(pool, window as usize, hot, each_layer),
        );
    }
}

#[test]
fn w_tinylfu_with_a_sketch() {
    for (window, main_hits) in [(0.01, 32.0), (0.3, 1.5)] {
        let config = WTinyLfuConfig { window, main_hits, ..WTinyLfuConfig::default() };
        check_all(
            |pool| WTinyLfu::configured(pool, &config),
            |pool| NaiveSketchedWTinyLfu::new(pool, window, main_hits),
        );
    }
}

#[test]
fn lecar() {
    let config = LeCarConfig { seed: 3, ..LeCarConfig::default() };
    check_all(|pool| LeCar::configured(pool, &config), |pool| NaiveLeCar::new(pool, 3));
}

#[test]
fn heat_lru() {
    for max_uses in [1, 4] {
        let config = HeatLruConfig { max_uses };
        check_all(|pool| HeatLru::new(pool, &config), |pool| NaiveHeatLru::new(pool, max_uses));
    }
}

#[test]
fn moe_infinity() {
    check_all(MoeInfinity::new, NaiveMoeInfinity::new);
}

#[test]
fn semantic() {
    let config = SemanticAgeConfig { floor: 0.25, ..SemanticAgeConfig::default() };
    check_all(|pool| SemanticAge::new(pool, &config), NaiveLru::new);
    let profiled = |pool: &PoolShape| {
        let mut policy = SemanticAge::new(pool, &config);
        let uses = |key| (NaiveSemantic::expected(key) - 0.25) as f32;
        policy.set_profile(&(0..pool.keys).map(uses).collect::<Vec<_>>());
        policy
    };
    check_all(profiled, NaiveSemantic::new);
}

#[test]
fn mrs() {
    for alpha in [0.5, 1.0] {
        let config = MrsConfig { alpha };
        check_all(|pool| Mrs::new(pool, &config), |pool| NaiveMrs::new(pool, alpha));
    }
}

#[test]
fn finemoe() {
    for truncate in [false, true] {
        let config = FineMoeConfig { truncate };
        check_all(|pool| FineMoe::new(pool, &config), |pool| NaiveFineMoe::new(pool, truncate));
    }
}

#[test]
fn static_top() {
    let counts = |pool: &PoolShape| -> Vec<u64> {
        (0..u64::from(pool.keys)).map(|key| key * 5 % 7).collect()
    };
    check_all(
        |pool| Static::new(pool, &counts(pool)),
        |pool| NaiveStatic::new(pool, &counts(pool)),
    );
}

#[test]
fn td_table() {
    check_all(
        |pool| TdTable::new(pool, &TdTableConfig::default()),
        |pool| NaiveTdTable::new(pool, 0.85),
    );
}

#[test]
fn td_logistic() {
    check_all(
        |pool| TdLogistic::new(pool, &TdLogisticConfig::default()),
        |pool| NaiveTdLogistic::new(pool, 0.8, 0.01),
    );
}

#[test]
fn td_pairs() {
    check_all(|pool| TdPairs::new(pool, &TdPairsConfig::default()), NaiveTdPairs::new);
}

/// The policy of a pool as people name it, behind one type.
fn named(text: &str) -> impl Fn(&PoolShape) -> AnyPolicy {
    let spec: PolicySpec = text.parse().unwrap();
    move |pool| spec.build(pool).unwrap()
}

fn check_admissions<N: Naive>(policy: &str, naive: impl Fn(&PoolShape) -> N) {
    for cap in [1, 2] {
        check_all(named(&format!("{policy}+upload-cap:n={cap}")), |pool| {
            Guarded::new(pool, naive(pool), NaiveUploadCap::new(pool, cap))
        });
    }
    for sample in [1, 4] {
        check_all(named(&format!("{policy}+tinylfu:sample={sample}")), |pool| {
            Guarded::new(pool, naive(pool), NaiveTinyLfu::new(pool, sample))
        });
    }
    for every in [0, 3] {
        check_all(named(&format!("{policy}+bypass:every={every}")), |pool| {
            Guarded::new(pool, naive(pool), NaiveBypass::new(every))
        });
    }
}

#[test]
fn admissions_before_lru_and_clock() {
    check_admissions("lru", NaiveLru::new);
    check_admissions("clock", NaiveClock::new);
}

#[test]
fn admissions_before_lfu_and_two_q() {
    check_admissions("lfu", NaiveLfu::new);
    check_admissions("2q", NaiveTwoQ::new);
}
