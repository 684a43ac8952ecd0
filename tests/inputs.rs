//! What a person hands in by mistake: an output that is an input, a pipe, a list, a full disk; and the
//! examples of files of one's own in `docs/`.

use std::path::Path;

use hotset::cost_models::{Hardware, Link, MIB};

use crate::common::{hotset, refused, stderr, stdout};

/// The TOML examples of a document behind this heading.
fn examples(document: &str, heading: &str) -> Vec<String> {
    let (_, text) = document.split_once(&format!("\n{heading}\n")).expect("the heading is there");
    let section = text.split("\n## ").next().unwrap_or(text);
    let blocks = section.split("```toml\n").skip(1);
    blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned())).collect()
}

#[test]
fn documented_links_cost_what_the_document_says() {
    let found = examples(include_str!("../docs/link-model.md"), "## A link of one's own");
    let [bandwidth, added] = &found[..] else { panic!("{} examples", found.len()) };
    let us = |text: &str| {
        let link = Link::from_toml_str(text).unwrap();
        link.transfer(MIB).as_ms_f64() * 1000.0
    };
    // 1,048,576 bytes at 25.2e9 a second; 25 ms for 1,280 MiB.
    assert!((us(bandwidth) - 41.6102).abs() < 1e-3, "{}", us(bandwidth));
    assert!((us(added) - 19.53125).abs() < 1e-3, "{}", us(added));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    std::fs::write(&path, bandwidth).unwrap();
    let path = path.to_str().unwrap();
    let short = ["compare", "--policy", "lru", "--capacity", "25%", "--phase", "decode"];
    let csv = |link: &str| stdout(&[&short[..], &["--link", link, "--format", "csv"]].concat());
    assert!(csv(path).contains("serial_ms_per_token:my-pcie"));
    assert_eq!(csv(path), csv(&format!("{path}:my-pcie")));
    let other = format!("{path}:other");
    refused(&[&short[..], &["--link", &other]].concat(), &["has the link my-pcie alone"]);
}

#[test]
fn documented_machines_load() {
    let found = examples(include_str!("../docs/metrics.md"), "### A machine of one's own");
    let machines: Vec<Hardware> =
        found.iter().map(|text| Hardware::from_toml_str(text).unwrap()).collect();
    let [one, two] = &machines[..] else { panic!("{} examples", machines.len()) };
    assert_eq!((one.accelerators, one.per_host), (1, 1));
    assert_eq!((two.accelerators, two.per_host), (2, 2));
    assert_eq!(two.memory.value, 24_564 << 20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.toml");
    std::fs::write(&path, &found[1]).unwrap();
    let plan = ["plan", "--model", "gpt-oss-20b", "--machine", path.to_str().unwrap()];
    assert!(stdout(&plan).contains("each of 2 accelerators, 2 a host (tensor 2, expert 1)"));
}

/// Where no input may be lost: whole names, names of links behind a file's, values of what is varied,
/// and files that are not there yet.
#[test]
fn outputs_are_no_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["mine.toml", "c.json"] {
        std::fs::write(path(name), "precious").unwrap();
    }
    let (toml, json, new) = (path("mine.toml"), path("c.json"), path("new"));
    let plan = ["plan", "--model", "OLMoE-1B-7B", "--machine", "rtx-4090"];
    let link = format!("{toml}:mine-pcie");
    let varied = format!("model={json}");
    let linked = format!("link={toml}:a,{toml}:b");
    let input = "the output is the input";
    refused(&[&plan[..], &["--link", &link, "-o", &toml]].concat(), &[input]);
    refused(&[&plan[..], &["--vary", &varied, "-o", &json]].concat(), &[input]);
    refused(&[&plan[..], &["--vary", &linked, "-o", &toml]].concat(), &[input]);
    refused(&["compare", "--link", &format!("h200-pcie,{link}"), "-o", &toml], &[input]);
    refused(&["sweep", "--resume", &json, "-o", &json], &[input]);
    let both = "two results go to one file";
    let dotted = folder.path().join("./new");
    refused(&["sweep", "--resume", &new, "-o", dotted.to_str().unwrap()], &[both]);
    refused(&["replay", "--trace-events", &new, "-o", &new], &[both]);
    for name in ["mine.toml", "c.json"] {
        assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "precious");
    }
    assert!(!Path::new(&new).exists());
}

