//! The main job, driven as a user does.

use crate::common::{counts_file, hotset, json, refused, stderr, stdout};

#[test]
fn the_bundled_trace_is_compared_without_any_flag() {
    let table = stdout(&["compare"]);
    for part in ["decode · global scope · 256 of 1,024 slots", "belady", "h200-", "x\n"] {
        assert!(table.contains(part), "no '{part}' in {table}");
    }
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
fn json_has_the_fixed_names_and_adds_up() {
    let report = json(&["compare", "--policy", "lru,belady", "--capacity", "25%"]);
    assert_eq!(report["schema"], "hotset/1");
    assert_eq!(report["trace"]["digest"], "74aac0af857150159ff2f6838d2464aa");
    for (name, value) in [("layers", 16), ("experts", 64), ("top_k", 8), ("tokens", 21_504)] {
        assert_eq!(report["trace"][name], value, "{name}");
    }
    let rows = report["rows"].as_array().unwrap();
    for row in rows {
        let count = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("no {name}: {row}"));
        assert_eq!(count("hits") + count("misses"), count("accesses"));
        assert_eq!(count("demand_fetches"), count("misses"));
        assert!(count("misses") >= count("belady_misses"), "below the bound: {row}");
        assert_eq!(row["links"][0]["link"], "h200-pcie");
    }
    // 48 sequences of 256 generated tokens, 16 layers, top-8.
    let decode = rows
        .iter()
        .find(|row| row["phase"] == "decode" && row["window"] == "all" && row["policy"] == "lru")
        .unwrap();
    assert_eq!(decode["tokens"], 48 * 256);
    assert_eq!(decode["accesses"], 48 * 256 * 16 * 8);
    assert_eq!(decode["capacity_slots"], 256);
    // Cold and steady make up the whole.
    let sum = |policy: &str, phase: &str, field: &str, windows: &[&str]| -> u64 {
        rows.iter()
            .filter(|row| row["policy"] == policy && row["phase"] == phase)
            .filter(|row| windows.iter().any(|window| row["window"] == *window))
            .map(|row| row[field].as_u64().unwrap())
            .sum()
    };
    for policy in ["lru", "belady"] {
        for phase in ["prefill", "decode"] {
            for field in ["tokens", "hits", "misses", "accesses"] {
                assert_eq!(
                    sum(policy, phase, field, &["all"]),
                    sum(policy, phase, field, &["cold", "steady"]),
                    "{policy} {phase} {field}"
                );
            }
        }
    }
}

#[test]
fn the_serial_price_is_copies_times_the_link() {
    let args = ["compare", "--policy", "lru", "--capacity", "25%", "--link", "zgx-pcie,zgx-c2c"];
    let report = json(&args);
    for row in report["rows"].as_array().unwrap() {
        let moved = row["moved_per_token"].as_f64().unwrap();
        // 1.6875 MiB at 10.5 ms over 160 MiB, and at 0.43 ms.
        for (index, rate) in [(0, 10.5 / 160.0), (1, 0.43 / 160.0)] {
            let price = row["links"][index]["serial_ms_per_token"].as_f64().unwrap();
            assert!((price / (moved * 1.6875 * rate) - 1.0).abs() < 1e-6, "{row}");
        }
        let mib = row["mib_per_token"].as_f64().unwrap();
        assert!((mib / (moved * 1.6875) - 1.0).abs() < 1e-12);
    }
    let compute = json(&[&args[..], &["--compute-ms", "3.5"]].concat());
    let price = |report: &serde_json::Value| {
        report["rows"][0]["links"][0]["serial_ms_per_token"].as_f64().unwrap()
    };
    assert!((price(&compute) - price(&report) - 3.5).abs() < 1e-9);
}

#[test]
fn the_same_bytes_with_one_and_two_threads_and_again() {
    let run = |threads| stdout(&["compare", "--format", "json", "--threads", threads]);
    let one = run("1");
    assert_eq!(one, run("2"));
    assert_eq!(one, run("2"));
}

