//! The eviction policies, one file each, by family.
//!
//! To add one: write its file, with an `impl Listed`, and give it a line below. The line makes the
//! module and exports its public items. (Files that a macro names are not seen by `cargo fmt`:
//! `rustfmt --edition 2024 policies/src/eviction/*/{,*/}*.rs` formats them, and a test checks it.)

use crate::admission::AdmissionSpec;
use crate::placement::PlacementSpec;
use crate::policy::PoolShape;
use crate::registry::{
    Bound, Config, GivenPolicy, Listed, NoConfig, PolicyError, PolicyInfo, Trained, Visitor,
    nearest, policies, read_config,
};

// In the order in which `hotset policies` lists them.
policies! {
    online:
        lru::Lru at "recency/lru.rs",
        mru::Mru at "recency/mru.rs",
        fifo::Fifo at "recency/fifo.rs",
        clock::Clock at "recency/clock.rs",
        random::Random at "recency/random.rs",
        page_cache::PageCache at "recency/page_cache.rs",
        lfu::Lfu at "frequency/lfu.rs",
        lfu_decay::LfuDecay at "frequency/lfu_decay.rs",
        lru_k::LruK at "recency/lru_k.rs",
        slru::Slru at "segments/slru.rs",
        slru_50::Slru50 at "segments/slru_50.rs",
        two_q::TwoQ at "segments/two_q.rs",
        arc::Arc at "segments/arc.rs",
        car::Car at "segments/car.rs",
        lirs::Lirs at "segments/lirs/mod.rs",
        s3_fifo::S3Fifo at "segments/s3_fifo.rs",
        sieve::Sieve at "recency/sieve.rs",
        w_tinylfu::WTinyLfu at "segments/w_tinylfu/mod.rs",
        lecar::LeCar at "learned/lecar.rs",
        class_lru::ClassLru at "moe/class_lru.rs",
        lfru::Lfru at "moe/lfru.rs",
        least_stale::LeastStale at "moe/least_stale.rs",
        dali::Dali at "moe/dali.rs",
        heat_lru::HeatLru at "moe/heat_lru.rs",
        moe_infinity::MoeInfinity at "moe/moe_infinity.rs",
        mrs::Mrs at "moe/mrs.rs",
        finemoe::FineMoe at "moe/finemoe.rs",
        semantic_age::SemanticAge at "moe/semantic_age.rs",
        td_table::TdTable at "learned/td_table/mod.rs",
        td_logistic::TdLogistic at "learned/td_logistic/mod.rs",
        td_pairs::TdPairs at "learned/td_pairs/mod.rs";
    trained:
        static_top::Static at "learned/static_top.rs";
    bounds:
        belady::Belady at "bounds/belady.rs",
        belady_bypass::BeladyBypass at "bounds/belady_bypass.rs";
}
