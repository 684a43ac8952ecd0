//! The libraries speak of fields, the command line of flags: each name has its other.

use std::path::{Path, PathBuf};

/// The crates that know nothing of the command line.
const LIBRARIES: [&str; 8] = [
    "conformance",
    "cost-models",
    "experiments",
    "planning",
    "policies",
    "reports",
    "sim",
    "traces",
];

/// The Rust files below a folder.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, into),
            false if path.extension().is_some_and(|ending| ending == "rs") => into.push(path),
            false => {}
        }
    }
}

/// The lines of code of every library, without comments and without tests, which stand last.
fn lines() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for library in LIBRARIES {
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(library).join("src"), &mut paths);
    }
    let mut lines = Vec::new();
    for path in paths {
        if path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("test")) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let code = text.lines().take_while(|line| {
            !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test")
        });
        let code = code.filter(|line| !line.trim_start().starts_with("//"));
        lines.extend(code.map(|line| (path.clone(), line.to_owned())));
    }
    lines
}

/// The names between backticks that look like a field of a type.
fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|name| {
        name.starts_with(|first: char| first.is_ascii_uppercase()) && name.contains("::")
    })
}

#[test]
fn every_field_that_a_message_names_has_its_flag() {
    let table = include_str!("../src/flags.rs");
    for (path, line) in lines() {
        for field in fields(&line) {
            let known = table.contains(&format!("(\"{field}\", "));
            assert!(known, "{}: `{field}` has no line in src/flags.rs", path.display());
        }
    }
}

/// What messages and sources may say: flags of cargo, llama.cpp, vLLM, SGLang and nvidia-smi, and a picture of
/// a range.
const ALLOWED: [&str; 10] = [
    "--enable-return-routed-experts",
    "--enforce-eager",
    "--features parquet",
    "--format=csv",
    "--inserts",
    "--n-cpu-moe",
    "--o--",
    "--output-format gguf",
    "--override-kv",
    "--query-gpu",
];

/// Whether a string in a line of code names a flag: `--` and a small letter, as in `--users`.
fn names_a_flag(line: &str) -> bool {
    line.match_indices("--").any(|(place, _)| {
        let next = line[place + 2..].chars().next();
        let before = line[..place].chars().next_back();
        next.is_some_and(|letter| letter.is_ascii_lowercase())
            && before != Some('-')
            && !ALLOWED.iter().any(|other| line[place..].starts_with(other))
    })
}

#[test]
fn no_text_of_a_library_names_a_flag() {
    // What to type for an engine is made of that engine's flags.
    let commands = Path::new("planning/src/placement/settings.rs");
    for (path, line) in lines().into_iter().filter(|line| !line.0.ends_with(commands)) {
        assert!(!names_a_flag(&line), "{}: {line}", path.display());
    }
    assert!(names_a_flag(r#"setting("--users", why)"#) && names_a_flag("give --chunk"));
    assert!(!names_a_flag("a -- b") && !names_a_flag("n--"));
}
