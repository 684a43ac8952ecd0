//! `hotset verify-plan` from outside: JSON, refusals, and the page that explains it.

use crate::common::{json, refused, stdout};

#[test]
fn rows_and_summary_of_reports() {
    let report = json(&["verify-plan", "docs/reported.csv"]);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    for row in rows {
        for name in ["id", "kind", "reported", "predicted", "low", "high", "inside", "why_not"] {
            assert!(row.get(name).is_some(), "{name} of {row}");
        }
        assert_ne!(row["predicted"].is_null(), row["why_not"].is_null(), "{row}");
    }
    let summary = report["summary"].as_array().unwrap();
    let kv = summary.iter().find(|row| row["kind"] == "kv").unwrap();
    assert_eq!((&kv["engine"], &kv["rows"]), (&"llama.cpp".into(), &2.into()));
    assert_eq!((&kv["answered"], &kv["inside"]), (&1.into(), &1.into()));
    let csv = stdout(&["verify-plan", "docs/reported.csv", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 8, "{csv}");
    let table = stdout(&["verify-plan", "docs/reported.csv"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn files_that_are_no_reports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let told = |text: &str, parts: &[&str]| {
        std::fs::write(&path, text).unwrap();
        refused(&["verify-plan", path.to_str().unwrap()], parts);
    };
    told("a,b\n1,2\n", &["its header has a, b"]);
    told("id,value\n1,2\n", &["lacks engine, model, kind, unit"]);
    let head = "id,engine,model,kind,unit,value\n";
    told(&format!("{head}1,vLLM,M,kv,GiB,much\n"), &["line 2, column value", "'much'"]);
}

#[test]
fn engines_of_a_plan_are_named() {
    let plan = ["plan", "--model", "OLMoE-1B-7B", "--machine", "h200"];
    refused(&[&plan[..], &["--engine", "vlm"]].concat(), &["did you mean 'vLLM'?", "colibri"]);
    refused(&[&plan[..], &["--ubatch", "512"]].concat(), &["--engine llama.cpp"]);
    let lines = |engine: &str| {
        let report = json(&[&plan[..], &["--engine", engine]].concat());
        let lines = report["fit"]["accelerator"].as_array().unwrap().clone();
        lines.iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(lines("algorithm").contains(&"graphs".to_owned()));
    assert!(lines("llama-cpp").contains(&"compute buffer".to_owned()), "as it was called");
    assert!(!lines("ik_llama.cpp").contains(&"graphs".to_owned()));
}
