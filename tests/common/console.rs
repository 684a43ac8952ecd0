//! Pages with commands: a console block is `$ hotset ...` and its output; a line `[...]` stands for
//! lines left out.
//!
//! With `HOTSET_WRITE_DOCS=1` a page is written anew with what its commands print.

use std::path::{Path, PathBuf};

const GAP: &str = "[...]";
const OPEN: &str = "```console\n";

/// A command, and the lines below it.
pub struct Block<'a> {
    pub arguments: Vec<&'a str>,
    command: Vec<&'a str>,
    pub expected: Vec<&'a str>,
}

/// The console blocks of a page.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    text.split(OPEN).skip(1).map(|part| block(part.split("```").next().unwrap())).collect()
}

fn block(text: &str) -> Block<'_> {
    // A command goes on behind a backslash at the end of its line.
    let mut lines = text.lines();
    let (mut arguments, mut command) = (Vec::new(), Vec::new());
    for line in lines.by_ref() {
        command.push(line);
        arguments.extend(line.split_whitespace().filter(|word| *word != "\\"));
        if !line.ends_with('\\') {
            break;
        }
    }
    assert_eq!(arguments[..2], ["$", "hotset"], "{text}");
    arguments.drain(..2);
    Block { arguments, command, expected: lines.collect() }
}

/// Asserts that `expected` is `printed` but for lines left out.
pub fn compare(arguments: &[&str], expected: &[&str], printed: &str) {
    let printed: Vec<&str> = printed.lines().collect();
    let mut at = 0;
    let mut gap = false;
    for part in expected.split(|line| *line == GAP) {
        let part: Vec<&str> = part.to_vec();
        let found = (at..=printed.len().saturating_sub(part.len()))
            .take(if gap { usize::MAX } else { 1 })
            .find(|start| printed[*start..].starts_with(&part));
        let Some(start) = found else {
            panic!(
                "hotset {}: not as printed (HOTSET_WRITE_DOCS=1 writes it anew):\n{}\nprinted:\n{}",
                arguments.join(" "),
                part.join("\n"),
                printed.join("\n")
            );
        };
        at = start + part.len();
        gap = true;
    }
    let whole = expected.last() == Some(&GAP) || at == printed.len();
    assert!(whole, "hotset {}: there is more:\n{}", arguments.join(" "), printed.join("\n"));
}

/// What stands in a page for `printed`: the lines that look most like those that stood there.
fn renewed<'a>(expected: &[&'a str], printed: &'a str) -> Vec<&'a str> {
    let printed: Vec<&str> = printed.lines().collect();
    let parts: Vec<&[&str]> = expected.split(|line| *line == GAP).collect();
    let mut lines = Vec::new();
    let mut at = 0;
    for (index, part) in parts.iter().enumerate() {
        let (first, last) = (index == 0, index + 1 == parts.len());
        if index > 0 {
            lines.push(GAP);
        }
        if part.is_empty() {
            continue;
        }
        let starts = at..=printed.len().saturating_sub(part.len()).max(at);
        let likeness = |start: &usize| -> f64 {
            let shown = part.iter().zip(printed.get(*start..).unwrap_or_default());
            shown.map(|(one, other)| alike(one, other)).sum()
        };
        let best = starts.max_by(|a, b| likeness(a).total_cmp(&likeness(b)).then(b.cmp(a)));
        let best = best.unwrap_or(at);
        let end = if last { printed.len() } else { (best + part.len()).min(printed.len()) };
        let begin = if first { 0 } else { best };
        lines.extend(&printed[begin.min(end)..end]);
        at = end;
    }
    lines
}

/// The share of words that two lines have in common, in their places.
fn alike(one: &str, other: &str) -> f64 {
    let (one, other): (Vec<_>, Vec<_>) =
        (one.split_whitespace().collect(), other.split_whitespace().collect());
    let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
    (same as f64 + f64::from(u8::from(one.first() == other.first())))
        / one.len().max(other.len()).max(1) as f64
}

/// Holds every command of a page of `docs/` against what it prints, or writes the page anew; says how many there are.
pub fn hold(page: &Path, print: impl Fn(&[&str]) -> String) -> usize {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let blocks = blocks(&text);
    if std::env::var_os("HOTSET_WRITE_DOCS").is_none() {
        for Block { arguments, expected, .. } in &blocks {
            compare(arguments, expected, &print(arguments));
        }
        return blocks.len();
    }
    let mut parts = text.split(OPEN);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for (Block { arguments, command, expected }, part) in blocks.iter().zip(parts) {
        let printed = print(arguments);
        let lines = [&command[..], &renewed(expected, &printed)].concat().join("\n");
        let rest = part.split_once("```").unwrap().1;
        written.push_str(&format!("{OPEN}{lines}\n```{rest}"));
    }
    std::fs::write(&path, written).unwrap();
    blocks.len()
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

#[test]
fn a_page_is_renewed_where_its_lines_went() {
    let printed = "new\nhead\nlru * 51.0 2.0\nfifo 49.0 3.0\nnote\nend";
    assert_eq!(
        renewed(&["head", GAP, "lru 50.0 2.0", GAP], printed),
        ["new", "head", GAP, "lru * 51.0 2.0", GAP]
    );
    assert_eq!(
        renewed(&[GAP, "fifo 40.0 3.0", "note", "end"], printed),
        [GAP, "fifo 49.0 3.0", "note", "end"]
    );
    assert_eq!(renewed(&["head"], "a\nb"), ["a", "b"]);
}
