//! Every policy of the registry, one access at a time and through the real cache, against a plain
//! array-linked LRU loop and libCacheSim of the same run.

use std::fmt::Write as _;

use hotset::policies::{POLICIES, PolicySpec};
use hotset::sim::Semantics;
use hotset::traces::{Codec, Trace, write_hst};

use crate::clock::seconds;
use crate::library;
use crate::support::{Workload, array_lru};
use crate::{Options, Result};

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

/// Seconds that one replay of the whole workload may take; a policy that would take longer is timed over
/// [`FEW`] tokens of it.
const PATIENCE: f64 = 4.0;
/// The tokens of the workload for slow policies, which come first for every policy: they tell who is slow.
const FEW: usize = 2_000;

/// Most accesses a second of one policy so far; none where it cannot run so, and why.
struct Line {
    spec: PolicySpec,
    sequential: Option<f64>,
    event: Option<f64>,
    /// Too slow for the whole workload, one access at a time or through the cache.
    slow: bool,
    failed: Vec<String>,
}

/// The table of all policies, and what its columns stand on.
pub fn replay_table(options: &Options) -> Result<String> {
    let workload = Workload::new(options.tokens);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("replay.hst");
    write_hst(&workload.trace, &path, Codec::Raw)?;
    let opened = Workload::of(Trace::open(&path)?);

    let few = Workload::new(FEW.min(options.tokens));
    let (mut lines, mut limit) = (Vec::new(), f64::MAX);
    for info in POLICIES {
        if options.only.as_ref().is_none_or(|only| only.iter().any(|name| name == info.name)) {
            let spec = info.name.parse()?;
            lines.push(Line {
                spec,
                sequential: None,
                event: None,
                slow: false,
                failed: Vec::new(),
            });
        }
    }
    let lru: PolicySpec = "lru".parse()?;
    for line in &mut lines {
        line.measure(&few);
        line.slow = line.slowest().is_some_and(|rate| workload.accesses() as f64 / rate > PATIENCE);
        if !line.slow {
            (line.sequential, line.event) = (None, None);
        }
    }
    let mut from = [f64::MAX; 2];
    for _ in 0..options.rounds {
        limit = limit.min(seconds(|| array_lru(&workload.keys, workload.slots)).0);
        for (best, workload) in from.iter_mut().zip([&workload, &opened]) {
            *best = best.min(seconds(|| workload.replay(&lru, Semantics::Event)).0);
        }
        for line in &mut lines {
            line.measure(if line.slow { &few } else { &workload });
        }
    }
    let peers = library::measure(&workload, options.rounds)?;

    let limit = workload.accesses() as f64 / limit;
    let mut table = format!(
        "The limit, a plain array LRU: **{:.0} M accesses/s** (best of {} rounds, in which every \
         policy ran in turn).\n\n{}\n\n\
         | policy | sequential, M/s | to the array LRU | event, M/s | to its sequential | event to the \
         array LRU | libCacheSim, M/s | times libCacheSim |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
        limit / 1e6,
        options.rounds,
        peers.told,
    );
    for line in &lines {
        let peer = peers.of(line.spec.info().name);
        line.write(&mut table, limit, peer.map(|peer| workload.accesses() as f64 / peer.seconds))?;
    }
    for line in &lines {
        for why in &line.failed {
            write!(table, "\n`{}`: {why}.\n", line.spec.info().name)?;
        }
    }
    let slow: Vec<_> =
        lines.iter().filter(|line| line.slow).map(|line| line.spec.info().name).collect();
    if !slow.is_empty() {
        let (few, names) = (few.trace.tokens(), slow.join(", "));
        write!(
            table,
            "\nOver the first {few} tokens alone, since the whole workload would take over {PATIENCE} s \
             a replay: {names}.\n"
        )?;
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
            let rate = workload.accesses() as f64 / time;
            match counts {
                Ok(_) => *best = Some(best.map_or(rate, |best| best.max(rate))),
                Err(why) => {
                    let why = format!("not {}: {why}", semantics.name());
                    if !self.failed.contains(&why) {
                        self.failed.push(why);
                    }
                }
            }
        }
    }

    /// Accesses a second in the slower of the two ways.
    fn slowest(&self) -> Option<f64> {
        [self.sequential, self.event].into_iter().flatten().reduce(f64::min)
    }

    /// One row; `limit` and `peer` in accesses a second.
    fn write(&self, table: &mut String, limit: f64, peer: Option<f64>) -> std::fmt::Result {
        let name = self.spec.info().name;
        let wanted = TARGETS.iter().find(|(policy, _)| *policy == name).map(|&(_, wanted)| wanted);
        let rate = |rate: Option<f64>| match rate.map(|rate| rate / 1e6) {
            None => "-".to_owned(),
            Some(slow) if slow < 10.0 => format!("{slow:.2}"),
            Some(rate) => format!("{rate:.0}"),
        };
        let held = |ratio: Option<f64>, wanted: Option<f64>| match ratio {
            None => "-".to_owned(),
            Some(ratio) if wanted.is_some_and(|wanted| ratio < wanted) => format!("{ratio:.2} (!)"),
            Some(ratio) => format!("{ratio:.2}"),
        };
        let (sequential, event) = (self.sequential, self.event);
        let of_own = sequential.zip(event).map(|(sequential, event)| event / sequential);
        write!(
            table,
            "| {name} | {} | {} | {} | {} | {} |",
            rate(sequential),
            held(sequential.map(|rate| rate / limit), wanted),
            rate(event),
            held(of_own, Some(EVENT_TARGET)),
            held(event.map(|rate| rate / limit), None),
        )?;
        match peer.zip(sequential) {
            Some((peer, own)) => writeln!(table, " {:.1} | {:.1} |", peer / 1e6, own / peer),
            None => writeln!(table, " | |"),
        }
    }
}
