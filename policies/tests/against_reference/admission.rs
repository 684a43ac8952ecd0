//! Admission rules in front of policies.

use hotset_policies::{AnyPolicy, PolicySpec, PoolShape};

use crate::harness::{Naive, check_all};
use crate::naive_admission::{Guarded, NaiveBypass, NaiveTinyLfu, NaiveUploadCap};
use crate::naive_basic::{NaiveClock, NaiveLfu, NaiveLru};
use crate::naive_ghosts::NaiveTwoQ;

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
