//! Every crate can be published: what a registry shows of it is there.

use std::path::Path;

#[test]
fn every_crate_says_what_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let workspace: toml::Table = read(&root.join("Cargo.toml")).parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members = members.iter().map(|member| member.as_str().unwrap());
    for member in members.chain(["."]) {
        let folder = root.join(member);
        let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().unwrap();
        let package = &manifest["package"];
        for field in
            ["name", "version", "license", "description", "readme", "documentation", "rust-version"]
        {
            assert!(package.get(field).is_some(), "{member}: no {field}");
        }
        let name = package["name"].as_str().unwrap();
        let page = read(&folder.join(package["readme"].as_str().unwrap()));
        assert!(page.starts_with(&format!("# {name}\n")) && page.len() > 200, "{member}: its page");
        let address = format!("https://docs.rs/{name}");
        assert_eq!(package["documentation"].as_str(), Some(&*address));
    }
}