#[test]
fn every_format_is_given_and_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["compare", "--policy", "lru", "--capacity", "25%"];
    for format in ["table", "json", "csv", "markdown"] {
        let text = stdout(&[&small[..], &["--format", format]].concat());
        let path = folder.path().join(format);
        let written = path.to_str().unwrap();
        assert_eq!(stdout(&[&small[..], &["--format", format, "-o", written]].concat()), "");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    let csv = std::fs::read_to_string(folder.path().join("csv")).unwrap();
    let mut lines = csv.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("policy,scope,capacity_slots,"));
    assert!(header.ends_with(",perfect_ms_per_token:h200-nvlink"));
    assert!(lines.all(|line| line.split(',').count() == header.split(',').count()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "a temporary file stayed");
}

#[test]
fn the_cliff_and_overflows_are_told() {
    let output = hotset(&["compare", "--policy", "lru", "--capacity", "127,128"]);
    let told = stderr(&output);
    assert!(
        told.contains("127 slots are fewer than the 128 experts that one token uses"),
        "{told}"
    );
    assert!(!told.contains("128 slots are fewer"), "{told}");
    let output = hotset(&["compare", "--policy", "lru", "--scope", "layer", "--capacity", "25%"]);
    let told = stderr(&output);
    assert!(told.contains("events need more experts than their pool has slots"), "{told}");
}

#[test]
fn wrong_settings_are_refused_with_what_to_do() {
    refused(&["compare", "--policy", "lruu"], &["no policy 'lruu'", "did you mean 'lru'?"]);
    refused(&["compare", "--policy", "lru:k=2"], &["policy 'lru'", "unknown field `k`"]);
    refused(&["compare", "--policy", ""], &["no policy ''"]);
    refused(&["compare", "--capacity", "0"], &["less than one slot"]);
    refused(&["compare", "--capacity", "0%"], &["less than one slot"]);
    refused(&["compare", "--capacity", "100.1%"], &["more than all 1024 experts"]);
    refused(&["compare", "--capacity", "1025"], &["more than all 1024 experts"]);
    refused(&["compare", "--capacity", "99999999999999999999"], &["is not a number of slots"]);
    refused(&["compare", "--capacity", "12 apples"], &["(384)", "(25%)", "(40GiB)"]);
    refused(&["compare", "--link", "h200-pcei"], &["h200-pcie"]);
    refused(&["compare", "--link", "/nowhere.toml"], &["/nowhere.toml"]);
    refused(&["compare", "--phase", "verify"], &["the trace has no verify tokens"]);
    refused(&["compare", "--chunk", "0"], &["--chunk"]);
    refused(&["compare", "--threads", "0"], &["1 to 1024"]);
    refused(&["compare", "--expert-size", "nan"], &["is not an expert's size"]);
    refused(&["compare", "--compute-ms", "-1"], &["--compute-ms"]);
    refused(&["compare", "/nowhere.hst"], &["/nowhere.hst"]);
    refused(&["compare", "--capacity", "25%", "-o", "/nowhere/x.json"], &["cannot write"]);
    refused(&["compair"], &["compare"]);
}

#[test]
fn help_teaches() {
    let help = stdout(&["compare", "--help"]);
    for part in ["Examples:", "--capacity", "40GiB", "bundled", "name:key=value"] {
        assert!(help.contains(part), "no '{part}' in the help");
    }
    assert!(stdout(&["--help"]).contains("Exit codes"));
    assert!(stdout(&["policies"]).contains("belady"));
    assert!(stdout(&["policies", "clock"]).contains("Multics"));
    assert!(stdout(&["link"]).contains("zgx-c2c"));
    assert!(stdout(&["link", "zgx-c2c"]).contains("HP ZGX Fury"));
}

