//! The built-in H200 profile is what the fit makes of the measurements, and the figures that were read off them.
//!
//! Needs `data/h200-links/links.csv` of the shared folder. `HOTSET_BLESS=1` writes the profile anew.

mod shared;

use hotset_cost_models::{FitLabel, FittedProfile, fit_links};

fn fitted() -> Option<FittedProfile> {
    let file = std::fs::File::open(shared::shared("data/h200-links/links.csv")?).unwrap();
    let label = FitLabel {
        name: None,
        source: "this project's measurement on a 2 x H200 host: CUDA events, medians of 15 to 25 repeats".into(),
        date: "2026-11-29".into(),
    };
    Some(fit_links(file, &label).unwrap())
}

#[test]
fn print_it() {
    let Some(fitted) = fitted() else { return };
    println!("{fitted}");
    for link in &fitted.profile.links {
        println!("{} {:?} {:?}", link.name, link.submission, link.contention);
        for mib in [1u64, 2, 12, 64, 256] {
            let b = mib << 20;
            println!(
                "  {mib} MiB: one {} us, queued {} us {:.1} GiB/s",
                link.transfer_ps(b) as f64 / 1e6,
                link.queued_ps(b) as f64 / 1e6,
                b as f64 / (1u64 << 30) as f64 / (link.queued_ps(b) as f64 * 1e-12)
            );
        }
    }
    let hbm = fitted.profile.hbm.as_ref().unwrap();
    println!(
        "hbm event pair {} us, saturated {} GB/s",
        hbm.event_pair_ps as f64 / 1e6,
        hbm.saturated_gb_s()
    );
    if std::env::var_os("HOTSET_BLESS").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/h200.toml"),
            fitted.profile.to_toml().unwrap(),
        )
        .unwrap();
    }
}
