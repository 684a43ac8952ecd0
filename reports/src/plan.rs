//! Plans laid out: memory line by line, speeds as a range, the split, and what it all rests on.

use hotset_planning::{
    Alternative, Coefficient, Fit, FitVerdict, MemoryLine, MemorySplit, PlanReport, Preflight,
    RoutingSummary, Speed, SplitFront, Unions,
};

use crate::experiment::wrap;
use crate::sheet::thousands;
use crate::{Cell, Column, Output, RenderError, Sheet};

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
    sheets.extend(host(&report.fit));
    if let Some(speed) = &report.speed {
        sheets.push(speeds(speed, report));
        sheets.push(parts(speed));
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
        report.model,
        report.machine,
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
    sheets.extend(host(&report.fit));
    Output::new(report, sheets)
}

pub(crate) fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

fn headline(report: &PlanReport) -> String {
    let (model, machine, fit, asked) = (&report.model, &report.machine, &report.fit, &report.asked);
    let mut lines = vec![
        format!("{} on {}: {}", model.name, machine.name, fit.verdict.name()),
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

fn lines_of(title: String, lines: &[MemoryLine]) -> Sheet {
    let columns = vec![
        Column::left("", "line"),
        Column::right("GiB", "gib"),
        Column::left("basis", "basis"),
        Column::left("source", "source"),
    ];
    let mut sheet = Sheet::new(title, columns);
    let mut before = "";
    for line in lines {
        let mut cells = row(line);
        if line.source == before
            && let Some(source) = cells.last_mut()
        {
            *source = "as above".into();
        }
        before = &line.source;
        sheet.rows.push(cells);
    }
    sheet
}

fn row(line: &MemoryLine) -> Vec<Cell> {
    vec![
        line.name.into(),
        Cell::Number(gib(line.bytes), 3),
        line.basis.to_string().into(),
        wrap(&line.source, SOURCE).join("\n").into(),
    ]
}

fn accelerator(fit: &Fit) -> Sheet {
    let mut sheet = lines_of("memory of an accelerator".to_owned(), &fit.accelerator);
    let mut add = |name: &str, bytes: u64, source: String| {
        let source = wrap(&source, SOURCE).join("\n");
        let basis = "calculated".to_owned();
        sheet.rows.push(vec![
            name.into(),
            Cell::Number(gib(bytes), 3),
            basis.into(),
            source.into(),
        ]);
    };
    let slots = format!(
        "{} slots of {:.3} MiB, {} at least",
        thousands(fit.slots),
        fit.slot_bytes as f64 / f64::from(1 << 20),
        thousands(fit.least_slots)
    );
    add("expert slots", fit.slots_bytes, slots);
    add("left", fit.left_bytes, "nothing takes it".to_owned());
    sheet.rows.push(row(&fit.budget));
    sheet
}

fn host(fit: &Fit) -> Option<Sheet> {
    let mut sheet = lines_of("memory of a host".to_owned(), &fit.host);
    let mut add = |name: &str, bytes: u64, source: &str| {
        if bytes > 0 {
            let source = wrap(source, SOURCE).join("\n");
            sheet.rows.push(vec![
                name.into(),
                Cell::Number(gib(bytes), 3),
                "calculated".into(),
                source.into(),
            ]);
        }
    };
    add("while loading", fit.load_transient_bytes, "must be there once more for a while");
    add("page cache", fit.page_cache_bytes, "while loading, if there is room; given back");
    add("on disk", fit.on_disk_bytes, "experts that memory does not hold");
    sheet.rows.push(row(&fit.host_budget));
    Some(sheet)
}

fn speeds(speed: &Speed, report: &PlanReport) -> Sheet {
    let columns = vec![
        Column::left("", "price"),
        Column::right("ms a\nstep", "step_ms"),
        Column::right("tokens/s\nof all", "tokens_per_s"),
        Column::right("tokens/s\neach", "tokens_per_s_each"),
    ];
    let title = format!(
        "speed: a step runs {} and gives {:.2}; {:.2} distinct experts a layer,\n\
         {:.2} of them copied; {:.1} MiB a step",
        count(speed.tokens_run, "token"),
        speed.tokens_given,
        speed.need.distinct,
        speed.need.misses,
        speed.moved_mib
    );
    let mut sheet = Sheet::new(title, columns);
    for (name, rate) in [
        ("nothing overlaps", speed.no_overlap),
        ("timeline", speed.timeline),
        ("everything overlaps", speed.perfect),
    ] {
        sheet.rows.push(vec![
            name.into(),
            Cell::Number(rate.step_ms, 3),
            Cell::Number(rate.tokens_per_s, 1),
            Cell::Number(rate.tokens_per_s_each, 1),
        ]);
    }
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

fn parts(speed: &Speed) -> Sheet {
    let columns = vec![Column::left("", "part"), Column::right("ms a step", "ms")];
    let mut sheet = Sheet::new("where a step's time goes, each part alone", columns);
    let parts = &speed.parts;
    for (name, ms) in [
        ("dense weights, keys and values", parts.dense_ms),
        ("routed experts", parts.experts_ms),
        ("output head", parts.head_ms),
        ("drafting", parts.draft_ms),
        ("sums between accelerators", parts.exchange_ms),
        ("engine, as given", parts.fixed_ms),
        ("copies over the link", parts.link_ms),
        ("experts on host cores", parts.host_ms),
        ("experts from disk", parts.disk_ms),
    ] {
        if ms > 0.0 {
            sheet.rows.push(vec![name.into(), Cell::Number(ms, 3)]);
        }
    }
    sheet
}

fn unions(unions: &Unions) -> Sheet {
    let columns =
        vec![Column::left("", "how"), Column::right("experts\na layer", "distinct_experts")];
    let title = format!(
        "distinct experts a layer in a step of {} with {} each",
        users(unions.users),
        count(unions.tokens.into(), "token")
    );
    let mut sheet = Sheet::new(title, columns);
    for (name, experts) in [
        ("every expert alike", unions.uniform),
        ("the trace's windows, unrelated", unions.windows),
        ("replayed", unions.replayed),
    ] {
        sheet.rows.push(vec![name.into(), Cell::Number(experts, 2)]);
    }
    sheet
}

fn split(split: &SplitFront) -> Sheet {
    let columns = vec![
        Column::right("users", "users"),
        Column::right("tokens\nkept", "kv_tokens"),
        Column::right("slots", "slots"),
        Column::right("share\n%", "slots_share"),
        Column::right("none\noverlaps", "no_overlap_tokens_per_s"),
        Column::right("tokens/s\ntimeline", "timeline_tokens_per_s"),
        Column::right("all\noverlap", "perfect_tokens_per_s"),
    ];
    let best = &split.best;
    let title = format!(
        "slots against tokens kept: the most tokens a second with {} of {} tokens",
        users(best.users),
        thousands(best.context)
    );
    let mut sheet = Sheet::new(title, columns);
    sheet.rows = thinned(&split.front).map(of_setting).collect();
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

fn of_setting(setting: &MemorySplit) -> Vec<Cell> {
    vec![
        Cell::Count(setting.users.into()),
        Cell::Count(setting.kv_tokens),
        Cell::Count(setting.slots),
        Cell::Number(setting.slots_share * 100.0, 1),
        Cell::Number(setting.no_overlap, 1),
        Cell::Number(setting.timeline, 1),
        Cell::Number(setting.perfect, 1),
    ]
}

fn alternatives(all: &[Alternative]) -> Option<Sheet> {
    if all.is_empty() {
        return None;
    }
    let columns = vec![
        Column::left("model", "model"),
        Column::left("experts", "expert_format"),
        Column::right("B", "parameters"),
        Column::right("B active", "active_parameters"),
        Column::right("GiB", "used_gib"),
    ];
    let mut sheet = Sheet::new("built-in models that fit whole here", columns);
    for one in all {
        sheet.rows.push(vec![
            one.name.as_str().into(),
            one.format.as_str().into(),
            Cell::Number(one.parameters as f64 / 1e9, 1),
            Cell::Number(one.active_parameters as f64 / 1e9, 1),
            Cell::Number(gib(one.used_bytes), 1),
        ]);
    }
    Some(sheet)
}

fn coefficients(all: &[Coefficient]) -> Sheet {
    let columns = vec![
        Column::left("rests on", "coefficient"),
        Column::left("", "value"),
        Column::left("", "basis"),
        Column::left("source", "source"),
    ];
    let mut sheet = Sheet::new("what the speeds rest on", columns);
    for one in all {
        sheet.rows.push(vec![
            wrap(&one.name, 16).join("\n").into(),
            wrap(&one.value, 18).join("\n").into(),
            one.basis.to_string().into(),
            wrap(&one.source, 30).join("\n").into(),
        ]);
    }
    sheet
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
        RoutingSummary::Histogram { name, .. } => format!("counts {name}"),
        RoutingSummary::OwnTrace { trace } => format!("trace {}", trace.name),
        RoutingSummary::StandIn { trace, .. } => format!("trace {} stands in", trace.name),
    }
}
