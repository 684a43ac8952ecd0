//! Plans laid out: memory line by line, speeds as a range, the split, and what it all rests on.

use hotset_planning::{
    Alternative, Coefficient, Fit, FitVerdict, MemoryLine, MemorySplit, PlanReport, Preflight,
    Rate, RoutingSummary, Speed, SplitFront, Unions,
};

use crate::experiment::wrap;
use crate::sheet::thousands;
use crate::{Cell, Field, Output, RenderError, Sheet, one_line};

/// Sources are broken at this width: tables are 80 columns wide.
const SOURCE: usize = 32;
/// Settings of the front that a terminal shows.
const SHOWN: usize = 12;

/// A plan in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn plan(report: &PlanReport) -> Result<Output, RenderError> {
    let mut sheets = vec![accelerator(&report.fit)];
    sheets[0].title = format!("{}\n\n{}", headline(report), sheets[0].title);
    sheets.push(host(&report.fit));
    if let Some(speed) = &report.speed {
        sheets.push(speeds(speed, report));
        sheets.push(parts(speed));
    }
    if let (Some(speed), Some(engine)) = (&report.engine_speed, &report.asked.engine) {
        let title = format!(
            "with {engine}, as reports of resident models have it; the first token of a\n\
             prompt as long as the context"
        );
        sheets.push(Sheet::facts(title, crate::placed::engine_speed(speed)));
    }
    sheets.extend(report.unions.as_ref().map(unions));
    sheets.extend(report.split.as_ref().map(split));
    sheets.extend(alternatives(&report.right_sized));
    sheets.push(coefficients(&report.coefficients));
    if let Some(last) = sheets.last_mut() {
        last.note = told(&report.notes);
    }
    let mut output = Output::new(report, sheets)?;
    output.warnings.clone_from(&report.warnings);
    output.page = Some(crate::page::plan(report));
    Ok(output)
}

/// The contract of a cluster in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn preflight(report: &Preflight) -> Result<Output, RenderError> {
    let verdict = if report.passes { "passes" } else { "DOES NOT PASS" };
    let title = format!(
        "{} on {}: {verdict} ({}; the rule: {})",
        one_line(&report.model),
        one_line(&report.machine),
        report.fit.verdict.name(),
        report.rule
    );
    let size = |bytes: u64| Cell::Text(format!("{:.2} GiB", gib(bytes)));
    let contract = Sheet::facts(
        title,
        vec![
            ("ranks", Cell::Count(report.ranks.into())),
            ("ranks a host", Cell::Count(report.ranks_per_host.into())),
            ("a rank: weights", size(report.rank_weights_bytes)),
            ("a rank: holds while it runs", size(report.rank_steady_bytes)),
            ("a rank: may hold", size(report.rank_budget_bytes)),
            (
                if report.rank_margin_bytes < 0 { "a rank: short" } else { "a rank: left" },
                size(report.rank_margin_bytes.unsigned_abs()),
            ),
            ("a host: holds while it runs", size(report.host_steady_bytes)),
            ("a host: at most, while loading", size(report.host_peak_bytes)),
            ("a host: may hold", size(report.host_budget_bytes)),
        ],
    );
    let mut sheets = vec![contract, accelerator(&report.fit)];
    sheets.push(host(&report.fit));
    Output::new(report, sheets)
}

pub(crate) fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

fn headline(report: &PlanReport) -> String {
    let (model, machine, fit, asked) = (&report.model, &report.machine, &report.fit, &report.asked);
    let mut lines = vec![
        format!("{} on {}: {}", one_line(&model.name), one_line(&machine.name), fit.verdict.name()),
        format!(
            "{:.1} B parameters, {:.1} B active; {} of {} layers x {} experts, top-{}",
            model.parameters as f64 / 1e9,
            model.active_parameters as f64 / 1e9,
            model.moe_layers,
            model.layers,
            thousands(model.experts.into()),
            model.top_k
        ),
        format!(
            "{} of {} tokens; {} of {} experts resident ({:.1}%)",
            users(asked.users),
            thousands(asked.context),
            thousands(fit.slots),
            thousands(fit.experts),
            fit.share() * 100.0
        ),
    ];
    if machine.ranks > 1 {
        lines.push(format!(
            "each of {} accelerators, {} a host (tensor {}, expert {})",
            machine.ranks, machine.ranks_per_host, asked.tensor_parallel, asked.expert_parallel
        ));
    }
    lines.extend(bound(fit));
    lines.push(longest(report));
    lines.join("\n")
}

