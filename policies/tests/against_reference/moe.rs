//! The policies that come from MoE systems, and those that learn, against their references.

use hotset_policies::{ClassLru, ClassLruConfig, Dali, DaliConfig, FineMoe, FineMoeConfig};
use hotset_policies::{HeatLru, HeatLruConfig, LeastStale, Lfru, LfruClock, LfruConfig};
use hotset_policies::{MoeInfinity, Mrs, MrsConfig, PoolShape, Static};
use hotset_policies::{TdLogistic, TdLogisticConfig, TdTable, TdTableConfig};

use crate::harness::check_all;
use crate::naive_moe::{NaiveClassLru, NaiveDali, NaiveFineMoe, NaiveHeatLru, NaiveLeastStale};
use crate::naive_moe::{NaiveLfru, NaiveMoeInfinity, NaiveMrs, NaiveStatic};
use crate::naive_moe::{NaiveTdLogistic, NaiveTdTable};

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
