//! How fast an `.hst` file of 200 million accesses opens, checked in full, and what memory it takes:
//! `cargo run --release -p hotset-traces --example open_speed [TOKENS]`

use std::time::Instant;

use hotset_traces::synth::generate;
use hotset_traces::{Codec, Stats, SynthConfig, Trace, write_hst};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens = std::env::args().nth(1).map_or(Ok(520_834), |tokens| tokens.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.hst");
    let config = SynthConfig { tokens, ..SynthConfig::default() };
    let begun = Instant::now();
    let trace = generate(&config)?;
    let accesses = trace.ids().len();
    println!("generated {accesses} accesses in {:.2} s", begun.elapsed().as_secs_f64());
    write_hst(&trace, &path, Codec::Raw)?;
    let digest = trace.digest().to_owned();
    let packed = folder.path().join("packed.hst");
    write_hst(&trace, &packed, Codec::Zstd(3))?;
    drop(trace);
    let begun = Instant::now();
    Trace::open(&packed)?;
    let bytes = std::fs::metadata(&packed)?.len();
    println!(
        "zstd, {:.1} MB: opened in {:.3} s",
        bytes as f64 / 1e6,
        begun.elapsed().as_secs_f64()
    );
    let bytes = std::fs::metadata(&path)?.len();
    for _ in 0..5 {
        let begun = Instant::now();
        let trace = Trace::open(&path)?;
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(trace.digest(), digest);
        println!(
            "opened and checked {:.1} MB in {:.3} s: {:.2} GB/s",
            bytes as f64 / 1e6,
            seconds,
            bytes as f64 / 1e9 / seconds
        );
    }
    let trace = Trace::open(&path)?;
    resident("after opening", bytes)?;
    let begun = Instant::now();
    trace.validate()?;
    println!("validate, digests included: {:.3} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let stats = Stats::of(&trace);
    println!("statistics: {:.2} s, locality {:?}", begun.elapsed().as_secs_f64(), stats.locality);
    Ok(())
}

/// The process's own peak includes the generator's; what is resident now is the trace.
fn resident(when: &str, file: u64) -> std::io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("Vm") && line.contains("RSS")) {
        println!("{when}: {line}");
    }
    for line in status.lines().filter(|line| line.starts_with("Rss")) {
        println!("{when}: {line} (file: {} kB)", file / 1024);
    }
    Ok(())
}