fn users(users: u32) -> String {
    if users == 1 { "1 user".to_owned() } else { format!("{} users", thousands(users.into())) }
}

fn bound(fit: &Fit) -> Option<String> {
    let better = match fit.verdict {
        FitVerdict::Resident => return None,
        FitVerdict::Cached => "all experts resident",
        FitVerdict::WithDisk => "doing without a disk",
        FitVerdict::DoesNotFit => "fitting at all",
    };
    let bytes = fit.short_bytes;
    Some(format!("bound by {}: {:.2} GiB short of {better}", fit.binding.name(), gib(bytes)))
}

fn longest(report: &PlanReport) -> String {
    let longest = report.longest;
    match report.fit.verdict {
        FitVerdict::DoesNotFit if longest.any == 0 => "no context fits".to_owned(),
        FitVerdict::DoesNotFit => {
            format!("the longest context that fits: {} tokens", thousands(longest.any))
        }
        verdict => format!(
            "longest context: {} tokens {}, {} at all",
            thousands(longest.same_verdict),
            verdict.name(),
            thousands(longest.any)
        ),
    }
}

/// A line of a table of memory.
struct Entry {
    name: &'static str,
    bytes: u64,
    basis: String,
    source: String,
}

impl Entry {
    fn of(line: &MemoryLine) -> Self {
        Self {
            name: line.name,
            bytes: line.bytes,
            basis: line.basis.to_string(),
            source: line.source.clone(),
        }
    }

    fn calculated(name: &'static str, bytes: u64, source: impl Into<String>) -> Self {
        Self { name, bytes, basis: "calculated".to_owned(), source: source.into() }
    }

    /// Lines in order; a source that repeats the one before it is not written out again.
    fn all(lines: &[MemoryLine]) -> Vec<Self> {
        let before = std::iter::once("").chain(lines.iter().map(|line| line.source.as_str()));
        let entry = |(line, before): (&MemoryLine, &str)| match line.source == before {
            true => Self { source: "as above".to_owned(), ..Self::of(line) },
            false => Self::of(line),
        };
        lines.iter().zip(before).map(entry).collect()
    }
}

const MEMORY: &[Field<Entry>] = &[
    Field::left("", "line", |entry| entry.name.into()),
    Field::right("GiB", "gib", |entry| Cell::Number(gib(entry.bytes), 3)),
    Field::left("basis", "basis", |entry| entry.basis.as_str().into()),
    Field::left("source", "source", |entry| wrap(&entry.source, SOURCE).join("\n").into()),
];

fn accelerator(fit: &Fit) -> Sheet {
    let slots = format!(
        "{} slots of {:.3} MiB, {} at least",
        thousands(fit.slots),
        fit.slot_bytes as f64 / f64::from(1 << 20),
        thousands(fit.least_slots)
    );
    let mut entries = Entry::all(&fit.accelerator);
    entries.push(Entry::calculated("expert slots", fit.slots_bytes, slots));
    entries.push(Entry::calculated("left", fit.left_bytes, "nothing takes it"));
    entries.push(Entry::of(&fit.budget));
    Sheet::of("memory of an accelerator", MEMORY, entries)
}

fn host(fit: &Fit) -> Sheet {
    let mut entries = Entry::all(&fit.host);
    for (name, bytes, source) in [
        ("while loading", fit.load_transient_bytes, "must be there once more for a while"),
        ("page cache", fit.page_cache_bytes, "while loading, if there is room; given back"),
        ("on disk", fit.on_disk_bytes, "experts that memory does not hold"),
    ] {
        if bytes > 0 {
            entries.push(Entry::calculated(name, bytes, source));
        }
    }
    entries.push(Entry::of(&fit.host_budget));
    Sheet::of("memory of a host", MEMORY, entries)
}

