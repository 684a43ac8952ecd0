//! The timeline against the recorded live runs, from link measurements alone.

use std::fs::File;

use hotset_cost_models::{FitLabel, fit_links};
use hotset_sim::{LiveReport, verify_live};
use hotset_traces::testing::shared;

fn report() -> Option<LiveReport> {
    let (links, live) = (shared("data/h200-links/links.csv")?, shared("data/live")?);
    let label = FitLabel { name: None, source: "test".into(), date: "test".into() };
    let machine = fit_links(File::open(links).unwrap(), &label).unwrap().profile;
    Some(verify_live(&live.join("points.csv"), &machine, &live).unwrap())
}

#[test]
fn every_live_point_is_predicted_from_link_measurements() {
    let Some(report) = report() else { return };
    for row in &report.rows {
        println!(
            "{:11} {} {:8} {:3} {:5} {:8.5} {:8.5} ms {:5.2}%",
            row.trace,
            row.link,
            row.expert_bytes,
            row.slots,
            row.prefetch,
            row.predicted_ms,
            row.measured_ms,
            row.error * 100.0,
        );
    }
    assert!(report.counts_exact, "misses and prefetches of every token");
    assert!(report.max_error <= 0.03, "{}", report.max_error);
    assert!(report.median_error <= 0.01, "{}", report.median_error);
}

#[test]
fn prefetch_lowers_time_over_nvlink_and_raises_it_over_pcie() {
    let Some(report) = report() else { return };
    assert!(report.prefetch_effects.len() >= 4);
    for effect in &report.prefetch_effects {
        // The same cache with the same hits: only the link differs.
        let lower = effect.link == "peer";
        assert_eq!(effect.predicted_change < 0.0, lower, "{effect:?}");
        assert_eq!(effect.measured_change < 0.0, lower, "{effect:?}");
    }
}

#[test]
fn token_times_follow_the_recorded_ones() {
    let Some(report) = report() else { return };
    for row in &report.rows {
        assert!(row.token_r2.unwrap() > 0.9, "{row:?}");
        assert!(row.token_error_p99 < 0.1, "{row:?}");
        assert!(row.p99_error < 0.025, "{row:?}");
    }
}
