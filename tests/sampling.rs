//! `--sample`: some sequences for all of them, with intervals.

use serde_json::Value;

use crate::common::{hotset, json, refused, shared, stderr, stdout};

const FEW: [&str; 4] = ["--policy", "lru,belady", "--capacity", "25%"];

/// A result without what a sample adds to it, and the intervals of its rows.
fn taken_out(mut report: Value) -> (Value, Vec<Value>) {
    report["settings"].as_object_mut().unwrap().remove("sample").unwrap();
    report["warnings"]
        .as_array_mut()
        .unwrap()
        .retain(|told| !told.as_str().unwrap().contains("sample"));
    let rows = report["rows"].as_array_mut().unwrap();
    let sampled =
        rows.iter_mut().map(|row| row.as_object_mut().unwrap().remove("sampled").unwrap());
    let sampled = sampled.collect();
    (report, sampled)
}

#[test]
fn all_sequences_give_what_no_sample_gives_with_intervals_around_it() {
    let kinds: [(&str, &[&str]); 7] = [
        ("compare", &[]),
        ("compare", &["--no-timeline", "--scope", "layer"]),
        ("compare", &["--semantics", "sequential"]),
        ("compare", &["--train", "50%", "--prefetch", "ahead"]),
        ("compare", &["--shuffle", "tokens"]),
        ("compare", &["--host-slots", "50%", "--disk", "nvme-gen4"]),
        ("sweep", &["--capacity", "25%,50%"]),
    ];
    for (command, flags) in kinds {
        let flags = [&[command][..], &FEW, flags].concat();
        let plain = json(&flags);
        let (all, intervals) = taken_out(json(&[&flags[..], &["--sample", "100%"]].concat()));
        assert_eq!(all, plain, "{flags:?}");
        for (row, sampled) in plain["rows"].as_array().unwrap().iter().zip(&intervals) {
            let around = |interval: &Value, figure: &Value| {
                assert_eq!(interval["estimate"], *figure, "{flags:?}");
                let end = |name: &str| interval[name].as_f64();
                if let (Some(low), Some(high)) = (end("low"), end("high")) {
                    let figure = figure.as_f64().unwrap();
                    assert!(low <= figure && figure <= high, "{interval}");
                    assert!(high - low <= 0.4 * figure, "{interval}");
                } else {
                    assert!(sampled["sequences"].as_u64().unwrap() < 5, "{sampled}");
                }
            };
            around(&sampled["hit_rate"], &row["hit_rate"]);
            for (link, price) in
                row["links"].as_array().unwrap().iter().zip(sampled["links"].as_array().unwrap())
            {
                let of = format!("{}_ms_per_token", price["price"].as_str().unwrap());
                around(&price["ms_per_token"], &link[&of]);
            }
        }
    }
}

#[test]
fn the_seed_chooses_and_threads_do_not() {
    let flags = [&["compare"][..], &FEW, &["--sample", "25%", "--format", "json"]].concat();
    let with = |more: &[&str]| stdout(&[&flags[..], more].concat());
    let first = with(&["--threads", "1"]);
    assert_eq!(first, with(&["--threads", "3"]));
    assert_eq!(first, with(&["--seed", "0"]));
    let digest = |text: &str| -> Value {
        serde_json::from_str::<Value>(text).unwrap()["settings"]["sample"]["digest"].clone()
    };
    assert_ne!(digest(&first), digest(&with(&["--seed", "1"])));
    // Whole sequences: a quarter of 48, each of 256 generated tokens.
    let report: Value = serde_json::from_str(&first).unwrap();
    let sample = &report["settings"]["sample"];
    assert_eq!((&sample["sequences"], &sample["of_sequences"]), (&12.into(), &48.into()));
    assert_eq!(sample["more_to_halve"], 36);
    assert_eq!(report["trace"]["tokens"], 21_504, "the trace is the whole one");
    let decode = |row: &&Value| row["phase"] == "decode" && row["window"] == "all";
    let row = report["rows"].as_array().unwrap().iter().find(decode).unwrap();
    assert_eq!((&row["tokens"], &row["sampled"]["sequences"]), (&(12 * 256).into(), &12.into()));
}

