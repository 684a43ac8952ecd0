//! `docs/answers.md` and `docs/receipts.md` cannot rot: every command in them is run, and must print
//! what stands there.
//!
//! A console block is `$ hotset ...` and its output; a line `[...]` stands for lines left out.

use crate::common::{hotset, shared, stdout};

/// The console blocks: arguments, and the lines below the command.
fn blocks(text: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let mut blocks = Vec::new();
    for part in text.split("```console\n").skip(1) {
        let block = part.split("```").next().expect("the block is closed");
        // A command goes on behind a backslash at the end of its line.
        let mut lines = block.lines();
        let mut arguments = Vec::new();
        for line in lines.by_ref() {
            arguments.extend(line.split_whitespace().filter(|word| *word != "\\"));
            if !line.ends_with('\\') {
                break;
            }
        }
        assert_eq!(arguments[..2], ["$", "hotset"], "{block}");
        blocks.push((arguments[2..].to_vec(), lines.collect()));
    }
    blocks
}

/// Asserts that `expected` is `printed` but for lines left out.
fn compare(arguments: &[&str], expected: &[&str], printed: &str) {
    let printed: Vec<&str> = printed.lines().collect();
    let mut at = 0;
    let mut gap = false;
    for part in expected.split(|line| *line == "[...]") {
        let part: Vec<&str> = part.to_vec();
        let found = (at..=printed.len().saturating_sub(part.len()))
            .take(if gap { usize::MAX } else { 1 })
            .find(|start| printed[*start..].starts_with(&part));
        let Some(start) = found else {
            panic!(
                "hotset {}: not as printed:\n{}\nprinted:\n{}",
                arguments.join(" "),
                part.join("\n"),
                printed.join("\n")
            );
        };
        at = start + part.len();
        gap = true;
    }
    let whole = expected.last() == Some(&"[...]") || at == printed.len();
    assert!(whole, "hotset {}: there is more:\n{}", arguments.join(" "), printed.join("\n"));
}

#[test]
fn every_answer_is_what_its_command_prints() {
    let text = include_str!("../docs/answers.md");
    let blocks = blocks(text);
    for question in [1, 2, 3, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 23, 24, 25] {
        assert!(text.contains(&format!("\n## {question}. ")), "question {question}");
    }
    assert!(blocks.len() >= 13);
    for (arguments, expected) in &blocks {
        compare(arguments, expected, &stdout(arguments));
    }
}

#[test]
fn every_command_on_planning_is_what_it_prints() {
    for (arguments, expected) in &blocks(include_str!("../docs/planning.md")) {
        compare(arguments, expected, &stdout(arguments));
    }
}

#[test]
fn every_receipt_is_what_its_command_prints() {
    let text = include_str!("../docs/receipts.md");
    let blocks = blocks(text);
    assert!(blocks.len() >= 20, "{} commands", blocks.len());
    for (arguments, expected) in &blocks {
        compare(arguments, expected, &printed(arguments));
    }
}

/// What a command prints, whether its check passes or not.
fn printed(arguments: &[&str]) -> String {
    let output = hotset(arguments);
    assert!(matches!(output.status.code(), Some(0 | 1)), "hotset {}", arguments.join(" "));
    String::from_utf8(output.stdout).expect("text")
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

#[test]
fn left_out_lines_and_only_they_may_differ() {
    let same = |expected: &[&str], printed: &str| {
        std::panic::catch_unwind(|| compare(&[], expected, printed)).is_ok()
    };
    assert!(same(&["a", "[...]", "d"], "a\nb\nc\nd"));
    assert!(same(&["a", "[...]"], "a\nb"));
    assert!(same(&["[...]", "b"], "a\nb"));
    assert!(!same(&["a", "[...]", "x"], "a\nb"));
    assert!(!same(&["a"], "a\nb"));
    assert!(!same(&["b", "[...]"], "a\nb"));
}
