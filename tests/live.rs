//! Links fitted from measurements, and predictions checked against live runs.

use std::fs;
use std::path::Path;

use crate::common::{hotset, json, refused, shared, stderr, stdout};

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
fn live_points_pass_and_a_tampered_one_fails() {
    let (Some(live), Some(links)) = (shared("data/live"), shared("data/h200-links/links.csv"))
    else {
        return;
    };
    let check = |points: &Path, more: &[&str]| {
        let args = ["verify-live", path(points), "--links", path(&links), "--traces", path(&live)];
        hotset(&[&args[..], more].concat())
    };
    let points = live.join("points.csv");
    let output = check(&points, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    narrow(&table);
    for part in [
        "counts exact: passed",
        "prefetch lowers time over NVLink (peer) and raises it over PCIe (host)",
    ] {
        assert!(table.contains(part), "no '{part}' in {table}");
    }
    let report: serde_json::Value =
        serde_json::from_slice(&check(&points, &["--format", "json"]).stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let text = fs::read_to_string(&points).unwrap();
    assert_eq!(rows.len(), text.lines().count() - 1);
    let mut errors: Vec<f64> = rows
        .iter()
        .map(|row| {
            let [predicted, measured, error] = ["predicted_ms", "measured_ms", "error"]
                .map(|name| row[name].as_f64().unwrap_or_else(|| panic!("no {name}: {row}")));
            assert!((error - (predicted - measured).abs() / measured).abs() < 1e-12);
            error
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    assert_eq!(report["max_error"].as_f64(), errors.last().copied());
    assert!(report["max_error"].as_f64().unwrap() <= 0.03);
    assert!(report["median_error"].as_f64().unwrap() <= 0.01);
    assert_eq!(report["counts_exact"], true);

    let folder = tempfile::tempdir().unwrap();
    let tampered = folder.path().join("points.csv");
    // The first point's time, then its misses: 2.99976 ms and 9.6817 misses a token.
    for (from, to, says, table) in [
        (
            ",2.99976",
            ",3.29976",
            "384 slots, prefetch none: off by ",
            ["times: FAILED", "counts exact: passed"],
        ),
        (
            ",9.6817,",
            ",9.6818,",
            "the run had 9.6818",
            ["times: passed", "counts NOT exact: FAILED"],
        ),
    ] {
        assert!(text.contains(from));
        fs::write(&tampered, text.replacen(from, to, 1)).unwrap();
        let output = check(&tampered, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.contains("FAILED"));
        for part in table {
            assert!(told.contains(part), "no '{part}' in {told}");
        }
    }

    let args = |points| ["verify-live", points, "--links", path(&links), "--traces", path(&live)];
    fs::write(&tampered, text.replacen("slots", "places", 1)).unwrap();
    refused(&args(path(&tampered)), &["points.csv", "there is no column 'slots'"]);
    fs::write(&tampered, text.lines().next().unwrap()).unwrap();
    refused(&args(path(&tampered)), &["has no rows"]);
    refused(&args("/nowhere.csv"), &["cannot read /nowhere.csv"]);
}

/// Copies of 5 us and 1 us a KiB, kernels likewise; times multiplied by `factor`.
fn links(factor: f64) -> String {
    let mut rows = String::from("device,link,mode,bytes,transfers,ms\n");
    for mib in [1_u64, 4, 16] {
        let bytes = mib << 20;
        let ms = factor * (0.005 + mib as f64 * 0.02);
        rows += &format!("GPU,pcie-x,pinned-h2d,{bytes},1,{ms}\n");
        rows += &format!("GPU,pcie-x,pinned-h2d,{bytes},2,{}\n", 2.0 * ms);
        rows +=
            &format!("GPU,hbm,kernel-chain,{bytes},1,{}\n", factor * (0.005 + mib as f64 / 1e3));
    }
    rows
}

#[test]
fn a_fitted_profile_is_one_to_compare_with() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, toml) = (folder.path().join("links.csv"), folder.path().join("mine.toml"));
    fs::write(&csv, links(1.0)).unwrap();
    let fit =
        ["link", "fit", path(&csv), "-o", path(&toml), "--name", "mine", "--source", "a test"];
    let told = stdout(&[&fit[..], &["--date", "2026-11-29"]].concat());
    narrow(&told);
    for part in ["mine-pcie", "pinned-h2d", "kernel-chain", "mine.toml"] {
        assert!(told.contains(part), "no '{part}' in {told}");
    }
    let shown = stdout(&["link", "show", path(&toml)]);
    assert!(shown.contains("a test") && shown.contains("mine-pcie"), "{shown}");

    let small = ["compare", "--policy", "lru", "--capacity", "25%", "--phase", "decode"];
    let timed = ["--machine", path(&toml), "--dense-bytes", "4MiB"];
    // All links of a file, and one of them by name.
    let by_file = json(&[&small[..], &timed, &["--link", path(&toml)]].concat());
    let by_name = json(&[&small[..], &timed, &["--link", "mine-pcie"]].concat());
    assert_eq!(by_file, by_name);
    assert_eq!(by_file["settings"]["dense_bytes_per_layer"], 4 << 20);
    let link = &by_file["rows"][0]["links"][0];
    assert_eq!(link["link"], "mine-pcie");
    let ms = |name: &str| link[name].as_f64().unwrap();
    let (serial, timeline) = (ms("serial_ms_per_token"), ms("timeline_ms_per_token"));
    assert!(timeline > 0.0 && ms("perfect_ms_per_token") > 0.0 && serial > 0.0);
    // A copy of 1.6875 MiB takes 5 + 33.75 us; 16 layers of a dense and an expert kernel.
    let copies = by_file["rows"][0]["moved_per_token"].as_f64().unwrap() * 0.03875;
    let compute = link["time"]["compute_ms"].as_f64().unwrap();
    assert!(compute > 16.0 * 2.0 * 0.005, "{compute}");
    assert!((serial - copies - compute).abs() < 1e-6, "{serial} {copies} {compute}");
}

#[test]
fn bad_measurements_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, toml) = (folder.path().join("links.csv"), folder.path().join("out.toml"));
    let fit = ["link", "fit", path(&csv), "-o", path(&toml)];
    let bad = |text: &str, parts: &[&str]| {
        fs::write(&csv, text).unwrap();
        refused(&fit, parts);
        assert!(!toml.exists(), "a profile was left");
    };
    let good = links(1.0);
    bad(&good.replacen("transfers", "count", 1), &["lacks the columns transfers"]);
    bad("", &["links.csv"]);
    bad(&good.lines().take(1).collect::<String>(), &["no measurement of a link"]);
    for time in ["0", "-1", "nan", "soon"] {
        bad(&format!("{good}GPU,pcie-x,pinned-h2d,1048576,1,{time}\n"), &["line 11"]);
    }
    bad(&format!("{good}GPU,pcie-x,pinned-h2d,0,1,1\n"), &["line 11"]);
    bad(&good.lines().take(2).collect::<Vec<_>>().join("\n"), &["pcie-x, pinned-h2d"]);
    refused(&["link", "fit", "/nowhere.csv"], &["cannot read /nowhere.csv"]);
    // Units mistaken by 1000 can be fitted, and are warned of.
    for factor in [1000.0, 0.001] {
        fs::write(&csv, links(factor)).unwrap();
        let output = hotset(&fit[..3]);
        assert_eq!(output.status.code(), Some(0));
        let told = stderr(&output);
        assert!(
            told.contains("warning: pcie-x, pinned-h2d") && told.contains("milliseconds"),
            "{told}"
        );
    }
}

