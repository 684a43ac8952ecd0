//! The header that is checked in is the source's.

use std::path::Path;

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_root_or_default(root);
    let bindings = cbindgen::generate_with_config(root, config).expect("the source is read");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let (made, path) = (String::from_utf8(made).unwrap(), root.join("include/hotset.h"));
    if std::env::var_os("HOTSET_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "include/hotset.h is old: HOTSET_WRITE_HEADER=1 cargo test --test header"
    );
}
