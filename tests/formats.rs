//! One result in every format: the same numbers, and texts out of files that stay text.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::common::{json, stdout};
use hotset::traces::{Codec, Ids, LayerShape, Shape, TraceBuilder, write_hst};

/// The rows of this name in a page, each by its columns' names.
fn rows(html: &str, name: &str) -> Vec<BTreeMap<String, Value>> {
    let (_, rest) = html.split_once("id=\"page-data\">").unwrap();
    let page: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let data = page["data"].as_array().unwrap().iter().find(|data| data["name"] == name).unwrap();
    let column = |column: &Value, row: usize| match &column["texts"] {
        Value::Null => column["values"][row].clone(),
        texts => column["values"][row].as_u64().map_or(Value::Null, |i| texts[i as usize].clone()),
    };
    let columns = data["columns"].as_array().unwrap();
    let named = |one: &Value, row| (one["name"].as_str().unwrap().to_owned(), column(one, row));
    let length = data["length"].as_u64().unwrap() as usize;
    (0..length).map(|row| columns.iter().map(|one| named(one, row)).collect()).collect()
}

/// A line of a table by this name behind a heading with all of `parts`.
fn line<'a>(text: &'a str, parts: &[&str], name: &str) -> &'a str {
    let heading = |line: &&str| parts.iter().all(|part| line.contains(part));
    let mut below = text.lines().skip_while(|line| !heading(line));
    // Markdown has the best in bold.
    let first = |line: &str| {
        line.trim_start_matches("| ").split(' ').next().map(|word| word.replace("**", ""))
    };
    let named = |line: &&str| first(line).as_deref() == Some(name);
    below.find(named).unwrap_or_else(|| panic!("no {name} below {parts:?}"))
}

/// But for the last place, which the parser of JSON may read otherwise.
fn same_number(one: f64, other: f64) -> bool {
    (one - other).abs() <= 2.0 * f64::EPSILON * one.abs()
}

#[test]
fn numbers_are_the_same_in_every_format() {
    let flags = ["compare", "--policy", "lru,td-table,belady", "--capacity", "12.5%,50%"];
    let flags = [&flags[..], &["--link", "h200-pcie", "--machine", "h200"]].concat();
    let flags = [&flags[..], &["--dense-bytes", "20MiB"]].concat();
    let report = json(&flags);
    let [table, csv, markdown, html] = ["table", "csv", "markdown", "html"]
        .map(|format| stdout(&[&flags[..], &["--format", format]].concat()));
    let shown = rows(&html, "rows");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let flat: Vec<BTreeMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();

    let all = report["rows"].as_array().unwrap().iter().filter(|row| row["window"] == "all");
    let mut compared = 0;
    for row in all {
        let text = |name: &str| row[name].as_str().unwrap();
        let number = |name: &str| row[name].as_f64().unwrap();
        let (policy, phase, slots) = (text("policy"), text("phase"), &row["capacity_slots"]);
        let (link, in_slots) = (&row["links"][0], slots.to_string());
        let ms = link["timeline_ms_per_token"].as_f64().unwrap();

        let same = |one: &&BTreeMap<String, String>| {
            one["policy"] == policy
                && one["phase"] == phase
                && one["window"] == "all"
                && one["capacity_slots"] == in_slots
        };
        let in_csv = flat.iter().find(same).unwrap();
        for (name, value) in [
            ("misses", number("misses")),
            ("hit_rate", number("hit_rate")),
            ("moved_per_token", number("moved_per_token")),
            ("belady_ratio", number("belady_ratio")),
            ("timeline_ms_per_token:h200-pcie", ms),
        ] {
            let told = in_csv[name].parse().unwrap();
            assert!(same_number(told, value), "{name} of {in_csv:?}");
        }

        let same = |one: &&BTreeMap<String, Value>| {
            one["policy"] == policy && one["phase"] == phase && one["capacity_slots"] == *slots
        };
        let in_page = shown.iter().find(same).unwrap();
        for (name, value) in [
            ("hit_percent", number("hit_rate") * 100.0),
            ("mib_per_token", number("mib_per_token")),
            ("belady_ratio", number("belady_ratio")),
            ("ms_per_token", ms),
            ("tokens_per_s", 1000.0 / ms),
            ("exposed_demand_ms", link["time"]["exposed_demand_ms"].as_f64().unwrap()),
        ] {
            let told = in_page[name].as_f64().unwrap();
            assert!(same_number(told, value), "{name} of {in_page:?}");
        }

        let size = format!("{slots} of 1,024 slots");
        for text in [&table, &markdown] {
            let line = line(text, &[phase, &size], policy);
            for figure in [
                format!("{:.2}", number("hit_rate") * 100.0),
                format!("{:.2}", number("moved_per_token")),
                format!("{ms:.3}"),
                format!("{:.3}", number("belady_ratio")),
            ] {
                assert!(line.contains(&figure), "no {figure} in '{line}'");
            }
        }
        compared += 1;
    }
    assert_eq!((compared, shown.len()), (12, 12));
}

const SCRIPT: &str = "<script>alert(1)</script>";
const FORMULA: &str = "=cmd|' /C calc'!A0";
const IMAGE: &str = "![x](http://example.invalid/x)<img src=x onerror=alert(2)>";

fn planted_trace(path: &Path) {
    let layer = |number| LayerShape { number, experts: 8, top_k: 1, expert_bytes: 1 << 20 };
    let shape = Shape::new(vec![layer(0), layer(1)]).unwrap();
    let ids = Ids::U16(vec![3, 1, 7, 2, 3, 1, 4, 2]);
    let trace = TraceBuilder::new(format!("{SCRIPT}{IMAGE}"), shape, ids).build().unwrap();
    write_hst(&trace, path, Codec::Raw).unwrap();
}

#[test]
fn what_is_planted_in_names_stays_text() {
    let folder = tempfile::tempdir().unwrap();
    let [trace, link] = ["trace.hst", "link.toml"].map(|name| folder.path().join(name));
    planted_trace(&trace);
    let profile = format!(
        "name = \"{FORMULA} {SCRIPT}\"\nkind = \"pcie\"\ndescription = \"{SCRIPT}\"\n\
         source = \"{SCRIPT}\"\ndate = \"today\"\n[cost.bandwidth]\ngib_s = 20\n"
    );
    std::fs::write(&link, profile).unwrap();
    let [trace, link] = [&trace, &link].map(|path| path.to_str().unwrap());
    for command in ["compare", "sweep", "replay"] {
        let capacity: &[&str] = &["--capacity", "50%"];
        let flags = [&[command, trace, "--policy", "lru", "--link", link], capacity].concat();
        let [csv, markdown, html] = ["csv", "markdown", "html"]
            .map(|format| stdout(&[&flags[..], &["--format", format]].concat()));
        // The page's own: its data, two libraries, its script.
        assert_eq!(html.matches("<script").count(), 4, "{command}");
        assert!(!html.contains("<img") && !html.contains("alert(1)</script>"), "{command}");
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{command}");
        assert!(html.contains("\\u003cscript\\u003ealert(1)"), "{command}");
        assert!(!html.contains("src=\"http") && !html.contains("<link"), "{command}");
        assert!(!markdown.contains("<script") && !markdown.contains("<img"), "{markdown}");
        assert!(!markdown.contains("](http"), "{markdown}");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
        for record in reader.records() {
            for field in &record.unwrap() {
                assert!(!field.starts_with(['=', '@', '\t']), "{command}: {field}");
            }
        }
    }
}