#[test]
fn names_that_are_lists_or_mistyped() {
    let both = ["names 2 prefetchers", "--prefetch none, then --prefetch ahead"];
    refused(&["compare", "--prefetch", "none,ahead"], &both);
    let plan = ["plan", "--machine", "rtx-4090", "--model"];
    refused(&[&plan[..], &["qwn"]].concat(), &["did you mean `Qwen"]);
    let format = ["gpt-oss-20b", "--expert-format", "nvpf4"];
    refused(&[&plan[..], &format].concat(), &["did you mean 'nvfp4'?"]);
    refused(&["compare", "--format", "jsn"], &["json"]);
    refused(&["compare", "--phase", "decod"], &["decode"]);
    refused(&["compare", "--miss", "hst"], &["host"]);
}

/// A name out of a file is shown in every format and acts in none.
#[test]
fn names_out_of_files_do_nothing() {
    let found = examples(include_str!("../docs/link-model.md"), "## A link of one's own");
    let hostile = r#"name = "=cmd|x\nb\u202E\u001B[31m""#;
    let text = found[0].replace(r#"name = "my-pcie""#, hostile);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for format in ["table", "csv", "markdown", "json"] {
        let short = ["compare", "--policy", "lru", "--capacity", "25%", "--phase", "decode"];
        let compared = stdout(&[&short[..], &["--link", path, "--format", format]].concat());
        let shown = stdout(&["link", "show", path, "--format", format]);
        for text in [&compared, &shown] {
            assert!(!text.contains(acts), "{format}: {text}");
        }
        match format {
            "csv" => {
                assert!(compared.lines().next().unwrap().contains(":=cmd|x b\u{fffd}\u{fffd}[31m"));
                assert!(shown.contains("'=cmd|x b"), "{shown}");
            }
            "json" => assert!(shown.contains(r"=cmd|x\nb\u202e\u001b[31m"), "{shown}"),
            "markdown" => assert!(shown.contains(r"=cmd\|x b"), "{shown}"),
            _ => assert!(shown.contains("=cmd|x"), "{shown}"),
        }
    }
}

/// Sizes and shares in every spelling mean the same.
#[test]
fn one_spelling_is_as_good_as_another() {
    let of = |size: &str, capacity: &str| {
        let setting = ["compare", "--policy", "lru", "--phase", "decode", "--no-timeline"];
        let sized = ["--expert-size", size, "--capacity", capacity, "--format", "csv"];
        stdout(&[&setting[..], &sized].concat())
    };
    let expected = of("1048576", "25%");
    for (size, capacity) in [
        ("1MiB", "0.25"),
        ("1 MiB", "256MiB"),
        ("0.0009765625GiB", "0.25 GiB"),
        ("1048576B", "256"),
    ] {
        assert_eq!(of(size, capacity), expected, "{size}, {capacity}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_full_disks() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        let pipe = pipe.to_str().unwrap();
        for command in [&["trace", "info"][..], &["compare"], &["trace", "validate"]] {
            let output = hotset(&[command, &[pipe]].concat());
            assert!(!output.status.success(), "{command:?}");
            let said = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
            assert!(said.contains("a pipe or a device"), "{command:?}: {said}");
        }
    }
    refused(&["link", "fit", "/dev/zero"], &["/dev/zero", "more than 64 MiB"]);
    refused(&["link", "fit", "/dev/zero", "--from", "benchbw"], &["more than 64 MiB"]);
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    for args in [&["--help"][..], &["compare", "--help"], &["--version"], &["policies"]] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_hotset"));
        let status = run.args(args).stdout(Stdio::from(full.try_clone().unwrap())).output();
        let output = status.unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("standard output"), "{args:?}: {}", stderr(&output));
    }
    let export = hotset(&["trace", "export", "--to", "npz", "-o", "/dev/full"]);
    assert_eq!(export.status.code(), Some(2));
    let told = stderr(&export);
    assert!(told.contains("/dev/full") && !told.contains("ZipWriter"), "{told}");
}
