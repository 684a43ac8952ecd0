//! One setting in full, and the flags of serving and time.

use crate::common::{hotset, json, refused, stderr, stdout};

const TIMED: [&str; 8] = [
    "--machine",
    "h200",
    "--dense-bytes",
    "8MiB",
    "--phase",
    "decode",
    "--prefetch",
    "ahead:width=4",
];

fn small(command: &'static str) -> Vec<&'static str> {
    [&[command, "--policy", "lru", "--capacity", "25%"], &TIMED[..]].concat()
}

fn narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
fn a_replay_in_full_is_the_comparison_and_more() {
    let full = json(&small("replay"));
    let compared = json(&small("compare"));
    assert_eq!(full["rows"], compared["rows"]);
    assert_eq!(full["settings"], compared["settings"]);
    assert_eq!(full["settings"]["machine"], "h200");
    assert_eq!(full["layers"].as_array().unwrap().len(), 16);
    let row = &full["rows"][0];
    let sum = |name: &str| -> u64 {
        full["layers"].as_array().unwrap().iter().map(|layer| layer[name].as_u64().unwrap()).sum()
    };
    for name in ["accesses", "hits", "demand_fetches", "prefetches"] {
        assert_eq!(row[name].as_u64(), Some(sum(name)), "{name}");
    }
    for times in full["step_times"].as_array().unwrap() {
        let ms = ["p50_ms", "p90_ms", "p99_ms", "max_ms"].map(|name| times[name].as_f64().unwrap());
        assert!(ms.is_sorted() && ms[0] > 0.0, "{times}");
    }
    let table = stdout(&small("replay"));
    narrow(&table);
    for part in ["p99", "exposed", "timeline", "decode by layer", "x\nBelady", "steps "] {
        let found = part.split('\n').all(|part| table.contains(part));
        assert!(found, "no '{part}' in {table}");
    }
    narrow(&stdout(&["replay"]));
}

#[test]
fn trace_events_parse_and_hold_what_ran() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let path = file.to_str().unwrap();
    let args = [&small("replay")[..], &["--trace-events", path, "--most-events", "5000"]].concat();
    let output = hotset(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("more did not fit"), "{}", stderr(&output));
    let trace: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(spans.len(), 5000);
    for lane in [0, 1] {
        assert!(spans.iter().any(|span| span["tid"] == lane), "lane {lane} is empty");
    }
    assert!(spans.iter().all(|span| span["dur"].as_f64().unwrap() > 0.0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file stayed");
    let args = [&small("replay")[..], &["--trace-events", "/nowhere/x.json"]].concat();
    refused(&args, &["cannot write /nowhere/x.json"]);
}

#[test]
fn the_same_bytes_with_one_and_two_threads_on_the_timeline() {
    let run = |command, threads| {
        stdout(&[&small(command)[..], &["--format", "json", "--threads", threads]].concat())
    };
    assert_eq!(run("compare", "1"), run("compare", "2"));
    assert_eq!(run("replay", "1"), run("replay", "2"));
}

#[test]
fn prices_keep_their_order_whatever_is_served_how() {
    let settings: [&[&str]; 5] = [
        &["--copies", "demand-first", "--wait", "hits-first"],
        &["--copies", "two-engines", "--prefill", "bypass"],
        &["--concurrency", "8", "--arrival", "shuffled", "--seed", "3"],
        &["--schedule", "1000:20%,5000:12.5%"],
        &["--miss", "host", "--link", "h200-pcie", "--host-threads", "16"],
    ];
    for setting in settings {
        let args = [&small("compare")[..], setting, &["--no-contention"]].concat();
        let report = json(&args);
        assert_eq!(report["settings"]["contention"], false);
        for row in report["rows"].as_array().unwrap() {
            for link in row["links"].as_array().unwrap() {
                let [serial, timeline, hidden, perfect] =
                    ["serial", "timeline", "prefetch_hidden", "perfect"]
                        .map(|price| link[format!("{price}_ms_per_token")].as_f64().unwrap());
                assert!(serial >= timeline && timeline >= perfect, "{setting:?}: {link}");
                assert!(serial >= hidden && hidden >= perfect, "{setting:?}: {link}");
            }
        }
    }
}

#[test]
fn a_streamed_prefill_costs_the_decode_after_it() {
    let args = ["compare", "--policy", "lru", "--capacity", "25%", "--compute-ms", "3"];
    let of = |prefill| {
        let report = json(&[&args[..], &["--prefill", prefill]].concat());
        assert_eq!(report["settings"]["serving"]["prefill"], prefill);
        let rows = report["rows"].as_array().unwrap();
        let decode = |row: &&serde_json::Value| row["phase"] == "decode" && row["window"] == "all";
        rows.iter().find(decode).unwrap()["refetches"].as_u64().unwrap()
    };
    assert_eq!((of("on-demand"), of("bypass")), (0, 0));
    assert!(of("streamed") > 0);
}

#[test]
fn tables_say_which_price_they_hold() {
    let timed = stdout(&small("compare"));
    narrow(&timed);
    assert!(timed.contains("Links: ms a token on the timeline"), "{timed}");
    assert!(!timed.contains("Transfers alone"), "{timed}");
    // Prices of many links get a table of their own.
    let links = "zgx-pcie,zgx-c2c,a100-pcie,h200-pcie,h200-nvlink,freetoken-pcie";
    let many = stdout(&[&small("compare")[..], &["--link", links]].concat());
    narrow(&many);
    assert!(many.contains("free") && many.contains("Belady"), "{many}");
    let alone = stdout(&["compare", "--policy", "lru", "--capacity", "25%"]);
    assert!(alone.contains("Transfers alone"), "{alone}");
    let sequential =
        ["compare", "--policy", "lru", "--capacity", "25%", "--semantics", "sequential"];
    let sequential = stdout(&sequential);
    assert!(sequential.contains("Links: serial ms a token"), "{sequential}");
    let wide = stdout(&[&small("compare")[..], &["--format", "markdown"]].concat());
    assert!(wide.contains("| h200-pcie | h200-pcie serial |"), "{wide}");
    let csv = stdout(&[&small("compare")[..], &["--format", "csv"]].concat());
    let header = csv.lines().next().unwrap();
    for price in ["serial", "timeline", "prefetch_hidden", "perfect"] {
        assert!(header.contains(&format!("{price}_ms_per_token:h200-nvlink")), "{header}");
    }
}

#[test]
fn wrong_settings_of_serving_and_time_are_refused() {
    let with = |more: &[&'static str]| [&["compare", "--policy", "lru"], more].concat();
    // 48 sequences of 192 + 256 tokens.
    refused(&with(&["--schedule", "21504:20%"]), &["past the end of the run of 21504 tokens"]);
    refused(&with(&["--schedule", "9:20%,9:10%"]), &["must ascend"]);
    refused(&with(&["--schedule", "soon"]), &["TOKENS:CAPACITY"]);
    refused(&with(&["--concurrency", "49"]), &["concurrency 49 is more than the trace's 48"]);
    refused(&with(&["--concurrency", "0"]), &["concurrency 0"]);
    refused(&with(&["--arrival", "shuffled"]), &["--concurrency"]);
    refused(&with(&["--prefetch", "magic"]), &["there are none, ahead"]);
    refused(&with(&["--prefetch", "ahead:lookahead=9"]), &["9 layers ahead"]);
    refused(&with(&["--prefill", "never"]), &["on-demand, bypass, streamed"]);
    refused(&with(&["--prefill", "streamed", "--scope", "layer"]), &["global scope"]);
    refused(&with(&["--machine", "h200"]), &["--dense-bytes"]);
    refused(&with(&["--machine", "h20", "--dense-bytes", "1"]), &["did you mean `h200`?"]);
    let both = ["--machine", "h200", "--dense-bytes", "1", "--compute-ms", "1"];
    refused(&with(&both), &["--compute-ms"]);
    refused(&with(&["--prefetch", "ahead", "--semantics", "sequential"]), &["event semantics"]);
    refused(&["replay", "--policy", "lru,fifo"], &["one policy, one scope and one capacity"]);
    refused(&["replay", "--semantics", "sequential"], &["event semantics"]);
}

/// What is shuffled, trained or placed by is prepared for both commands at once.
#[test]
fn a_replay_takes_what_a_comparison_takes() {
    for more in [
        &["--train", "50%"][..],
        &["--shuffle", "tokens", "--seed", "3"],
        &["--scope", "adaptive"],
        &["--policy", "static"],
        &["--prefetch", "popularity:learn=trained"],
        &["--no-timeline"],
    ] {
        let of = |command| {
            let setting = [command, "--policy", "lru", "--capacity", "25%", "--phase", "decode"];
            let named = more.contains(&"--policy");
            let setting =
                if named { [&setting[..1], &setting[3..]].concat() } else { setting.to_vec() };
            json(&[&setting[..], more].concat())
        };
        let (full, compared) = (of("replay"), of("compare"));
        assert_eq!(full["rows"], compared["rows"], "{more:?}");
        assert_eq!(full["settings"], compared["settings"], "{more:?}");
        let sum = |name: &str| -> u64 {
            let layers = full["layers"].as_array().unwrap().iter();
            layers.map(|layer| layer[name].as_u64().unwrap()).sum()
        };
        for name in ["accesses", "hits", "demand_fetches", "prefetches"] {
            assert_eq!(full["rows"][0][name].as_u64(), Some(sum(name)), "{more:?} {name}");
        }
    }
}

#[test]
fn help_is_grouped() {
    let help = stdout(&["compare", "--help"]);
    let place = |part: &str| help.find(part).unwrap_or_else(|| panic!("no '{part}' in {help}"));
    assert!(place("Serving:") < place("--prefetch") && place("--prefetch") < place("Time:"));
    assert!(place("Time:") < place("--machine <NAME>"));
    let replay = stdout(&["replay", "--help"]);
    assert!(replay.contains("--trace-events") && replay.contains("[default: 25%]"), "{replay}");
}
