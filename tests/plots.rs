//! Pictures as files, and what shells and `man` are told.

use crate::common::{hotset, refused, stdout};

#[test]
fn a_picture_has_its_rows_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, other, pixels) = (at("one.svg"), at("other.svg"), at("curve.png"));
    let flags = ["compare", "--policy", "lru,belady", "--capacity", "25%,50%", "--threads"];
    for (plot, threads) in [(&one, "1"), (&other, "2"), (&pixels, "2")] {
        stdout(&[&flags[..], &[threads, "--plot", plot]].concat());
    }
    let svg = std::fs::read_to_string(&one).unwrap();
    assert_eq!(svg, std::fs::read_to_string(&other).unwrap());
    // No letters: outlines look the same where the font is not installed.
    assert!(svg.starts_with("<svg ") && !svg.contains("<text") && !svg.contains("NaN"));
    let rows = std::fs::read_to_string(format!("{one}.csv")).unwrap();
    assert!(rows.starts_with("phase,scope,link,policy,capacity_gib,ms_per_token\n"), "{rows}");
    // Two policies, sizes, phases and links.
    assert_eq!(rows.lines().count(), 1 + 16);
    assert!(std::fs::read(&pixels).unwrap().starts_with(b"\x89PNG\r\n"));
    refused(&["compare", "--plot", "x.pdf"], &["--plot", ".svg or .png"]);
    refused(&["compare", "--plot", &one, "-o", &format!("{one}.csv")], &["one.svg.csv"]);
}

#[test]
fn shells_and_man_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    assert_eq!(hotset(&["man", at]).status.code(), Some(0));
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("verify-live") && script.contains("markdown"), "{shell}");
    }
    let page = std::fs::read_to_string(folder.path().join("hotset-trace-import.1")).unwrap();
    assert!(page.contains("hotset trace import") && page.contains(r"\-\-top\-k"), "{page}");
    refused(&["man", "/dev/null/man"], &["/dev/null/man"]);
}