/// A speed under one assumption on what overlaps.
struct Priced {
    name: &'static str,
    rate: Rate,
}

const SPEEDS: &[Field<Priced>] = &[
    Field::left("", "price", |price| price.name.into()),
    Field::right("ms a\nstep", "step_ms", |price| Cell::Number(price.rate.step_ms, 3)),
    Field::right("tokens/s\nof all", "tokens_per_s", |price| {
        Cell::Number(price.rate.tokens_per_s, 1)
    }),
    Field::right("tokens/s\neach", "tokens_per_s_each", |price| {
        Cell::Number(price.rate.tokens_per_s_each, 1)
    }),
];

fn speeds(speed: &Speed, report: &PlanReport) -> Sheet {
    let between = match speed.need.between {
        Some([low, high]) if high > low => format!(" ({low:.2} to {high:.2})"),
        _ => String::new(),
    };
    let title = format!(
        "speed: a step runs {} and gives {:.2}; {:.2} distinct experts a layer,\n\
         {:.2}{between} of them copied; {:.1} MiB a step",
        count(speed.tokens_run, "token"),
        speed.tokens_given,
        speed.need.distinct,
        speed.need.misses,
        speed.moved_mib
    );
    let mut prices = vec![
        Priced { name: "nothing overlaps", rate: speed.no_overlap },
        Priced { name: "timeline", rate: speed.timeline },
    ];
    if let Some([slow, fast]) = speed.timeline_between.filter(|_| !between.is_empty()) {
        prices.push(Priced { name: "  most misses of the recordings", rate: slow });
        prices.push(Priced { name: "  fewest misses of them", rate: fast });
    }
    prices.push(Priced { name: "everything overlaps", rate: speed.perfect });
    let mut sheet = Sheet::of(title, SPEEDS, prices);
    if let Some(even) = report.break_even_tokens {
        let given = speed.tokens_given / f64::from(report.asked.users.max(1));
        let pays = if given > even { "pays" } else { "does not pay" };
        sheet.note = format!(
            "drafting {pays}: {given:.2} tokens a step and user, in the time of {even:.2} steps"
        );
    }
    sheet
}

