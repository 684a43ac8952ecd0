//! No two files of a crate import each other: what both need stands in a third.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module or an item, from the crate's root on.
type Item = Vec<String>;

/// What a crate's files import, by their own modules.
#[derive(Default)]
struct Imports {
    private: BTreeMap<Item, Vec<Item>>,
    /// What a file gives on, by its name there: an import of that is one of where it comes from.
    public: BTreeMap<Item, BTreeMap<String, Item>>,
}

/// Every Rust file below `folder`, with its module's path; a crate's root has an empty one.
fn files(folder: &Path, module: &Item, found: &mut Vec<(Item, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner: Item = module.iter().cloned().chain([name.clone()]).collect();
        if path.is_dir() {
            files(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_root = module.is_empty() && ["lib", "main"].contains(&&*name);
            let module = if is_root || name == "mod" { module.clone() } else { inner };
            found.push((module, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The paths that the tree behind a `use` names, each with `prefix`.
fn leaves(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = format!("{prefix}{}", tree.trim());
        found.push(path.split(" as ").next().unwrap_or_default().to_owned());
        return;
    };
    let prefix = format!("{prefix}{}", head.trim());
    let (mut depth, mut start) = (0, 0);
    let rest = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    for (at, c) in rest.char_indices().chain([(rest.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !rest[start..at].trim().is_empty() {
                    leaves(&prefix, &rest[start..at], found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// A path as `module` writes it, from the root on; `None` for one of another crate.
fn absolute(path: &str, module: &Item, modules: &BTreeSet<Item>) -> Option<Item> {
    let mut parts = path.split("::").map(str::to_owned).peekable();
    let mut base = module.clone();
    match parts.peek()?.as_str() {
        "crate" => {
            base.clear();
            parts.next();
        }
        "self" => drop(parts.next()),
        "super" => {
            while parts.next_if(|part| part == "super").is_some() {
                base.pop();
            }
        }
        first => {
            base.push(first.to_owned());
            let is_child = modules.contains(&base);
            base.pop();
            if !is_child {
                return None;
            }
        }
    }
    Some(base.into_iter().chain(parts).collect())
}

impl Imports {
    fn of(files: &[(Item, String)], modules: &BTreeSet<Item>) -> Self {
        let mut imports = Self::default();
        for (module, text) in files {
            // Tests may import whom they like.
            let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
            let mut lines = text[..tests].lines().map(|line| line.split("//").next().unwrap());
            while let Some(line) = lines.next() {
                let (visibility, import) = line.split_once("use ").unwrap_or(("none", ""));
                if !matches!(visibility.trim(), "" | "pub" | "pub(crate)" | "pub(super)") {
                    continue;
                }
                let mut import = import.to_owned();
                while !import.contains(';') {
                    import.push_str(lines.next().unwrap());
                }
                let mut paths = Vec::new();
                leaves("", import.split(';').next().unwrap(), &mut paths);
                let items = paths.iter().filter_map(|path| absolute(path, module, modules));
                if visibility.trim().is_empty() {
                    imports.private.entry(module.clone()).or_default().extend(items);
                } else {
                    let named = items.filter_map(|item| Some((item.last()?.clone(), item)));
                    imports.public.entry(module.clone()).or_default().extend(named);
                }
            }
        }
        imports
    }

    /// The file that an item stands in.
    fn file(&self, item: &[String], modules: &BTreeSet<Item>, depth: u32) -> Option<Item> {
        let module = (0..=item.len()).rev().find(|&end| modules.contains(&item[..end]))?;
        let (module, rest) = item.split_at(module);
        let given = rest.first().and_then(|name| self.public.get(module)?.get(name));
        match given {
            Some(other) if depth > 0 && other != item => {
                let whole: Item = other.iter().chain(&rest[1..]).cloned().collect();
                self.file(&whole, modules, depth - 1)
            }
            _ => Some(module.to_vec()),
        }
    }
}

/// Pairs of files below `src` that import each other.
fn circles(src: &Path) -> Vec<String> {
    let mut found = Vec::new();
    files(src, &Vec::new(), &mut found);
    let modules: BTreeSet<Item> = found.iter().map(|(module, _)| module.clone()).collect();
    let imports = Imports::of(&found, &modules);
    let mut edges = BTreeSet::new();
    for (module, items) in &imports.private {
        let to = items.iter().filter_map(|item| imports.file(item, &modules, 8));
        edges.extend(to.filter(|to| to != module).map(|to| (module.clone(), to)));
    }
    edges
        .iter()
        .filter(|(from, to)| from < to && edges.contains(&(to.clone(), from.clone())))
        .map(|(from, to)| format!("{}: {} and {}", src.display(), from.join("::"), to.join("::")))
        .collect()
}

#[test]
fn no_two_files_import_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = [
        "names",
        "policies",
        "cost-models",
        "sim",
        "experiments",
        "planning",
        "conformance",
        "reports",
        ".",
    ];
    let circles: Vec<String> =
        crates.iter().flat_map(|folder| circles(&root.join(folder).join("src"))).collect();
    assert_eq!(circles, Vec::<String>::new(), "move what both need to a file of its own");
}

#[test]
fn files_that_import_each_other_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("cache")).unwrap();
    write("lib.rs", "mod cache;\nmod plan;\npub use plan::{Plan, Other};\n");
    write("plan.rs", "use std::fmt;\nuse crate::cache::{\n    Entry, // a place\n};\n");
    write("cache/mod.rs", "mod entry;\npub use entry::Entry;\n");
    // By way of the root, and of its parent.
    write("cache/entry.rs", "use crate::{Plan as P, Third};\n#[cfg(test)]\nmod tests {\n");
    let found = circles(folder.path());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with(": cache::entry and plan"), "{found:?}");
}
