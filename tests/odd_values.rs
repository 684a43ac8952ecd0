//! What strangers gave: files of another kind, and values that would have done nothing.

use crate::common::{hotset, json, refused, stderr, stdout};

const LINK: &str = include_str!("../docs/my-host.toml");
const DISK: &str = "name = 'd'\n[[rates]]\nrequest_bytes = 1048576\nmb_per_s = 7000.0\n";
const MACHINE: &str = "base = 'rtx-4090'\nhost = 'ddr5-6000x2:96GB'\n";

#[test]
fn a_profile_given_to_another_flag_is_told_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (link, disk) = (put("link.toml", LINK), put("disk.toml", DISK));
    let (machine, broken) = (put("machine.toml", MACHINE), put("broken.toml", "name = \n"));
    let tiers = ["compare", "--host-slots", "50%", "--disk"];
    for (given, what, flag) in [
        (&link, "the profile of a link", "give it as --link"),
        (&machine, "a machine to plan for", "give it as --machine of 'hotset plan'"),
    ] {
        refused(&[&tiers[..], &[given]].concat(), &[given, what, flag, "--disk takes"]);
    }
    for (given, what, flag) in [
        (&disk, "the profile of a disk", "give it as --disk"),
        (&machine, "a machine to plan for", "give it as --machine of 'hotset plan'"),
    ] {
        refused(&["compare", "--link", given], &[given, what, flag, "--link takes"]);
        let replayed = ["compare", "--dense-bytes", "1MiB", "--machine", given];
        refused(&replayed, &[given, what, flag, "--machine takes"]);
    }
    let plan = ["plan", "--model", "OLMoE-1B-7B", "--machine"];
    refused(&[&plan[..], &[&disk]].concat(), &["the profile of a disk", "give it as --disk"]);
    let engine = ["plan", "--model", "OLMoE-1B-7B", "--machine", "rtx-4090", "--engine"];
    refused(&[&engine[..], &[&link]].concat(), &["the profile of a link", "--engine takes"]);
    // What is no profile at all is told with line and column, as ever.
    refused(&["compare", "--link", &broken], &["broken.toml", "line 1"]);
    refused(&[&tiers[..], &[&broken]].concat(), &["broken.toml", "line 1"]);
    stdout(&[&tiers[..], &[&disk, "--policy", "lru", "--capacity", "25%"]].concat());
}

#[test]
fn timings_that_no_disk_has_are_refused_and_bad_fits_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let (timings, profile) = (folder.path().join("t.csv"), folder.path().join("d.toml"));
    let [timings, profile] = [&timings, &profile].map(|path| path.to_str().unwrap());
    let put = |rows: &str| {
        std::fs::write(timings, format!("request_bytes,queue_depth,seconds\n{rows}")).unwrap();
    };
    put("65536,1,86400\n");
    refused(&["link", "fit", timings, "-o", profile], &["65536 bytes", "are `seconds` in seconds"]);
    assert!(!std::path::Path::new(profile).exists(), "nothing was written");
    put("4096,1,0.01\n65536,1,0.001\n4096,8,0.09\n65536,8,0.009\n");
    let fitted = hotset(&["link", "fit", timings, "-o", profile]);
    assert!(fitted.status.success() && stderr(&fitted).contains("the disk fits badly"));
    let tiers = ["compare", "--policy", "lru", "--capacity", "25%", "--host-slots", "50%"];
    stdout(&[&tiers[..], &["--disk", profile]].concat());
}

#[test]
fn values_that_would_do_nothing_are_refused() {
    let few = ["compare", "--policy", "lru", "--capacity", "25%", "--link", "h200-pcie"];
    for (miss, told) in [
        ("cpu-layers:n=17", "the trace has: 16 layers; give at most 16"),
        ("bias:keep=99", "64 experts a layer; give at most 64"),
        ("top:k=99", "8 experts a token and layer; give at most 8"),
        ("upload-cap:n=0", "n = 0 copies nothing: give at least 1, or miss handler 'host'"),
    ] {
        refused(&[&few[..], &["--miss", miss]].concat(), &[told]);
    }
    for miss in ["cpu-layers:n=16", "top:k=8"] {
        stdout(&[&few[..], &["--miss", miss]].concat());
    }
    let kept = hotset(&[&few[..], &["--miss", "bias:keep=8"]].concat());
    assert!(stderr(&kept).contains("replaces none of a token's 8 experts"), "{}", stderr(&kept));
    refused(&[&few[..], &["--schedule="]].concat(), &["no change is given", "1000:25%"]);
    refused(&[&few[..], &["--schedule", " , "]].concat(), &["no change is given"]);
}

#[test]
fn small_traces_and_devices_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let (ids, one) = (folder.path().join("one.txt"), folder.path().join("one.hst"));
    std::fs::write(&ids, "0\n0\n0\n").unwrap();
    let [ids, one] = [&ids, &one].map(|path| path.to_str().unwrap());
    stdout(&["trace", "import", "--from", "ids", ids, "-o", one]);
    refused(
        &["compare", one],
        &["12.5% is less than one slot", "1 expert in all", "at least 100%"],
    );
    if cfg!(unix) {
        let plan = ["plan", "--model", "OLMoE-1B-7B", "--machine", "rtx-4090", "--histogram"];
        let zeros = [&plan[..], &["/dev/zero"]].concat();
        refused(&zeros, &["/dev/zero", "a file of counts is read more than once"]);
    }
}

#[test]
fn formats_may_be_mixes_and_points_say_how_fast_an_engine_was() {
    let plan = ["plan", "--model", "OLMoE-1B-7B", "--machine", "rtx-4090"];
    let varied =
        [&plan[..], &["--vary", "format=bf16,Q8_0,Q4_K_M", "--engine", "llama.cpp"]].concat();
    let report = json(&varied);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    for point in points.iter().filter(|point| point["verdict"] == "resident") {
        let fast = point["engine_speed"]["tokens_per_s"].as_f64().unwrap();
        assert!(fast > 0.0, "{point}");
    }
    assert!(points[2]["engine_speed"].is_object(), "{points:?}");
    let quant = json(&[&plan[..], &["--quant", "Q4_K_M", "--engine", "llama.cpp"]].concat());
    assert_eq!(points[2]["engine_speed"], quant["engine_speed"], "as the plan of that mix alone");
    assert!(stdout(&varied).lines().all(|line| line.chars().count() <= 80));
    assert!(stdout(&[&varied[..], &["--format", "csv"]].concat()).contains("engine_tokens_per_s"));
    let both = [&varied[..], &["--rest-format", "bf16"]].concat();
    refused(&both, &["leave --rest-format out"]);
    let wrong = [&plan[..], &["--vary", "format=Q4_K_Q"]].concat();
    refused(&wrong, &["--vary format=Q4_K_Q", "GGUF mix"]);
}
