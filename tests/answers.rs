//! The pages of `docs/` cannot rot: every command in them is run, and must print what stands there.

use std::path::Path;

use crate::common::console::hold;
use crate::common::{hotset, hotset_in, shared};

/// What a command prints, whether its check passes or not.
fn printed(arguments: &[&str]) -> String {
    let output = hotset(arguments);
    assert!(matches!(output.status.code(), Some(0 | 1)), "hotset {}", arguments.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_answer_is_what_its_command_prints() {
    let text = include_str!("../docs/answers.md");
    for question in 1..=26 {
        assert!(text.contains(&format!("\n## {question}. ")), "question {question}");
    }
    assert!(hold(Path::new("docs/answers.md"), printed) >= 40);
}

#[test]
fn every_command_on_planning_is_what_it_prints() {
    assert!(hold(Path::new("docs/planning.md"), printed) > 0);
}

#[test]
fn every_receipt_is_what_its_command_prints() {
    assert!(hold(Path::new("docs/receipts.md"), printed) >= 20);
}

/// What commands write stays in a folder of its own.
#[test]
fn the_tutorial_is_what_its_commands_print() {
    let folder = tempfile::tempdir().unwrap();
    let print = |arguments: &[&str]| {
        let output = hotset_in(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "hotset {}", arguments.join(" "));
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(hold(Path::new("docs/tutorial.md"), print) >= 8);
}

#[test]
fn every_other_page_is_what_its_commands_print() {
    let held = ["answers.md", "planning.md", "receipts.md", "tutorial.md"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut pages: Vec<_> = std::fs::read_dir(folder).unwrap().map(|page| page.unwrap()).collect();
    pages.retain(|page| page.path().extension().is_some_and(|ending| ending == "md"));
    if shared("data/live").is_none() {
        pages.retain(|page| page.file_name() != "validation.md");
    }
    pages.retain(|page| !held.iter().any(|name| page.file_name() == *name));
    assert!(hold(Path::new("README.md"), printed) > 0);
    let held: usize = pages.iter().map(|page| hold(&page.path(), printed)).sum();
    assert!(held > 0);
}

#[test]
fn every_receipt_is_on_the_page() {
    let Some(seeds) = shared("receipts/seeds.toml") else { return };
    let seeds = std::fs::read_to_string(seeds).expect("the seeds");
    let page = include_str!("../docs/receipts.md");
    let ids: Vec<&str> =
        seeds.lines().filter_map(|line| line.strip_prefix("id = \"")?.split('"').next()).collect();
    assert!(ids.len() >= 25, "{} receipts", ids.len());
    for id in ids {
        assert!(page.contains(&format!("`{id}`")), "{id} is not in docs/receipts.md");
    }
}
