//! The book in `docs/`: every page is in its summary, and every link leads somewhere.

use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// Every page below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => pages(&path, found),
            false if path.extension().is_some_and(|ending| ending == "md") => found.push(path),
            false => {}
        }
    }
}

/// Where the links of a page lead, code left out.
fn links(text: &str) -> Vec<String> {
    let mut code = false;
    let mut links = Vec::new();
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if code {
            continue;
        }
        // Every other part stands between backticks.
        let prose: String = line.split('`').step_by(2).collect();
        links.extend(
            prose.split("](").skip(1).filter_map(|part| Some(part.split_once(')')?.0.to_owned())),
        );
    }
    links
}

/// A heading as a link names it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(page: &Path, name: &str) -> bool {
    let text = std::fs::read_to_string(page).unwrap();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == name)
}

/// What is wrong with the links of a page.
fn broken(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let leads = |link: &String| {
        if link.contains("://") || link.starts_with("mailto:") {
            return true;
        }
        let (file, name) = link.split_once('#').unwrap_or((link, ""));
        let target =
            if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        let is_page = target.extension().is_some_and(|ending| ending == "md");
        target.exists() && (name.is_empty() || !is_page || has_anchor(&target, name))
    };
    let told = |link: &String| format!("{}: {link}", page.display());
    links(&text).iter().filter(|link| !leads(link)).map(told).collect()
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary = std::fs::read_to_string(folder().join("SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = links(&summary).iter().map(|link| folder().join(link)).collect();
    let mut found = Vec::new();
    pages(&folder(), &mut found);
    found.retain(|page| page.file_name().unwrap() != "SUMMARY.md");
    listed.sort();
    found.sort();
    assert_eq!(listed, found);
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)).into();
    pages(&folder(), &mut all);
    let broken: Vec<String> = all.iter().flat_map(|page| broken(page)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// What the page on embedding shows in C and Python stands in the examples, which tests run.
#[test]
fn embedded_code_is_that_of_the_examples() {
    let page = std::fs::read_to_string(folder().join("embedding.md")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("bindings");
    for (fence, example) in [("c", "c/examples/engine.c"), ("python", "python/examples/engine.py")]
    {
        let opening = format!("```{fence}\n");
        let (_, rest) = page.split_once(&opening).unwrap();
        let shown = rest.split_once("```").unwrap().0;
        let stands = std::fs::read_to_string(root.join(example)).unwrap();
        assert!(shown.lines().count() > 5 && stands.contains(shown), "{example}");
    }
}

#[test]
fn links_are_found_outside_code_alone() {
    assert_eq!(links("a [b](c.md) `[d](e)`\n```\n[f](g)\n```\n[h](i#j)"), ["c.md", "i#j"]);
    assert_eq!(anchor(" 11, unequal cards. How?"), "11-unequal-cards-how");
}
