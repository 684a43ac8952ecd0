//! Writes samples of our own for the fuzzing targets: `fuzz_corpus FOLDER`.

use std::path::Path;

use hotset_traces::testing::inputs::{FuzzTarget, corpus};

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: fuzz_corpus FOLDER");
        std::process::exit(2);
    };
    for target in FuzzTarget::ALL {
        let folder = Path::new(&folder).join(target.name());
        std::fs::create_dir_all(&folder)?;
        for (index, bytes) in corpus(target).iter().enumerate() {
            std::fs::write(folder.join(format!("sample{index}")), bytes)?;
        }
    }
    Ok(())
}
