//! Writes the scenario files of every policy and of the engines' mistakes anew, as the reference
//! policies answer: `cargo run --example scenarios`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = hotset::scenario::reference_files()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    std::fs::create_dir_all(&folder)?;
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            std::fs::remove_file(path)?;
        }
    }
    for (name, file) in &files {
        std::fs::write(folder.join(name), file.text())?;
    }
    println!("{} files in {}", files.len(), folder.display());
    Ok(())
}