/// Counts that are 1 for the first 16 experts of each layer and 0 for the others: static placement
/// at 25% holds just those, each from its first use on.
#[test]
fn static_placement_goes_by_an_engine_s_histogram() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.npy");
    counts_file(&path, (0..16 * 64).map(|key| if key % 64 < 16 { 1.0 } else { 0.0 }));

    let trace = hotset::traces::bundled().unwrap();
    let mut uses = 0u64;
    for row in (0..trace.tokens()).filter(|&row| trace.phases()[row] == 1) {
        for layer in 0..16 {
            uses += trace.layer_ids(row, layer).iter().filter(|&id| id < 16).count() as u64;
        }
    }
    let path = path.to_str().unwrap();
    let flags = ["compare", "--policy", "static", "--capacity", "25%", "--phase", "decode"];
    let report = json(&[&flags[..], &["--histogram", path]].concat());
    // Resident from the first step: every use hits.
    assert_eq!(report["rows"][0]["hits"], uses);
    assert!(report["settings"]["histogram"].as_str().unwrap().contains("256 uses"));
    assert!(report["settings"]["split"].is_null());
    refused(&["compare", "--policy", "lru", "--histogram", path], &["give --policy static"]);
    refused(&[&flags[..], &["--histogram", "Cargo.toml"]].concat(), &["is no histogram"]);
}

#[test]
fn every_json_names_its_schema_and_bundled_is_a_name() {
    for command in [
        &["compare", "bundled", "--policy", "lru", "--capacity", "25%", "--no-timeline"][..],
        &["link"],
        &["link", "show", "h200-pcie"],
        &["policies"],
        &["policies", "semantic"],
        &["trace", "info", "bundled"],
        &["preflight", "--model", "OLMoE-1B-7B", "--machine", "h200"],
    ] {
        assert_eq!(json(command)["schema"], "hotset/1", "{command:?}");
    }
}

/// Captions, wide tables and names out of files.
#[test]
fn nothing_is_wider_than_a_terminal() {
    for command in [
        &["compare", "--policy", "lru", "--capacity", "25%", "--semantics", "sequential"][..],
        &["compare", "--policy", "lru", "--capacity", "25%", "--shuffle", "tokens"],
        &["sweep", "--policy", "s3-fifo", "--capacity", "20%..60%:20%", "--knee", "0.5"],
        &["plan", "--model", "DeepSeek-V3", "--machine", "zgx-fury"],
    ] {
        let table = stdout(command);
        for line in table.lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
    }
}

/// A link whose source measured a token's compute: whoever charges for time over it without any says so.
#[test]
fn a_link_s_own_compute_is_told_by_all_that_charge() {
    let link = ["--link", "zgx-c2c"];
    let commands: [&[&str]; 5] = [
        &["compare", "--policy", "lru"],
        &["sweep", "--policy", "lru", "--capacity", "25%,50%"],
        &["replay"],
        &["experiment", "semantic", "--arm", "fifo", "--resamples", "100"],
        &["experiment", "prefetch", "--arm", "lru/ahead", "--resamples", "100"],
    ];
    for command in commands {
        let told = stderr(&hotset(&[command, &link].concat()));
        assert!(told.contains("measured beside 3.41 ms of compute"), "{command:?}: {told}");
        let told = stderr(&hotset(&[command, &link, &["--compute-ms", "3.41"]].concat()));
        assert!(!told.contains("measured beside"), "{command:?}: {told}");
    }
}

#[test]
fn prefetch_hidden_is_printed_where_prefetch_runs() {
    let of = |more: &[&str]| stdout(&[&["compare", "--policy", "lru"], more].concat());
    let table = of(&["--prefetch", "ahead"]);
    assert!(
        table.contains("hidden") && table.contains("what prefetch exceeds compute by"),
        "{table}"
    );
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
    let markdown = of(&["--prefetch", "ahead", "--format", "markdown"]);
    assert!(markdown.contains("h200-pcie prefetch hidden"), "{markdown}");
    assert!(!of(&[]).contains("hidden"));
    let sweep = ["sweep", "--policy", "lru", "--capacity", "25%", "--prefetch", "ahead"];
    let table = stdout(&sweep);
    assert!(table.contains("ms a token over h200-pcie, prefetch hidden"), "{table}");
    let arms = ["--arm", "lru/ahead", "--arm", "fifo", "--link", "h200-pcie", "--resamples", "100"];
    let table = stdout(&[&["experiment", "semantic"], &arms[..]].concat());
    assert!(table.contains("hidden"), "{table}");
}
