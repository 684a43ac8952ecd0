//! The built-in H200 profile is what the fit makes of the measurements, and lands on figures read off them by hand.
//!
//! The first test needs `data/h200-links/links.csv` of the shared folder; `HOTSET_BLESS=1` makes it write the profile
//! anew. The others read the built-in profile and need nothing.

use hotset_cost_models::{FitLabel, Link, MIB, find_link, find_machine, fit_links};

const SOURCE: &str =
    "this project's measurement on a 2 x H200 host: CUDA events, medians of 15 to 25 repeats";

#[test]
fn the_builtin_profile_is_what_the_fit_makes_of_the_measurements() {
    let Some(links) = crate::shared::shared("data/h200-links/links.csv") else { return };
    let label = FitLabel { name: None, source: SOURCE.into(), date: "2026-11-29".into() };
    let fitted = fit_links(std::fs::File::open(links).unwrap(), &label).unwrap();
    println!("{fitted}");
    if std::env::var_os("HOTSET_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/h200.toml");
        std::fs::write(path, fitted.profile.to_toml().unwrap()).unwrap();
    }
    assert_eq!(find_machine("h200").unwrap(), fitted.profile);
    assert_eq!(fitted.warnings, Vec::<String>::new());
    let worst = |link: &str, mode: &str| {
        let same = |residual: &&_| matches(residual, link, mode);
        fitted.residuals.iter().find(same).unwrap().at_points
    };
    assert!(worst("pcie-gen5-x16", "pinned-h2d").max < 0.01, "nearly monotone as measured");
    assert!(worst("nvlink-peer", "p2p").max < 0.002);
    assert!(worst("hbm", "kernel-chain").max < 0.08, "launches differ by that much");
    assert!(worst("pcie-gen5-x16", "chain").median < 0.02);
    assert!(worst("nvlink-peer", "chain").median < 0.02);
}

fn matches(residual: &hotset_cost_models::Residual, link: &str, mode: &str) -> bool {
    residual.link == link && residual.mode == mode
}

fn within(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{value}, expected {expected}");
}

fn queued_gib_s(link: &Link, bytes: u64) -> f64 {
    bytes as f64 / (MIB as f64 * 1024.0) / (link.queued_ps(bytes) as f64 * 1e-12)
}

#[test]
fn links_saturate_at_the_rates_that_were_measured() {
    // 256 MiB: 51.4 GiB/s over PCIe; "367 GiB/s, the speed the articles report for NVLink-C2C".
    within(queued_gib_s(&find_link("h200-pcie").unwrap(), 256 * MIB), 51.4, 0.005);
    within(queued_gib_s(&find_link("h200-nvlink").unwrap(), 256 * MIB), 367.0, 0.005);
    within(find_link("h200-pcie-pageable-h2d").unwrap().rate_gib_s(256 * MIB), 6.5, 0.01);
}

#[test]
fn medians_are_the_ones_in_the_file() {
    // 1,769,472 bytes, 1 and 8 transfers; 13,221,888 bytes alone.
    let pcie = find_link("h200-pcie").unwrap();
    assert_eq!(pcie.transfer_ps(1_769_472), 37_984_000);
    assert_eq!(pcie.burst_ps(1_769_472, 8), 284_000_000);
    let nvlink = find_link("h200-nvlink").unwrap();
    assert_eq!(nvlink.transfer_ps(13_221_888), 40_672_000);
    // (129.472 - 10.720) / 15 us
    let after_the_first = nvlink.burst_ps(1_769_472, 16) - nvlink.transfer_ps(1_769_472);
    assert_eq!(after_the_first / 15, 7_916_800);
    // Rounds with copies: 23.916, 32.916, 48.216 and 78.807 us, of which two kernels of 5.084 take 10.168.
    let rounds = [1, 2, 4, 8].map(|n| nvlink.demand_ps(1_769_472, n));
    let expected = [13.75, 22.75, 38.05, 68.64];
    rounds.iter().zip(expected).for_each(|(&ps, us)| within(ps as f64, us * 1e6, 0.001));
    // (78.807 - 23.916) / 7 us: less than in bursts.
    within(nvlink.queued_ps(1_769_472) as f64, 7.841e6, 0.001);
}

#[test]
fn submission_and_contention() {
    let h200 = find_machine("h200").unwrap();
    let hbm = h200.hbm.as_ref().unwrap();
    within(hbm.event_pair_ps as f64, 4e6, 0.1); // "about 4 us"
    within(hbm.saturated_gb_s(), 4450.0, 0.005);
    assert_eq!(hbm.kernel_ps(8_388_608, 1), 5_084_000);
    assert_eq!(hbm.kernel_ps(13_221_888, 4), 16_761_000);
    for link in &h200.links {
        // Two hand-offs between streams; a tiny copy with its event.
        within(link.submission.handoff_ps as f64, 3.8e6, 0.03);
        within(link.submission.copy_ps as f64, 3.3e6, 0.03);
        // A kernel beside it hardly slows a copy: what those rows take longer by is a constant start.
        assert!(link.contention.copy_beside_kernel_permille < 1010);
    }
    // 395 and 55 GB/s written into 4453 GB/s.
    let beside = |name: &str| h200.link(name).unwrap().contention.kernel_beside_copy_permille;
    assert_eq!((beside("h200-nvlink"), beside("h200-pcie")), (1089, 1012));
    // 16 threads: 15.37 / 12.04 ms; copies of 6 MiB 0.1358 ms against 0.1176.
    let host = &h200.link("h200-pcie").unwrap().contention.host;
    let at_16 = host.iter().find(|beside| beside.threads == 16).unwrap();
    assert_eq!((at_16.copy_permille, at_16.host_permille), (1154, 1277));
}
