//! The schemas in `docs/schema`: what commands write is valid, and what is not is found.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{hotset, json as result, shared};

fn schema(kind: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/{kind}.schema.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => panic!("no type {kind}"),
    }
}

/// Every breach of the schema, with its place. A keyword that is not known here is one too.
fn breaches(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().unwrap() {
        let kept = match keyword.as_str() {
            "$schema" | "title" | "description" => true,
            "const" => value == rule,
            "minimum" => value.as_f64().is_none_or(|value| value >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|value| value <= rule.as_f64().unwrap()),
            "type" => match rule {
                Value::String(kind) => is_of(value, kind),
                kinds => kinds
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|kind| is_of(value, kind.as_str().unwrap())),
            },
            "required" => {
                let missing = |name: &&Value| value.get(name.as_str().unwrap()).is_none();
                !value.is_object() || !rule.as_array().unwrap().iter().any(|name| missing(&name))
            }
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        breaches(field, schema, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    breaches(item, rule, &format!("{at}[{index}]"), found);
                }
                true
            }
            _ => false,
        };
        if !kept {
            found.push(format!("{at}: {keyword} {rule}"));
        }
    }
}

fn check(kind: &str, value: &Value) {
    let mut found = Vec::new();
    breaches(value, &schema(kind), "", &mut found);
    assert!(found.is_empty(), "{kind}: {found:?}");
}

#[test]
fn what_commands_write_is_valid() {
    let few = ["--policy", "lru,belady", "--capacity", "25%", "--link", "h200-pcie"];
    let compared = result(&[&["compare"], &few[..]].concat());
    check("compare", &compared);
    let tiers = ["--host-slots", "50%", "--disk", "nvme-gen4"];
    check("compare", &result(&[&["compare"], &few[..2], &few[4..], &tiers].concat()));
    let plain = ["--scope", "global", "--miss", "fetch", "--prefetch", "none", "--policy", "lru"];
    check("advise", &result(&[&["advise", "--capacity", "25%"], &plain[..]].concat()));
    let sequential = ["--semantics", "sequential", "--train", "50%", "--shuffle", "tokens"];
    check("compare", &result(&[&["compare"], &few[..], &sequential].concat()));
    check(
        "sweep",
        &result(&["sweep", "--policy", "lru,lfu", "--capacity", "25%,50%", "--knee", "1"]),
    );
    check("replay", &result(&["replay", "--policy", "lru", "--capacity", "25%"]));
    check("compare", &result(&[&["compare"], &few[..], &["--sample", "25%"]].concat()));
    check("sweep", &result(&[&["sweep"], &few[..], &["--sample", "8%"]].concat()));
    check("replay", &result(&["replay", "--policy", "lru", "--capacity", "25%", "--sample", "1"]));
    let plan = ["plan", "--model", "gpt-oss-120b", "--machine", "rtx-4090"];
    check("plan", &result(&plan));
    check("plan", &result(&[&plan[..], &["--context", "100000000"]].concat()));
    check("plan-what-if", &result(&[&plan[..], &["--vary", "gpu-memory=4,48"]].concat()));
    let arms = ["--arm", "semantic", "--resamples", "100"];
    check("experiment-semantic", &result(&[&["experiment", "semantic"], &arms[..]].concat()));
    let arms = ["--arm", "td-pairs", "--arm", "s3-fifo", "--resamples", "100"];
    check("experiment-ablation", &result(&[&["experiment", "ablation"], &arms[..]].concat()));
    if let (Some(live), Some(links)) = (shared("data/live"), shared("data/h200-links/links.csv")) {
        let points = live.join("points.csv");
        let [points, live, links] = [&points, &live, &links].map(|path| path.to_str().unwrap());
        check("verify-live", &result(&["verify-live", points, "--links", links, "--traces", live]));
    }
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    std::fs::write(&one, compared.to_string()).unwrap();
    std::fs::write(&other, json!({ "schema": "hotset/1", "rows": [] }).to_string()).unwrap();
    let [one, other] = [&one, &other].map(|path| path.to_str().unwrap());
    let output = hotset(&["diff", one, other, "--format", "json"]);
    check("diff", &serde_json::from_slice(&output.stdout).unwrap());
}

#[test]
fn what_is_not_valid_is_found() {
    let flags = ["compare", "--policy", "lru", "--capacity", "25%", "--no-timeline"];
    let report = result(&flags);
    let broken = |change: fn(&mut Value)| {
        let (mut report, mut found) = (report.clone(), Vec::new());
        change(&mut report);
        breaches(&report, &schema("compare"), "", &mut found);
        found
    };
    assert!(broken(|_| {}).is_empty());
    let without =
        broken(|report| drop(report["rows"][0].as_object_mut().unwrap().remove("misses")));
    assert_eq!(without.len(), 1);
    assert!(without[0].starts_with(".rows[0]: required"), "{without:?}");
    let text = broken(|report| report["rows"][1]["hits"] = "7".into());
    assert_eq!(text, [".rows[1].hits: type \"integer\""]);
    let version = broken(|report| report["schema"] = "hotset/2".into());
    assert_eq!(version, [".schema: const \"hotset/1\""]);
    let share = broken(|report| report["rows"][0]["hit_rate"] = 1.5.into());
    assert_eq!(share, [".rows[0].hit_rate: maximum 1"]);
}
