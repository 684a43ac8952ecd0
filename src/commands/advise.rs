//! `hotset advise`.

use std::path::Path;

use hotset::experiments::{Advise, Ranked, advise};
use hotset::policies::miss::MissHandler;
use hotset::policies::{NoConfig, PolicySpec};
use hotset::sim::{Compare, Named, PhaseFilter, Prefetch, Scope, check_needs};
use hotset::traces::{Phase, Trace};

use super::request::{give_priced, shared, with_threads};
use crate::cli::{AdviseArgs, ReplayArgs};
use crate::commands;
use crate::fault::{Ending, Fault};
use crate::parse::{self, Profile};
use crate::progress::Bar;
use crate::typed::{Typed, quoted};

/// Handlers that are tried where none is named; those that need the host are left out where nobody
/// measured it.
const MISSES: &str = "fetch,upload-cap:n=1,balanced,hybrimoe,cpu-layers";
/// Prefetchers, likewise those that the trace has the columns for.
const PREFETCHES: &str = "none,ahead,previous-token";
/// The link where none is named.
const LINK: &str = "h200-pcie";

/// Ranks settings and gives the advice.
pub fn run(args: &AdviseArgs, typed: &[Typed]) -> Result<Ending, Fault> {
    let replay = &args.compare.replay;
    let refused = if replay.no_timeline {
        Some("--no-timeline leaves advise nothing to rank by: leave it out")
    } else if args.compare.plot.is_some() {
        Some(super::plot::NO_CURVE)
    } else if replay.sample.is_some() {
        Some(
            "advise draws its own intervals over all sequences: leave --sample out, or cut the trace with 'trace slice'",
        )
    } else {
        None
    };
    if let Some(told) = refused {
        return Err(Fault::Usage(told.to_owned()));
    }
    let trace = commands::open(replay.trace.as_deref())?;
    let request = request(args, &trace)?;
    let work = || advise(&trace, &request, &Bar::new());
    let mut advice = with_threads(replay.threads, work)??;
    let commands = Commands {
        trace: replay.trace.as_deref(),
        links: &replay.link,
        phase: PhaseFilter::from(replay.phase).only().map_or("all", Phase::name),
        typed,
    };
    for answer in &mut advice.answers {
        let of = (answer.link.as_str(), answer.capacity.as_str());
        for row in answer.rows.iter_mut().chain([&mut answer.plain]) {
            row.command = commands.of(of, advice.train, row);
        }
    }
    let output = hotset::reports::advice(&advice, args.top)?;
    give_priced(output, &replay.time, &request.compare.links, &args.compare.output)?;
    Ok(Ending::Passed)
}

fn request(args: &AdviseArgs, trace: &Trace) -> Result<Advise, Fault> {
    let replay = &args.compare.replay;
    let machine = replay.time.machine.as_deref().map(parse::machine).transpose()?;
    let links = match (&replay.link[..], &machine) {
        ([], Some(machine)) => machine.links.clone(),
        ([], None) => parse::links(&[LINK.to_owned()], None)?,
        (named, machine) => parse::links(named, machine.as_ref())?,
    };
    let compare = shared(replay, &args.compare.capacity, trace, links, machine.as_ref())?;
    Ok(Advise {
        misses: misses(replay, &compare)?,
        prefetches: prefetches(replay, trace)?,
        compare,
    })
}

fn misses(args: &ReplayArgs, compare: &Compare) -> Result<Vec<Named<MissHandler>>, Fault> {
    if let Some(given) = &args.serving.miss {
        return Ok(given.0.clone());
    }
    let mut all = parse::misses(MISSES).map_err(Fault::Usage)?.0;
    let serves = |link| compare.time.rates(link, 1 << 20).host_ps.is_some();
    let host = compare.links.iter().any(serves);
    let global = compare.scopes.contains(&Scope::Global);
    let fits = |miss: &MissHandler| match miss {
        MissHandler::CpuLayers { .. } => host && global,
        other => host || !other.uses_host(),
    };
    all.retain(|miss| fits(&miss.value));
    Ok(all)
}

fn prefetches(args: &ReplayArgs, trace: &Trace) -> Result<Vec<Named<Prefetch>>, Fault> {
    if let Some(given) = &args.serving.prefetch {
        return Ok(given.0.clone());
    }
    let lru = PolicySpec::Lru(NoConfig {});
    let mut all = parse::prefetches(PREFETCHES).map_err(Fault::Usage)?.0;
    all.retain(|named| check_needs(trace, &lru, &named.value).is_ok());
    Ok(all)
}

/// Arguments that each row has its own of, and those that decide nothing about it.
const OWN: [&str; 13] = [
    "trace", "policy", "admit", "scope", "capacity", "link", "phase", "miss", "prefetch", "train",
    "top", "format", "output",
];

/// What replays one row by itself.
struct Commands<'a> {
    trace: Option<&'a Path>,
    links: &'a [String],
    phase: &'static str,
    typed: &'a [Typed],
}

impl Commands<'_> {
    fn of(&self, answer: (&str, &str), train: Option<f64>, row: &Ranked) -> String {
        let mut words = vec!["hotset".to_owned(), "compare".to_owned()];
        words.extend(self.trace.map(|path| path.display().to_string()));
        let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        flag("--policy", &row.policy);
        flag("--scope", row.scope.name());
        flag("--capacity", answer.1);
        flag("--link", &self.link(answer.0));
        flag("--phase", self.phase);
        if row.miss != "fetch" {
            flag("--miss", &row.miss);
        }
        if row.prefetch != "none" {
            flag("--prefetch", &row.prefetch);
        }
        if let Some(train) = train {
            flag("--train", &format!("{train}%"));
        }
        for typed in self.typed.iter().filter(|typed| !OWN.contains(&typed.id.as_str())) {
            let serves_nobody = typed.id == "host_threads" && row.miss == "fetch";
            let brings_nothing = typed.id == "prefetch_to" && row.prefetch == "none";
            if typed.id == "threads" || serves_nobody || brings_nothing {
                continue;
            }
            words.extend(typed.flag.clone());
            words.extend((!typed.values.is_empty()).then(|| typed.values.join(",")));
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// A link as `compare` takes it: one of a profile by its file.
    fn link(&self, name: &str) -> String {
        let has = |file: &&String| match parse::profile(file) {
            Ok(Profile::Link(link)) => link.name == name,
            Ok(Profile::Machine(machine)) => machine.link(name).is_some(),
            Err(_) => false,
        };
        let files = self.links.iter().filter(|text| text.ends_with(".toml"));
        files.filter(has).map(|file| format!("{file}:{name}")).next().unwrap_or_else(|| {
            let typed = self.links.iter().find(|text| text.ends_with(&format!(".toml:{name}")));
            typed.cloned().unwrap_or_else(|| name.to_owned())
        })
    }
}