#[test]
fn freetokens_calibration_balances_misses() {
    let folder = tempfile::tempdir().unwrap();
    let (bench, toml) = (folder.path().join("benchbw.json"), folder.path().join("box.toml"));
    let text = r#"{"version": 4, "timestamp": "2026-05-01", "host": "box", "gpu": {"name": "G"},
        "cpu": {"threads_used": 16},
        "dtype_kernels": {"nvfp4": {"cpu_moe_gbs": 29.97, "pcie_gather_gbs": 13.09,
            "cpu_moe_overlap_gbs": 21.89, "pcie_gather_overlap_gbs": 8.41}}}"#;
    fs::write(&bench, text).unwrap();
    stdout(&["link", "fit", path(&bench), "-o", path(&toml), "--name", "mine"]);
    let small = ["compare", "--policy", "lru", "--capacity", "25%", "--phase", "decode"];
    let report = json(&[&small[..], &["--link", path(&toml), "--miss", "balanced"]].concat());
    // From the rates side by side, 8.41 / (8.41 + 21.89), it would be 18190 of 65536. A profile keeps
    // slowdowns in per mille, 13.09 / 8.41 as 1556 and 29.97 / 21.89 as 1369: 8.4126 and 21.8919.
    let share = &report["settings"]["serving"]["misses"]["balanced"]["fetch_q16"];
    assert_eq!(share, 18_193);
    let row = &report["rows"][0];
    let count = |name: &str| row[name].as_u64().unwrap();
    assert_eq!(count("demand_fetches") + count("host_served"), count("misses"));
    assert!(count("host_served") > count("demand_fetches"));
    assert_eq!(row["links"][0]["link"], "mine-nvfp4");

    fs::write(&bench, text.replace("4,", "5,")).unwrap();
    refused(&["link", "fit", path(&bench)], &["version 5 is not known"]);
    let args = [&small[..], &["--miss", "host"]].concat();
    refused(&args, &["link 'h200-nvlink' does not say how fast"]);
}

#[test]
fn links_are_listed_and_shown() {
    let listed = stdout(&["link"]);
    assert_eq!(listed, stdout(&["link", "list"]));
    narrow(&listed);
    for part in ["zgx-c2c", "h200-nvlink", "machine"] {
        assert!(listed.contains(part), "no '{part}' in {listed}");
    }
    assert_eq!(stdout(&["link", "h200-pcie"]), stdout(&["link", "show", "h200-pcie"]));
    let machine = stdout(&["link", "show", "h200"]);
    narrow(&machine);
    assert!(machine.contains("h200-pcie-pageable-h2d"), "{machine}");
    refused(&["link", "show", "h200-pcei"], &["did you mean `h200-pcie`?"]);
}
