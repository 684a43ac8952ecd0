//! Makes the tables of benches/README.md: every policy one access at a time and through the real
//! cache, against a plain array-linked LRU loop of the same run; and what opening a file costs.
//!
//! `cargo run --release --example bench_table -- [--rounds N] [--policy NAME,...] [--write]`
//!
//! `--write` puts the tables into benches/README.md. Times are processor time where the system
//! tells it, so that other programs disturb less; of all rounds the best counts.

#[path = "../benches/support/mod.rs"]
mod support;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hotset::policies::{POLICIES, PolicySpec};
use hotset::sim::Semantics;
use hotset::traces::{Codec, Trace, write_hst};
use support::{TOKENS, Workload, array_lru, large_trace};
use xxhash_rust::xxh3::xxh3_64;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// libCacheSim, millions of accesses a second at hash power 14 on its own trace of this kind and
/// size, measured 2026-11-29 on a Zen 2 where the array LRU made `PEER_LIMIT`.
const PEER: &[(&str, f64)] = &[
    ("lru", 35.86),
    ("fifo", 37.21),
    ("clock", 28.64),
    ("lfu", 8.65),
    ("sieve", 22.80),
    ("arc", 26.74),
    ("s3-fifo", 12.70),
    ("2q", 17.20),
    ("lirs", 13.03),
    ("lecar", 13.11),
    ("w-tinylfu", 4.02),
    ("belady", 13.85),
];
const PEER_LIMIT: f64 = 202.37;

/// Ratios that a policy is held to: sequential to the array LRU.
const TARGETS: &[(&str, f64)] = &[
    ("lru", 0.9),
    ("fifo", 0.9),
    ("clock", 0.9),
    ("sieve", 0.75),
    ("s3-fifo", 0.35),
    ("2q", 0.35),
    ("slru", 0.35),
    ("arc", 0.35),
    ("lfu", 0.35),
    ("lirs", 0.25),
    ("belady", 0.35),
];
/// And event semantics to a policy's own sequential speed.
const EVENT_TARGET: f64 = 0.6;

struct Options {
    rounds: u32,
    only: Option<Vec<String>>,
    write: bool,
}

/// Best seconds of one policy so far.
struct Line {
    spec: PolicySpec,
    sequential: f64,
    event: f64,
    failed: Option<String>,
}

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = &arguments[..]
        && flag == "--open"
    {
        return open_alone(Path::new(path));
    }
    let options = options(&mut arguments)?;
    let tables = format!("{}\n{}\n{}", machine(), replay_table(&options)?, load_table(&options)?);
    println!("{tables}");
    if options.write {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/README.md");
        let text = std::fs::read_to_string(&path)?;
        let (begin, end) = ("<!-- measured -->\n", "<!-- /measured -->");
        let head = text.find(begin).ok_or("no place for the tables")? + begin.len();
        let tail = text.find(end).ok_or("no end of the tables")?;
        std::fs::write(&path, format!("{}\n{tables}\n{}", &text[..head], &text[tail..]))?;
    }
    Ok(())
}

fn options(arguments: &mut Vec<String>) -> Result<Options> {
    let mut options = Options { rounds: 7, only: None, write: false };
    let mut rest = arguments.drain(..);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--rounds" => options.rounds = rest.next().ok_or("--rounds N")?.parse()?,
            "--policy" => {
                let names = rest.next().ok_or("--policy NAME,...")?;
                options.only = Some(names.split(',').map(str::to_owned).collect());
            }
            "--write" => options.write = true,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    Ok(options)
}

