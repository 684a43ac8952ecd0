//! Bounds that every built-in link keeps, whatever the size and the count.
//!
//! Prices rest on them: serial is never under a timeline, a timeline never under perfect. They hold by construction
//! for a fixed cost and a rate; measured curves are noisy and keep them because profiles are checked for it.

use hotset_cost_models::{Link, builtin_links};
use proptest::prelude::*;

proptest! {
    #[test]
    fn queue_burst_and_copies_alone_are_ordered(bytes in 1u64..1 << 30, n in 1u32..200) {
        for link in builtin_links() {
            let alone = link.transfer_ps(bytes) * u64::from(n);
            let (burst, demand) = (link.burst_ps(bytes, n), link.demand_ps(bytes, n));
            // Rounding to a picosecond a transfer is all that may come between them.
            let slack = u64::from(n);
            prop_assert!(burst <= alone + slack, "{}: {burst} over {alone}", link.name);
            prop_assert!(burst <= demand);
            prop_assert!(demand <= link.demand_ps(bytes, 1) * u64::from(n) + slack);
            prop_assert!(link.queued_ps(bytes) * u64::from(n) <= demand + slack);
        }
    }

    #[test]
    fn nothing_falls_with_size_or_count(a in 1u64..1 << 30, b in 1u64..1 << 30, m in 1u32..40, n in 1u32..40) {
        for link in builtin_links() {
            let (small, large, few, many) = (a.min(b), a.max(b), m.min(n), m.max(n));
            prop_assert!(link.burst_ps(small, few) <= link.burst_ps(large, many), "{}", link.name);
            prop_assert!(link.demand_ps(small, few) <= link.demand_ps(large, many), "{}", link.name);
        }
    }
}

#[test]
fn every_builtin_survives_toml() {
    for link in builtin_links() {
        assert_eq!(Link::from_toml_str(&link.to_toml().unwrap()).unwrap(), link);
    }
}
