//! What people see first: the answer, coloured on terminals alone.

use std::process::Command;

use crate::common::{json, stdout};

const FLAGS: [&str; 9] = [
    "compare",
    "--policy",
    "lru,lfu,belady",
    "--capacity",
    "25%",
    "--phase",
    "decode",
    "--link",
    "h200-pcie",
];

#[test]
fn the_answer_is_the_same_in_every_format() {
    let report = json(&FLAGS);
    let answer = report["verdict"].as_str().unwrap();
    assert!(
        answer.starts_with("lru is best in decode with 256 slots (25.0%) over h200-pcie: "),
        "{answer}"
    );
    assert!(answer.contains(" less than lfu, the next. That is beyond noise: "), "{answer}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let table = stdout(&FLAGS);
    assert!(words(&table).starts_with(answer), "{table}");
    let markdown = stdout(&[&FLAGS[..], &["--format", "markdown"]].concat());
    assert!(markdown.starts_with(&format!("**{answer}**\n\n")), "{markdown}");
    let page = stdout(&[&FLAGS[..], &["--format", "html"]].concat());
    assert!(page.contains(&format!("id=\"verdict\">{}</p>", answer.replace('\'', "&#39;"))));
    // The figures behind the words.
    let lead = &report["lead"];
    assert_eq!((&lead["best"][0]["policy"], &lead["unit_count"]), (&"lru".into(), &48.into()));
    let against = &lead["against"][0];
    assert_eq!((&against["policy"], &against["beyond_noise"]), (&"lfu".into(), &true.into()));
    let [low, high] = ["low", "high"].map(|end| against["change"][end].as_f64().unwrap());
    let change = lead["cost"].as_f64().unwrap() / against["cost"].as_f64().unwrap() - 1.0;
    assert!(low < change && change < high && high < 0.0, "{lead}");
    assert_eq!(against["change"]["estimate"].as_f64().unwrap(), change);
}

#[test]
fn the_best_is_marked_in_every_table() {
    let table = stdout(&FLAGS);
    let marked: Vec<&str> = table.lines().filter(|line| line.contains(" * ")).collect();
    assert!(matches!(marked[..], [line] if line.starts_with("lru *")), "{table}");
    let csv = stdout(&[&FLAGS[..], &["--format", "csv"]].concat());
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        reader.deserialize().map(Result::unwrap).collect();
    let best: Vec<_> = rows.iter().filter(|row| row["best"] == "1").collect();
    assert!(matches!(best[..], [row] if row["policy"] == "lru" && row["window"] == "all"));
}

#[test]
fn where_there_is_no_choice_there_is_no_verdict() {
    let flags = ["compare", "--policy", "lru,belady", "--capacity", "25%", "--phase", "decode"];
    assert!(stdout(&flags).starts_with("h200-moe: "));
    assert!(json(&flags).get("lead").is_none());
}

/// Five tokens of one sequence are too few to say anything of others.
#[test]
fn what_is_not_known_is_said() {
    let verdict = |flags: &[&str]| json(flags)["verdict"].as_str().unwrap().to_owned();
    let untimed = verdict(&[&FLAGS[..], &["--no-timeline"]].concat());
    assert!(untimed.contains("is not known: an interval needs the timeline"), "{untimed}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.hst");
    let path = path.to_str().unwrap();
    stdout(&["trace", "slice", "--sequences", "0..1", "-o", path]);
    let mut one = FLAGS.to_vec();
    one.insert(1, path);
    let told = verdict(&one);
    assert!(told.contains("20 stretches of steps; one sequence tells nothing of others"), "{told}");
}

#[test]
fn colours_are_asked_for_and_refused() {
    let with = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotset"));
        for known in ["NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(known);
        }
        String::from_utf8(command.args(FLAGS).env(name, value).output().unwrap().stdout).unwrap()
    };
    let (plain, forced) = (with("NO_COLOR", "1"), with("CLICOLOR_FORCE", "1"));
    assert!(!plain.contains('\u{1b}') && forced.contains("\u{1b}[1;32mlru *"), "{forced}");
    let stripped = ["\u{1b}[1;32m", "\u{1b}[1m", "\u{1b}[0m"]
        .iter()
        .fold(forced, |text, code| text.replace(code, ""));
    assert_eq!(stripped, plain);
}

#[test]
fn curves_stand_above_a_sweep() {
    let flags =
        ["sweep", "--policy", "lru,lfu", "--capacity", "12.5%,25%,50%", "--phase", "decode"];
    let table = stdout(&flags);
    let lines: Vec<&str> = table.lines().filter(|line| line.contains('▅')).collect();
    assert!(lines.iter().any(|line| line.starts_with("lru")), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}