fn replay_table(options: &Options) -> Result<String> {
    let workload = Workload::new(TOKENS);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("replay.hst");
    write_hst(&workload.trace, &path, Codec::Raw)?;
    let opened = Workload::of(Trace::open(&path)?);

    let (mut lines, mut limit) = (Vec::new(), f64::MAX);
    for info in POLICIES {
        if options.only.as_ref().is_none_or(|only| only.iter().any(|name| name == info.name)) {
            let (sequential, event) = (f64::MAX, f64::MAX);
            lines.push(Line { spec: info.name.parse()?, sequential, event, failed: None });
        }
    }
    let lru: PolicySpec = "lru".parse()?;
    let mut from = [f64::MAX; 2];
    for _ in 0..options.rounds {
        limit = limit.min(seconds(|| array_lru(&workload.keys, workload.slots)).0);
        for (best, workload) in from.iter_mut().zip([&workload, &opened]) {
            *best = best.min(seconds(|| workload.replay(&lru, Semantics::Event)).0);
        }
        for line in &mut lines {
            line.measure(&workload);
        }
    }

    let millions = workload.accesses() as f64 / 1e6;
    let mut table = format!(
        "The limit, a plain array LRU: **{:.0} M accesses/s** (best of {} rounds, in which every \
         policy ran in turn).\n\n\
         | policy | sequential, M/s | to the array LRU | event, M/s | to its sequential | event to the \
         array LRU | libCacheSim, M/s | times libCacheSim |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
        millions / limit,
        options.rounds
    );
    for line in &lines {
        line.write(&mut table, millions, limit)?;
    }
    writeln!(
        table,
        "\nEvent LRU from an `.hst` file's memory map: {:.2} of its speed from a trace in memory.",
        from[0] / from[1]
    )?;
    Ok(table)
}

impl Line {
    fn measure(&mut self, workload: &Workload) {
        for semantics in [Semantics::Sequential, Semantics::Event] {
            let (time, counts) = seconds(|| workload.replay(&self.spec, semantics));
            let best = match semantics {
                Semantics::Sequential => &mut self.sequential,
                Semantics::Event => &mut self.event,
            };
            match counts {
                Ok(_) => *best = best.min(time),
                Err(why) => self.failed = Some(why.to_string()),
            }
        }
    }

    fn write(&self, table: &mut String, millions: f64, limit: f64) -> std::fmt::Result {
        let name = self.spec.info().name;
        if let Some(why) = &self.failed {
            return writeln!(table, "| {name} | not on this trace: {why} | | | | | | |");
        }
        let (of_limit, of_own) = (limit / self.sequential, self.sequential / self.event);
        let wanted = TARGETS.iter().find(|(policy, _)| *policy == name);
        let missed = |missed: bool| if missed { " (!)" } else { "" };
        write!(
            table,
            "| {name} | {:.0} | {of_limit:.2}{} | {:.0} | {of_own:.2}{} | {:.2} |",
            millions / self.sequential,
            missed(wanted.is_some_and(|&(_, wanted)| of_limit < wanted)),
            millions / self.event,
            missed(of_own < EVENT_TARGET),
            limit / self.event,
        )?;
        match PEER.iter().find(|(policy, _)| *policy == name) {
            Some((_, peer)) => {
                writeln!(table, " {peer:.1} | {:.1} |", of_limit / (peer / PEER_LIMIT))
            }
            None => writeln!(table, " | |"),
        }
    }
}

/// Opens a large file, beside the plain read and the checksum of the same bytes; the peak memory is
/// that of a process that does nothing else.
fn load_table(options: &Options) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.hst");
    let trace = large_trace(TOKENS);
    let accesses = trace.ids().len();
    write_hst(&trace, &path, Codec::Raw)?;
    drop(trace);
    let mut best = [f64::MAX; 3];
    for _ in 0..options.rounds {
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
fn open_alone(path: &Path) -> Result<()> {
    let trace = Trace::open(path)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse()?;
    println!("{}", kib * 1024);
    drop(trace);
    Ok(())
}

/// Seconds that a piece of work took this thread.
fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (begun, before) = (Instant::now(), on_processor());
    let result = std::hint::black_box(work());
    match (before, on_processor()) {
        (Some(before), Some(after)) => (after - before, result),
        _ => (begun.elapsed().as_secs_f64(), result),
    }
}

/// Seconds that this thread has run on a processor, where the system tells it.
fn on_processor() -> Option<f64> {
    // The account is brought up to date when a thread yields.
    std::thread::yield_now();
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = account.split(' ').next()?.parse().ok()?;
    (nanoseconds > 0.0).then_some(nanoseconds / 1e9)
}

/// Processor and date.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let days =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86400);
    let (year, month, day) = date(days as i64);
    format!(
        "Measured {year}-{month:02}-{day:02} on {}, {cores} processors.\n",
        model.trim_start_matches([' ', '\t', ':']),
    )
}

/// The date of a day since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
