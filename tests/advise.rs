//! Settings ranked: the answer, what it rests on, and what to type.

use serde_json::Value;

use crate::common::{hotset, json, refused, stderr, stdout};

/// A grid that is small enough for a test.
const SMALL: [&str; 9] = [
    "advise",
    "--policy",
    "lru,s3-fifo",
    "--scope",
    "global,layer",
    "--miss",
    "fetch,balanced",
    "--prefetch",
    "none,ahead",
];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn rows(advice: &Value) -> &Vec<Value> {
    advice["answers"][0]["rows"].as_array().unwrap()
}

/// What is typed gives each row's time to the digit, and plain LRU is not among the rows.
#[test]
fn every_row_is_reproduced_by_its_command() {
    let advice = json(&SMALL);
    let rows = rows(&advice);
    // 2 policies, 2 scopes, 2 ways, 2 prefetchers, less plain LRU.
    assert_eq!(rows.len(), 15);
    let plain = &advice["answers"][0]["plain"];
    for row in rows.iter().step_by(4).chain([plain]) {
        let command = row["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let replayed = json(&words);
        let [first, ..] = &replayed["rows"].as_array().unwrap()[..] else { panic!("{command}") };
        let time = &first["links"][0]["timeline_ms_per_token"];
        assert_eq!(number(time), number(&row["ms_per_token"]["estimate"]), "{command}");
        assert_eq!(first["hit_rate"], row["hit_rate"], "{command}");
        assert_eq!(first["mib_per_token"], row["mib_per_token"], "{command}");
    }
    let times: Vec<f64> = rows.iter().map(|row| number(&row["ms_per_token"]["estimate"])).collect();
    assert!(times.is_sorted(), "{times:?}");
    for row in rows {
        let time = &row["ms_per_token"];
        let [low, middle, high] = ["low", "estimate", "high"].map(|end| number(&time[end]));
        assert!(low < middle && middle < high, "{row}");
    }
    // The split wins by far on this link, and its interval lies below nothing.
    let best = &rows[number(&advice["answers"][0]["best"]) as usize];
    assert_eq!(best["miss"], "balanced");
    assert!(number(&best["change"]["high"]) < -0.6 && number(&best["change"]["p_holm"]) < 0.05);
    assert_eq!((&advice["units"], &advice["unit_count"]), (&"sequences".into(), &48.into()));
}

#[test]
fn the_advice_is_the_same_on_any_number_of_threads() {
    let on = |threads: &'static str| stdout(&[&SMALL[..], &["--threads", threads]].concat());
    let [one, three] = ["1", "3"].map(on);
    assert_eq!(one, three);
    let first = one.lines().next().unwrap();
    assert!(first.starts_with("Best over h200-pcie with 256 of 1024 slots: "), "{first}");
    assert!(one.lines().all(|line| line.chars().count() <= 80), "{one}");
}

#[test]
fn it_says_where_nothing_beats_plain_lru() {
    let worse = ["advise", "--policy", "mru,lfu", "--scope", "global", "--miss", "fetch"];
    let worse = [&worse[..], &["--prefetch", "none"]].concat();
    let told = stdout(&worse);
    assert!(
        told.starts_with("Nothing beats plain LRU beyond noise over h200-pcie with 256"),
        "{told}"
    );
    let advice = json(&worse);
    assert_eq!((rows(&advice).len(), &advice["answers"][0]["best"]), (2, &Value::Null));
    // Alone it has nobody to beat it.
    let alone =
        ["advise", "--policy", "lru", "--scope", "global", "--miss", "fetch", "--prefetch", "none"];
    assert!(stdout(&alone).contains("0 other settings were tried"));
    // With room for every expert nothing is left to gain.
    let all = ["advise", "--policy", "s3-fifo", "--miss", "fetch", "--prefetch", "none"];
    let all = stdout(&[&all[..], &["--capacity", "100%"]].concat());
    assert!(all.starts_with("Nothing beats plain LRU beyond noise"), "{all}");
}

#[test]
fn what_changes_the_model_is_marked_and_never_the_answer() {
    let lossy = ["advise", "--policy", "lru", "--scope", "global", "--prefetch", "none", "--miss"];
    let advice = json(&[&lossy[..], &["fetch,drop:below=0.2,bias,low-precision"]].concat());
    assert_eq!(advice["answers"][0]["best"], Value::Null, "fetching is plain LRU itself");
    for row in rows(&advice) {
        assert!(number(&row["open_loop"]["weight_lost"]) > 0.0, "{row}");
        assert_eq!(row["open_loop"]["label"], "open loop: routing not changed downstream");
    }
    assert!(number(&rows(&advice)[0]["change"]["high"]) < 0.0, "though they are faster");
    let folder = tempfile::tempdir().unwrap();
    let (routes, trace) = (folder.path().join("r.ids"), folder.path().join("r.hst"));
    std::fs::write(&routes, "1\n2\n3\n1\n2\n").unwrap();
    let (routes, trace) = (routes.to_str().unwrap(), trace.to_str().unwrap());
    stdout(&["trace", "import", "--from", "ids", routes, "-o", trace]);
    let small =
        ["--expert-size", "1MiB", "--capacity", "2", "--policy", "lru", "--scope", "global"];
    let bias = [&["advise", trace][..], &small, &["--miss", "bias", "--prefetch", "none"]].concat();
    refused(&bias, &["miss handler 'bias' needs the column 'weights'"]);
    // Without sizes there is no time to rank by.
    refused(
        &["advise", trace, "--capacity", "2"],
        &["size of an expert is not recorded", "--expert-size"],
    );
}

#[test]
fn few_sequences_are_cut_into_stretches_and_a_link_without_a_host_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("two.hst");
    let trace = trace.to_str().unwrap();
    stdout(&["trace", "slice", "--sequences", "0..2", "-o", trace]);
    let advice = json(&[&["advise", trace][..], &SMALL[1..]].concat());
    assert_eq!(advice["units"], "stretches of steps");
    let output = hotset(&[&SMALL[..], &["--link", "h200-nvlink"]].concat());
    let told = stderr(&output);
    assert!(told.contains("link 'h200-nvlink' does not say how fast the host's cores"), "{told}");
    assert!(told.contains("balanced left out there"), "{told}");
    // Trained settings leave the training part out for all.
    let trained = ["advise", "--policy", "lru,static", "--scope", "global", "--miss", "fetch"];
    let advice = json(&[&trained[..], &["--prefetch", "none"]].concat());
    assert_eq!((number(&advice["train"]), &advice["unit_count"]), (50.0, &24.into()));
    assert!(rows(&advice)[0]["command"].as_str().unwrap().ends_with("--train 50%"));
}

