//! A made-up machine whose every figure is known.

use super::*;
use crate::picos::MIB;

/// Copies cost 5 us and 1 us for each KiB, queued ones 1 us less; kernels 5 us and 1 us a KiB, plus 4 us for events.
fn rows() -> String {
    let mut rows = String::from("device,link,mode,bytes,transfers,ms\n");
    for kib in [64_u64, 128, 256] {
        let bytes = kib * 1024;
        let kernel = 0.005 + kib as f64 / 1000.0;
        rows += &format!("GPU,hbm,kernel-chain,{bytes},1,{kernel}\n");
        rows += &format!("GPU,hbm,kernel-read,{bytes},1,{}\n", kernel + 0.004);
        for n in [1_u32, 2, 4] {
            let burst = 0.001 + f64::from(n) * (0.004 + kib as f64 / 1000.0);
            for noise in [0.0, 0.0, 0.5] {
                rows += &format!("GPU,pcie-x,pinned-h2d,{bytes},{n},{}\n", burst + noise);
            }
            let round = 2.0 * 0.069 + burst + 0.003;
            rows += &format!("GPU,pcie-x,chain,{bytes},{n},{round}\n");
        }
        rows += &format!("GPU,pcie-x,pageable-h2d,{bytes},1,{}\n", 0.01 * kib as f64);
    }
    rows + "GPU,hbm,chain,65536,0,0.1385\n"
}

fn label() -> FitLabel {
    FitLabel { name: None, source: "made up".into(), date: "2026-11-29".into() }
}

fn fit(rows: &str) -> Result<FittedProfile, FitError> {
    fit_links(rows.as_bytes(), &label())
}

#[test]
fn every_figure_comes_back() {
    let fitted = fit(&rows()).unwrap();
    let link = fitted.profile.link("gpu-pcie").unwrap();
    assert_eq!(link.kind, LinkKind::Pcie);
    assert_eq!(link.transfer_ps(128 * 1024), 133_000_000);
    assert_eq!(link.burst_ps(128 * 1024, 3), 397_000_000);
    assert_eq!(link.queued_ps(128 * 1024), 132_000_000);
    assert_eq!(link.submission.handoff_ps, 3_000_000);
    assert_eq!(link.demand_ps(128 * 1024, 2), 268_000_000);
    let hbm = fitted.profile.hbm.as_ref().unwrap();
    assert_eq!(hbm.event_pair_ps, 4_000_000);
    assert_eq!(hbm.kernel_ps(192 * 1024, 1), 197_000_000);
    let pageable = fitted.profile.link("gpu-pcie-pageable-h2d").unwrap();
    assert_eq!(pageable.transfer_ps(64 * 1024), 640_000_000);
    assert_eq!(fitted.profile.links.len(), 1);
    let warned = "hbm, kernel-chain: 0.9 GiB/s at 262144 bytes is not plausible";
    assert!(fitted.warnings[0].starts_with(warned), "{fitted}");
}

#[test]
fn measured_steps_say_what_a_step_takes_beside_its_kernels() {
    // Kernels of 0.069 ms each: twenty take 1.38, a step of ten layers 1.4; of twenty 2.76 and 2.79.
    let steps = "GPU,hbm,step-65536+1,65536,10,1.4\nGPU,hbm,step-65536+1,65536,20,2.79\n";
    let fitted = fit(&(rows() + steps)).unwrap();
    let hbm = fitted.profile.hbm.as_ref().unwrap();
    assert_eq!((hbm.step_ps(20), hbm.step_ps(40)), (20_000_000, 30_000_000));
    let again = MachineProfile::from_toml_str(&fitted.profile.to_toml().unwrap()).unwrap();
    assert_eq!(again, fitted.profile);
}

#[test]
fn the_residuals_are_there_and_printed() {
    let fitted = fit(&rows()).unwrap();
    let chain = fitted.residuals.iter().find(|residual| residual.mode == "chain").unwrap();
    assert_eq!(chain.points, 9);
    assert!(chain.at_points.max < 1e-6);
    assert!(fitted.to_string().contains("pinned-h2d"), "{fitted}");
}

#[test]
fn the_profile_survives_toml_exactly() {
    let profile = fit(&rows()).unwrap().profile;
    let read = MachineProfile::from_toml_str(&profile.to_toml().unwrap()).unwrap();
    assert_eq!(read, profile);
}

#[test]
fn units_mistaken_by_a_thousand_are_warned_of() {
    let scaled = |factor: f64| {
        let mut text = String::from("device,link,mode,bytes,transfers,ms\n");
        for mib in [1_u64, 16, 256] {
            // 50 GB/s where the factor is 1.
            let ms = (mib * MIB) as f64 / 50e9 * 1e3 * factor;
            text += &format!("GPU,pcie-x,pinned-h2d,{},1,{ms}\n", mib * MIB);
        }
        let warnings = fit(&text).unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("are the times in milliseconds"))
    };
    assert!(!scaled(1.0));
    assert!(scaled(1000.0), "microseconds called milliseconds");
    assert!(scaled(0.001), "seconds called milliseconds");
}

#[test]
fn what_is_not_measured_is_said() {
    let text: String =
        rows().lines().filter(|row| !row.contains("hbm")).map(|r| format!("{r}\n")).collect();
    let fitted = fit(&text).unwrap();
    assert_eq!(fitted.profile.hbm, None);
    assert!(
        fitted.warnings.contains(&"no hbm rows: kernels cannot be timed on this machine".into())
    );
    assert!(
        fitted.warnings.iter().any(|warning| warning.contains("submitting copies counts as free"))
    );
    let text: String = rows()
        .lines()
        .filter(|row| !row.contains("kernel-chain"))
        .map(|r| format!("{r}\n"))
        .collect();
    let fitted = fit(&text).unwrap();
    assert_eq!(fitted.profile.hbm.unwrap().event_pair_ps, 0);
    assert!(
        fitted.warnings.iter().any(|warning| warning.contains("include what an event pair costs"))
    );
}

#[test]
fn a_file_without_links_or_with_one_size_is_refused() {
    let header = "device,link,mode,bytes,transfers,ms\n";
    let error = fit(&format!("{header}G,cpu,stream-read-1t,8,1,1\n")).unwrap_err();
    assert_eq!(error.to_string(), "the links file has no measurement of a link");
    let error = fit(&format!("{header}G,pcie,pinned-h2d,8,1,1\n")).unwrap_err();
    assert!(matches!(error, FitError::TooFewPoints { .. }));
    assert_eq!(
        error.to_string(),
        "pcie, pinned-h2d: 1 transfer size measured, a curve needs at least 2"
    );
}

#[test]
fn links_of_one_family_keep_their_full_names() {
    let mut text = String::from("device,link,mode,bytes,transfers,ms\n");
    for link in ["pcie-gen4", "pcie-gen5"] {
        text +=
            &format!("G,{link},pinned-h2d,1000000,1,0.02\nG,{link},pinned-h2d,2000000,1,0.04\n");
    }
    let profile = fit(&text).unwrap().profile;
    let names: Vec<&str> = profile.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["g-pcie-gen4", "g-pcie-gen5"]);
}
