//! What becomes of misses, driven as a user does, over recorded routes and measured links.

use crate::common::{hotset, json, refused, shared, stdout};

/// On the measured link with 32 host threads the split beats fetching all and the host alone; per event
/// it is the best within a thousandth, and the choice of who knows no contention is worse.
#[test]
fn the_split_beats_both_ends_on_gpt_oss_20b() {
    let Some(routes) = shared("data/live/gpt-oss-20b_800.npy") else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("g.hst");
    let (routes, trace) = (routes.to_str().unwrap(), trace.to_str().unwrap());
    stdout(&["trace", "import", "--from", "npy", routes, "-o", trace]);
    let run = |misses: &str| {
        let report = json(&[
            "compare",
            trace,
            "--policy",
            "lru",
            "--capacity",
            "25%",
            "--expert-size",
            "13221888",
            "--link",
            "h200-pcie",
            "--host-threads",
            "32",
            "--phase",
            "decode",
            "--miss",
            misses,
        ]);
        let link = &report["rows"][0]["links"][0];
        let number = |of: &serde_json::Value| of.as_f64().unwrap();
        let split = |name: &str| number(&link["split"][name]);
        let judged = [split("rule_ms"), split("best_ms"), split("uncontended_ms")];
        (number(&link["timeline_ms_per_token"]), judged)
    };
    let (fetch, host, (split, [rule, best, unaware])) =
        (run("fetch").0, run("host").0, run("balanced"));
    assert!(split < 0.6 * fetch && split < 0.6 * host, "{split} of {fetch} and {host}");
    assert!(rule < 1.001 * best && unaware > 1.03 * best, "{rule} {unaware} {best}");
}

#[test]
fn handlers_are_refused_for_what_a_trace_or_a_link_lacks() {
    let small =
        ["compare", "--policy", "lru", "--capacity", "25%", "--link", "h200-pcie", "--miss"];
    let with = |more: &'static str| [&small[..], &[more]].concat();
    refused(&with("fetch,hots"), &["did you mean 'host'?"]);
    refused(&["replay", "--miss", "fetch,host"], &["names 2 ways", "once with each"]);
    refused(&with("drop:below=2"), &["below = 2 is not within 0 to 1"]);
    let layers = [&with("cpu-layers")[..], &["--scope", "layer"]].concat();
    refused(&layers, &["needs the global scope"]);
    let output = hotset(&["policies", "cpu-layers"]);
    assert!(output.status.success());
    assert!(stdout(&["policies", "upload-cap"]).contains("miss handler"));
    assert!(stdout(&["policies", "pin"]).contains("placed before the run"));
}