fn count(number: u64, of: &str) -> String {
    format!("{} {of}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A quantity with a name of its own.
struct Named {
    name: &'static str,
    value: f64,
}

const PARTS: &[Field<Named>] = &[
    Field::left("", "part", |part| part.name.into()),
    Field::right("ms a step", "ms", |part| Cell::Number(part.value, 3)),
];

fn parts(speed: &Speed) -> Sheet {
    let parts = &speed.parts;
    let all = [
        Named { name: "dense weights, keys and values", value: parts.dense_ms },
        Named { name: "routed experts", value: parts.experts_ms },
        Named { name: "output head", value: parts.head_ms },
        Named { name: "drafting", value: parts.draft_ms },
        Named { name: "sums between accelerators", value: parts.exchange_ms },
        Named { name: "engine, as given", value: parts.fixed_ms },
        Named { name: "copies over the link", value: parts.link_ms },
        Named { name: "experts on host cores", value: parts.host_ms },
        Named { name: "experts from disk", value: parts.disk_ms },
    ];
    let there = all.into_iter().filter(|part| part.value > 0.0);
    Sheet::of("where a step's time goes, each part alone", PARTS, there)
}

const UNIONS: &[Field<Named>] = &[
    Field::left("", "how", |union| union.name.into()),
    Field::right("experts\na layer", "distinct_experts", |union| Cell::Number(union.value, 2)),
];

fn unions(unions: &Unions) -> Sheet {
    let title = format!(
        "distinct experts a layer in a step of {} with {} each",
        users(unions.users),
        count(unions.tokens.into(), "token")
    );
    let all = [
        Named { name: "every expert alike", value: unions.uniform },
        Named { name: "the trace's windows, unrelated", value: unions.windows },
        Named { name: "replayed", value: unions.replayed },
    ];
    Sheet::of(title, UNIONS, all)
}

const SETTINGS: &[Field<MemorySplit>] = &[
    Field::right("users", "users", |setting| Cell::Count(setting.users.into())),
    Field::right("tokens\nkept", "kv_tokens", |setting| Cell::Count(setting.kv_tokens)),
    Field::right("slots", "slots", |setting| Cell::Count(setting.slots)),
    Field::right("share\n%", "slots_share", |setting| Cell::Number(setting.slots_share * 100.0, 1)),
    Field::right("none\noverlaps", "no_overlap_tokens_per_s", |setting| {
        Cell::Number(setting.no_overlap, 1)
    }),
    Field::right("tokens/s\ntimeline", "timeline_tokens_per_s", |setting| {
        Cell::Number(setting.timeline, 1)
    }),
    Field::right("all\noverlap", "perfect_tokens_per_s", |setting| {
        Cell::Number(setting.perfect, 1)
    }),
];

fn split(split: &SplitFront) -> Sheet {
    let best = &split.best;
    let title = format!(
        "slots against tokens kept: the most tokens a second with {} of {} tokens",
        users(best.users),
        thousands(best.context)
    );
    let mut sheet = Sheet::of(title, SETTINGS, thinned(&split.front));
    sheet.note = format!(
        "{} of {} settings that no other beats in speed, tokens kept and users",
        sheet.rows.len(),
        split.tried
    );
    sheet
}

/// At most [`SHOWN`] settings, first and last among them.
fn thinned(front: &[MemorySplit]) -> impl Iterator<Item = &MemorySplit> {
    let last = front.len().saturating_sub(1);
    let shown = front.len().min(SHOWN);
    (0..shown).map(move |n| &front[if shown > 1 { n * last / (shown - 1) } else { 0 }])
}

const ALTERNATIVES: &[Field<Alternative>] = &[
    Field::left("model", "model", |one| one.name.as_str().into()),
    Field::left("experts", "expert_format", |one| one.format.as_str().into()),
    Field::right("B", "parameters", |one| Cell::Number(one.parameters as f64 / 1e9, 1)),
    Field::right("B active", "active_parameters", |one| {
        Cell::Number(one.active_parameters as f64 / 1e9, 1)
    }),
    Field::right("GiB", "used_gib", |one| Cell::Number(gib(one.used_bytes), 1)),
];

fn alternatives(all: &[Alternative]) -> Option<Sheet> {
    let title = "built-in models that fit whole here";
    (!all.is_empty()).then(|| Sheet::of(title, ALTERNATIVES, all))
}

const COEFFICIENTS: &[Field<Coefficient>] = &[
    Field::left("rests on", "coefficient", |one| wrap(&one.name, 16).join("\n").into()),
    Field::left("", "value", |one| wrap(&one.value, 18).join("\n").into()),
    Field::left("", "basis", |one| one.basis.to_string().into()),
    Field::left("source", "source", |one| wrap(&one.source, 30).join("\n").into()),
];

fn coefficients(all: &[Coefficient]) -> Sheet {
    Sheet::of("what the speeds rest on", COEFFICIENTS, all)
}

fn told(notes: &[String]) -> String {
    let lines = notes.iter().flat_map(|note| {
        let mut lines = wrap(note, 74);
        if let Some(first) = lines.first_mut() {
            *first = format!("note: {first}");
        }
        lines
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Where the routing comes from, for headlines.
pub(crate) fn routing(routing: &RoutingSummary) -> String {
    match routing {
        RoutingSummary::Uniform => "uniform routing, no trace".to_owned(),
        RoutingSummary::Recorded { traces, .. } => {
            format!("{} recorded traces of other models stand in", traces.len())
        }
        RoutingSummary::Histogram { name, .. } => format!("counts {}", one_line(name)),
        RoutingSummary::OwnTrace { trace } => format!("trace {}", one_line(&trace.name)),
        RoutingSummary::StandIn { trace, .. } => {
            format!("trace {} stands in", one_line(&trace.name))
        }
    }
}