#[test]
fn people_are_told_the_intervals_and_what_would_halve_them() {
    let flags = [&["compare"][..], &FEW, &["--sample", "25%"]].concat();
    let table = stdout(&flags);
    for part in ["where 95% of the resamples lie", "36 more sequences", "--sample 100%", ".."] {
        let flat = table.replace('\n', " ");
        assert!(flat.contains(part), "no '{part}' in {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(stderr(&hotset(&flags)).contains("a sample of 12 of 48 sequences (25%)"));
    let csv = stdout(&[&flags[..], &["--format", "csv"]].concat());
    let heading = csv.lines().next().unwrap();
    for column in
        ["sampled_sequences", "hit_rate_low", "hit_rate_high", "ms_per_token_low:h200-pcie"]
    {
        assert!(heading.contains(column), "no '{column}' in {heading}");
    }
    let replayed = ["replay", "--policy", "lru", "--capacity", "25%", "--sample", "25%"];
    assert!(stdout(&replayed).contains("where 95% of the resamples lie"));
    let swept = ["sweep", "--policy", "lru", "--capacity", "25%,50%", "--sample", "25%"];
    assert!(stdout(&swept).contains("hit rate, %, 95% of resamples"));
    // The trace has no more than this.
    let half = hotset(&[&["compare"][..], &FEW, &["--sample", "50%"]].concat());
    assert!(
        stderr(&half)
            .contains("72 more sequences would halve the intervals (the trace has 24 more)")
    );
    let few = hotset(&[&["compare"][..], &FEW, &["--sample", "8%"]].concat());
    assert!(stderr(&few).contains("rows of 4 sequences have no interval: it needs 5 at least"));
}

#[test]
fn a_sampled_sweep_goes_on_with_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let flags = ["sweep", "--policy", "lru,lfu", "--capacity", "25%,50%", "--sample", "25%"];
    let flags = [&flags[..], &["--format", "json"]].concat();
    let resumed = [&flags[..], &["--resume", journal.to_str().unwrap()]].concat();
    let plain = stdout(&flags);
    assert_eq!(stdout(&resumed), plain);
    let text = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    std::fs::write(&journal, lines[..lines.len() - 2].concat()).unwrap();
    assert_eq!(stdout(&resumed), plain);
    refused(&[&resumed[..], &["--sample", "50%"]].concat(), &["cannot be used multiple times"]);
    let mut other = resumed.clone();
    other[6] = "50%";
    refused(&other, &["with other flags"]);
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one.hst");
    let one = one.to_str().unwrap();
    stdout(&["trace", "slice", "--sequences", "0", "-o", one]);
    refused(
        &["compare", one, "--sample", "50%"],
        &["the trace has one sequence", "leave --sample out"],
    );
    refused(
        &["compare", "--sample", "3%"],
        &["3% of 48 sequences are 1", "at least 2", "give --sample 4% or more"],
    );
    refused(&["sweep", "--sample", "0%"], &["'0%' is not a share of the sequences"]);
    refused(&["replay", "--sample", "101%"], &["above 0% and up to 100%"]);
    refused(&["advise", "--sample", "10%"], &["advise draws its own intervals", "--sample"]);
    let batches = ["compare", "--sample", "50%", "--concurrency", "4"];
    refused(&batches, &["steps of this run hold several", "leave --concurrency out, or --sample"]);
    stdout(&[&["compare", "--sample", "50%", "--concurrency", "1"][..], &FEW].concat());
    let composed = folder.path().join("composed.hst");
    let composed = composed.to_str().unwrap();
    stdout(&["trace", "compose", "--concurrency", "4", "-o", composed]);
    let recorded = [&["compare", composed, "--sample", "50%"][..], &FEW].concat();
    refused(&recorded, &["give --concurrency 1 to run the recorded requests one after another"]);
    stdout(&[&recorded[..], &["--concurrency", "1"]].concat());
}

/// Over many seeds the interval has the whole trace's figure about as often as it says.
#[test]
fn the_interval_has_the_whole_traces_figure_about_as_often_as_it_says() {
    let Some(routes) = shared("data/h200-moe/routes.npz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("moe.hst");
    let trace = trace.to_str().unwrap();
    stdout(&["trace", "import", routes.to_str().unwrap(), "-o", trace]);
    let flags =
        ["compare", trace, "--policy", "lru,s3-fifo", "--capacity", "25%", "--phase", "decode"];
    let flags =
        [&flags[..], &["--expert-size", "3MiB", "--link", "h200-pcie", "--no-timeline"]].concat();
    let of = |more: &[&str]| json(&[&flags[..], more].concat())["rows"].clone();
    let whole = |rows: &Value| -> Vec<Value> {
        rows.as_array().unwrap().iter().filter(|row| row["window"] == "all").cloned().collect()
    };
    let full = whole(&of(&[]));
    let (mut tried, mut hit, mut ms) = (0, 0, 0);
    for seed in 0..60 {
        let seed = seed.to_string();
        for (row, full) in whole(&of(&["--sample", "12.5%", "--seed", &seed])).iter().zip(&full) {
            let has = |interval: &Value, figure: &Value| {
                let of = |name: &str| interval[name].as_f64().unwrap();
                let figure = figure.as_f64().unwrap();
                usize::from(of("low") <= figure && figure <= of("high"))
            };
            let serial = "serial_ms_per_token";
            tried += 1;
            hit += has(&row["sampled"]["hit_rate"], &full["hit_rate"]);
            ms += has(&row["sampled"]["links"][0]["ms_per_token"], &full["links"][0][serial]);
        }
    }
    // 95% of 120, and what chance does to that of 60 draws.
    assert!(hit * 100 >= tried * 88 && ms * 100 >= tried * 88, "{hit} {ms} of {tried}");
}
