//! Host memory over disk, driven as a user does.

use crate::common::{hotset, json, refused, stdout};

const SMALL: [&str; 7] = ["--policy", "lru", "--capacity", "25%", "--link", "h200-pcie", "--phase"];

fn small<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[command][..], &SMALL, &["decode"], more].concat()
}

#[test]
fn what_host_memory_lacks_is_counted_and_priced_in_every_format() {
    let tiers = ["--host-slots", "50%", "--disk", "nvme-gen4"];
    let report = json(&small("compare", &tiers));
    let row = &report["rows"][0];
    let number = |of: &serde_json::Value| of.as_f64().unwrap();
    let (hits, reads) = (number(&row["tiers"]["host_hits"]), number(&row["tiers"]["disk_reads"]));
    assert_eq!(hits + reads, number(&row["demand_fetches"]));
    assert!(hits > 0.0 && reads > 0.0);
    assert_eq!(report["settings"]["serving"]["host"]["mode"], "inclusive");
    assert_eq!(report["settings"]["disk"], "nvme-gen4");
    assert!(number(&row["links"][0]["time"]["exposed_disk_ms"]) > 0.0);
    let plain = json(&small("compare", &[]));
    assert!(plain["rows"][0].get("tiers").is_none());
    let timeline = |of: &serde_json::Value| number(&of["links"][0]["timeline_ms_per_token"]);
    assert!(timeline(row) > timeline(&plain["rows"][0]));
    let table = stdout(&small("compare", &tiers));
    assert!(table.contains("host memory: lru, inclusive; over disk nvme-gen4"), "{table}");
    for format in ["csv", "markdown"] {
        let text = stdout(&[&small("replay", &tiers)[..], &["--format", format]].concat());
        assert!(text.contains(if format == "csv" { "disk_reads" } else { "disk" }), "{text}");
    }
}

#[test]
fn every_policy_that_learns_as_it_runs_serves_host_memory_and_predictions_may_fill_it() {
    for policy in ["page-cache:ratio=3", "slru", "lru+bypass"] {
        let with = ["--host-slots", "400", "--host-policy", policy, "--host-mode", "exclusive"];
        let row = &json(&small("compare", &with))["rows"][0];
        assert!(row["tiers"]["kept"].as_u64().unwrap() > 0, "{policy}");
    }
    let ahead = ["--host-slots", "60%", "--prefetch", "ahead", "--prefetch-to", "host"];
    let row = &json(&small("compare", &ahead))["rows"][0];
    assert_eq!(row["prefetches"], 0);
    assert!(row["tiers"]["disk_reads_ahead"].as_u64().unwrap() > 0);
}

#[test]
fn what_cannot_be_is_told() {
    let with = |more: &[&'static str]| small("compare", more);
    refused(&with(&["--disk", "nvme-gen4"]), &["--host-slots"]);
    refused(&with(&["--host-slots", "50%", "--disk", "nvme-gen6"]), &["did you mean 'nvme-gen"]);
    refused(&with(&["--host-slots", "many"]), &["is not a number of slots"]);
    refused(&with(&["--host-slots", "50%", "--host-policy", "belady"]), &["--host-policy", "lru"]);
    refused(&with(&["--host-slots", "50%", "--prefetch-to", "host"]), &["nothing to bring"]);
    refused(&with(&["--host-slots", "50%", "--prefill", "bypass"]), &["--prefill", "on-demand"]);
    let smaller = ["--host-slots", "50%", "--miss", "low-precision"];
    refused(&with(&smaller), &["low-precision", "smaller", "--host-slots"]);
    let bypass = ["compare", "--policy", "belady-bypass", "--host-slots", "50%"];
    refused(&bypass, &["belady-bypass", "--host-slots"]);
    refused(&small("replay", &["--plot", "r.svg"]), &["--plot", "hotset sweep"]);
}

#[test]
fn the_disk_is_what_binds_and_stands_in_the_page() {
    let over = ["--host-slots", "50%", "--disk", "hard-disk"];
    let page = stdout(&[&small("compare", &over)[..], &["--format", "html"]].concat());
    assert!(page.contains("exposed_disk_ms"));
    let plain = ["--scope", "global", "--miss", "fetch", "--prefetch", "none"];
    let advice = json(&[&small("advise", &plain)[..], &over].concat());
    assert_eq!(advice["answers"][0]["plain"]["bound_by"], "disk");
    refused(&small("advise", &["--no-timeline"]), &["--no-timeline"]);
}

#[test]
fn timings_of_a_disk_become_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rows, profile) = (file("reads.csv"), file("disk.toml"));
    let text = "request_bytes,queue_depth,seconds\n1048576,1,0.00035\n1048576,8,0.0021\n\
                4194304,1,0.0011\n4194304,8,0.0081\n";
    std::fs::write(&rows, text).unwrap();
    let told = stdout(&["link", "fit", &rows, "-o", &profile, "--name", "mine"]);
    assert!(told.contains("latency, us"), "{told}");
    let report = json(&small("compare", &["--host-slots", "50%", "--disk", &profile]));
    assert_eq!(report["settings"]["disk"], "mine");
    let wrong = hotset(&["link", "fit", &rows, "--from", "csv"]);
    assert_eq!(wrong.status.code(), Some(2));
}
