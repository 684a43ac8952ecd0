//! Measures traces for `planning/recordings.toml`, what stands in where a model has no trace.
//!
//! `cargo run -p hotset-planning --example recordings -- TRACE NAME SOURCE [TRACE NAME SOURCE ...]`
//! prints an entry a trace (`.hst`; `bundled` is the bundled one).

use std::path::Path;

use hotset_planning::RecordedTrace;
use hotset_traces::{Trace, bundled};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for entry in arguments.chunks(3) {
        let [path, name, source] = entry else { return Err("give TRACE NAME SOURCE".into()) };
        let recorded = RecordedTrace::of(&open(path)?, name, source)?;
        println!("[[trace]]\n{}", toml::to_string(&recorded)?);
    }
    Ok(())
}

fn open(path: &str) -> Result<Trace, Box<dyn std::error::Error>> {
    if path == "bundled" {
        return Ok(bundled()?);
    }
    Ok(Trace::open(Path::new(path))?)
}
