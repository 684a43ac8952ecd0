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
    let told = |text: &str| {
        std::fs::write(&path, text).unwrap();
        refused(&["verify-plan", path.to_str().unwrap()])
    };
    assert!(told("a,b\n1,2\n").contains("its header has a, b"));
    assert!(told("id,value\n1,2\n").contains("lacks engine, model, kind, unit"));
    let head = "id,engine,model,kind,unit,value\n";
    assert!(told(&format!("{head}1,vLLM,M,kv,GiB,much\n")).contains("line 2, column value"));
    let told = refused(&["plan", "--model", "OLMoE-1B-7B", "--machine", "h200", "--engine", "vlm"]);
    assert!(told.contains("did you mean 'vLLM'"), "{told}");
}
