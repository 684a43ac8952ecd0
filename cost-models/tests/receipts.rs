//! Published figures that the cost model must reproduce by calculation.
//!
//! Each test carries the inputs and the figure, so that it runs alone; where the shared folder is there, the
//! figure and its tolerance are read from `receipts/seeds.toml` as well and must be the ones written here.

use hotset_cost_models::price::{host_share, hybrid_pays};
use hotset_cost_models::{Link, MIB, Picos, TokenShape, TokenTimes, find_link};

/// 40 layers, top-8, 1.6875 MiB an expert.
const A3B: TokenShape = TokenShape { layers: 40, top_k: 8, expert_bytes: 27 * MIB / 16 };
/// LRU at 64 experts a layer hits so much; the cross-layer predictor so much, moving so many times what LRU moves.
const LRU_HIT: f64 = 0.764;
const CROSS_LAYER_HIT: f64 = 0.888;
const CROSS_LAYER_MOVED: f64 = 8.49;

/// Asserts that a calculated figure is the published one, and that both agree with the seeds when they are there.
#[track_caller]
fn receipt(id: &str, path: &str, calculated: f64, published: f64, tolerance: f64) {
    let error = (calculated - published).abs() / published;
    assert!(error <= tolerance, "{id}: calculated {calculated}, published {published}");
    let Some(seeds) = crate::shared::seeds() else { return };
    let entry = seeds.iter().find(|entry| entry["id"].as_str() == Some(id)).expect(id);
    let value = path.split('.').filter(|key| !key.is_empty()).fold(&entry["value"], |v, k| &v[k]);
    let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    assert_eq!(number, Some(published), "{id} {path} is copied wrongly");
    assert_eq!(entry["tolerance"].as_float(), Some(tolerance), "{id} tolerance");
}

fn links() -> (Link, Link) {
    (find_link("zgx-pcie").unwrap(), find_link("zgx-c2c").unwrap())
}

fn ms_per_mib(link: &Link) -> f64 {
    link.transfer(MIB).as_ms_f64()
}

#[test]
fn h1_rates_come_out_of_the_measured_inputs() {
    let (pcie, c2c) = links();
    receipt("h1-pcie-rate", "", ms_per_mib(&pcie), 0.065625, 0.001);
    receipt("h1-c2c-rate", "", ms_per_mib(&c2c), 0.0026875, 0.001);
    // "about 365 GiB/s"
    assert!((c2c.rate_gib_s(MIB) - 363.4).abs() < 0.1);
}

#[test]
fn h1_share_of_each_token_spent_moving() {
    let (pcie, c2c) = links();
    // 5 GiB offloaded, 8 of 256 experts a layer: 160 MiB a token.
    let share = |link: &Link| {
        let compute = link.compute_per_token.unwrap();
        TokenTimes { compute, demand: link.transfer(160 * MIB), ..Default::default() }
            .moving_share()
    };
    receipt("h1-share", "pcie", share(&pcie), 0.743, 0.01);
    receipt("h1-share", "c2c", share(&c2c), 0.113, 0.01);
}

#[test]
fn h2_lru_and_cross_layer() {
    let (pcie, c2c) = links();
    let lru = 1.0 - LRU_HIT;
    receipt("h2-lru-ms", "pcie_ms", A3B.moved_ms(lru, &pcie), 8.35, 0.01);
    receipt("h2-lru-ms", "c2c_ms", A3B.moved_ms(lru, &c2c), 0.34, 0.01);
    let moved = CROSS_LAYER_MOVED * lru;
    receipt("h2-cross-layer-ms", "pcie_ms", A3B.moved_ms(moved, &pcie), 70.9, 0.01);
    receipt("h2-cross-layer-ms", "c2c_ms", A3B.moved_ms(moved, &c2c), 2.90, 0.01);
}

#[test]
fn h2_perfect_overlap() {
    let (pcie, c2c) = links();
    let times = |link: &Link| {
        let demand = A3B.moved(1.0 - CROSS_LAYER_HIT, link);
        let moved = A3B.moved(CROSS_LAYER_MOVED * (1.0 - LRU_HIT), link);
        let prefetch = moved.saturating_sub(demand);
        TokenTimes { compute: link.compute_per_token.unwrap(), demand, prefetch }
    };
    let exposed =
        |times: TokenTimes| times.prefetch_hidden().saturating_sub(times.compute + times.demand);
    let over_c2c = times(&c2c);
    receipt("h2-perfect-overlap", "c2c_prefetch_ms", over_c2c.prefetch.as_ms_f64(), 2.74, 0.01);
    assert_eq!(exposed(over_c2c), Picos::ZERO, "c2c_prefetch_exposed_ms");
    assert!(exposed(times(&pcie)).as_ms_f64() >= 63.0, "pcie_exposed_ms_at_least");
}

#[test]
fn h2_value_of_a_point_of_hit_rate() {
    let (pcie, c2c) = links();
    receipt("h2-point-value", "pcie_ms", A3B.point_value_ms(&pcie), 0.353, 0.01);
    receipt("h2-point-value", "c2c_ms", A3B.point_value_ms(&c2c), 0.0144, 0.01);
}

#[test]
fn h5_cost_of_a_gib_held_off_the_gpu() {
    // The share 8/256 of each GiB moves: 32 MiB a token.
    let (pcie, _) = links();
    let per_gib = pcie.transfer(32 * MIB).as_ms_f64();
    receipt("h5-format-cost", "nvfp4_ms_per_gib", per_gib, 2.10, 0.005);
    receipt("h5-format-cost", "fp8_over_nvfp4", 2.43 / per_gib, 1.158, 0.005);
    let resident = pcie.compute_per_token.unwrap().as_ms_f64();
    receipt("h5-format-cost", "nvfp4_resident_ms", resident, 3.53, 0.005);
}

#[test]
fn link_floor_of_gpt_oss_20b() {
    let a100 = find_link("a100-pcie").unwrap();
    let expert_bytes = (12.61 * MIB as f64).round() as u64;
    let token = TokenShape { layers: 24, top_k: 4, expert_bytes };
    receipt("link-floor", "gib_per_token", token.streamed_gib(), 1.182, 0.01);
    let tokens_per_s = 1000.0 / token.moved_ms(1.0, &a100);
    receipt("link-floor", "tokens_per_s", tokens_per_s, 18.2, 0.01);
    assert!(tokens_per_s > 16.2, "a floor on time is a ceiling on the measured rate");
}

#[test]
fn spark_links_are_the_published_ones() {
    let rate = |name: &str| find_link(name).unwrap().rate_gib_s(1 << 30);
    assert!((rate("spark-pinned") - 55.19).abs() < 1e-3);
    assert!((rate("a100-pcie") - 21.5).abs() < 1e-3);
}

#[test]
fn freetoken_split_of_the_misses() {
    let link = find_link("freetoken-pcie").unwrap();
    let bytes = 1 << 30;
    // Rates are the inverse of the times.
    let host = 1.0 / link.host_kernel_ps(bytes).unwrap() as f64;
    let pcie = 1.0 / link.transfer_ps(bytes) as f64;
    receipt("freetoken-split", "cpu_share_standalone", host_share(host, pcie), 0.749, 0.005);
    receipt("freetoken-split", "cpu_share_at_printed_ratio", host_share(3.26, 1.0), 0.765, 0.005);
    assert!(hybrid_pays(host, pcie), "backend = hybrid");
}
