//! Imports files, writes an `.hst` and says how fast and in how much memory:
//! `import_file FORMAT OUT.hst IN...`. `RAYON_NUM_THREADS=1` measures one thread.

use std::path::PathBuf;
use std::time::Instant;

use hotset_traces::{Codec, Format, ImportOptions, import_files, input_bytes, write_hst};

fn main() -> Result<(), hotset_traces::Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [format, out, inputs @ ..] = args.as_slice() else {
        eprintln!("usage: import_file FORMAT OUT.hst IN...");
        std::process::exit(2);
    };
    let Some(format) = Format::from_name(format) else {
        eprintln!("there is no format '{format}'");
        std::process::exit(2);
    };
    let out = PathBuf::from(out);
    let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
    let folder = out.parent().map(PathBuf::from);
    let options = ImportOptions { temporary: folder, ..ImportOptions::default() };
    let bytes = input_bytes(format, &inputs)?;
    let start = Instant::now();
    let imported = import_files(format, &inputs, &options, &())?;
    let (read, used) = (start.elapsed(), cpu_seconds());
    write_hst(&imported.trace, &out, Codec::Raw)?;
    let all = start.elapsed();
    let speed = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!("{} MB, {} tokens", bytes / 1_000_000, imported.trace.tokens());
    for (what, wall, cpu) in
        [("imported", read, used), ("imported and written", all, cpu_seconds())]
    {
        let wall = wall.as_secs_f64();
        println!(
            "{what}: {wall:.1} s ({:.0} MB/s); processor {cpu:.2} s ({:.0} MB/s)",
            speed(wall),
            speed(cpu)
        );
    }
    // Linux alone says it; elsewhere nothing is printed.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak resident memory: {}", peak.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}

/// Seconds of processor time that this process has used; 0 where the system does not say it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