/// One comparison under several ways to handle misses is each of them by itself.
#[test]
fn several_ways_to_handle_misses_are_compared_at_once() {
    let with = |misses: &'static str| {
        json(&[
            "compare",
            "--policy",
            "lru,belady",
            "--capacity",
            "25%",
            "--phase",
            "decode",
            "--link",
            "h200-pcie",
            "--miss",
            misses,
        ])
    };
    let both = with("fetch,upload-cap:n=1");
    let mut rows = both["rows"].as_array().unwrap().clone();
    let mut apart = Vec::new();
    for misses in ["fetch", "upload-cap:n=1"] {
        apart.extend(with(misses)["rows"].as_array().unwrap().clone());
        let of = rows.iter().filter(|row| row["miss"] == misses).count();
        assert_eq!(of, rows.len() / 2);
    }
    rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("miss")));
    assert_eq!(rows, apart);
    assert_eq!(both["settings"]["misses"].as_array().unwrap().len(), 2);
    let table = stdout(&[
        "compare",
        "--policy",
        "lru",
        "--capacity",
        "25%",
        "--phase",
        "decode",
        "--link",
        "h200-pcie",
        "--miss",
        "fetch,balanced,hybrimoe",
    ]);
    assert!(table.contains("policy  misses"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    refused(&["sweep", "--miss", "fetch,host"], &["--miss names 2 ways", "hotset compare"]);
    refused(&["compare", "--miss", "host,host"], &["'host' is there twice"]);
}
