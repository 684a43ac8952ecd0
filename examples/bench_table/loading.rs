//! What opening a file costs, beside a plain read and a checksum of the same bytes.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use hotset::traces::{Codec, Trace, write_hst};
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;
use crate::support::{TOKENS, large_trace};

/// Opens a large file, beside the plain read and the checksum of the same bytes; the peak memory is
/// that of a process that does nothing else.
pub fn load_table(rounds: u32) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.hst");
    let trace = large_trace(TOKENS);
    let accesses = trace.ids().len();
    write_hst(&trace, &path, Codec::Raw)?;
    drop(trace);
    let mut best = [f64::MAX; 3];
    for _ in 0..rounds {
        // Opening may use several threads: the clock on the wall, for all three.
        let begun = Instant::now();
        let bytes = std::fs::read(&path)?;
        best[0] = best[0].min(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        std::hint::black_box(xxh3_64(&bytes));
        best[1] = best[1].min(begun.elapsed().as_secs_f64());
        drop(bytes);
        let begun = Instant::now();
        let trace = Trace::open(&path)?;
        best[2] = best[2].min(begun.elapsed().as_secs_f64());
        drop(trace);
    }
    let size = std::fs::metadata(&path)?.len();
    let child = Command::new(std::env::current_exe()?).arg("--open").arg(&path).output()?;
    let peak: f64 = String::from_utf8(child.stdout)?.trim().parse()?;
    let [read, checksum, open] = best.map(|seconds| size as f64 / 1e9 / seconds);
    Ok(format!(
        "An `.hst` file of {:.0} M accesses ({:.0} MB, in the page cache):\n\n\
         | | GB/s |\n|---|--:|\n\
         | read into memory | {read:.1} |\n\
         | XXH3 over it in memory | {checksum:.1} |\n\
         | **opened and checked in full** | **{open:.1}** |\n\n\
         Peak resident memory of a process that opens it: {:.2} times the file.\n",
        accesses as f64 / 1e6,
        size as f64 / 1e6,
        peak / size as f64,
    ))
}

/// Opens a file and prints this process's peak resident memory in bytes.
pub fn open_alone(path: &Path) -> Result<()> {
    let trace = Trace::open(path)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse()?;
    println!("{}", kib * 1024);
    drop(trace);
    Ok(())
}
