//! `hotset conform TRACE DECISIONS`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use hotset::conform::{
    Compared, Decision, Divergence, Evicted, LoggedDivergence, Outcome, Replayed,
};
use hotset::policies::PolicySpec;
use hotset::reports::{Cell, Column, Output, Sheet};
use hotset::sim::{Named, PhaseFilter, SCHEMA, Scope, Steps, TraceSummary};
use serde::Serialize;

use crate::cli::ConformArgs;
use crate::fault::{Ending, Fault};
use crate::{commands, output, parse, session};

/// Compares an engine's log with a policy, or writes the policy's own.
pub fn run(args: &ConformArgs) -> Result<Ending, Fault> {
    let Named { text: name, value: policy } = policy(args)?;
    let trace = commands::open(Some(&args.trace))?;
    let scope: Scope = args.scope.into();
    let capacity: hotset::sim::Capacity = args.capacity.parse()?;
    let shape = match args.expert_size {
        Some(bytes) => trace.shape().with_expert_bytes(bytes),
        None => trace.shape().clone(),
    };
    let slots = capacity.slots(&shape, scope)?;
    let steps = Steps::of(&trace, args.chunk);
    let phase: PhaseFilter = args.phase.into();
    let replayed = Replayed { trace: &trace, steps: &steps, phase: phase.only() };

    if let Some(path) = &args.record {
        let events = output::write_through(path, |file| {
            replayed.record(&policy, &slots, file).map_err(Fault::from)
        })?;
        session::note(format!("{}: {events} events, as '{name}' decides them", path.display()));
        return Ok(Ending::Passed);
    }
    let Some(decisions) = &args.decisions else {
        return Err(Fault::Usage(
            "give the engine's log behind the trace, or --record FILE to write the policy's own"
                .to_owned(),
        ));
    };
    let outcome = replayed
        .check(&policy, &slots, read(decisions)?)
        .map_err(|reason| Fault::Log { path: decisions.display().to_string(), reason })?;
    let report = Report {
        schema: SCHEMA,
        conforms: outcome.divergence.is_none(),
        trace: TraceSummary::of(&trace),
        policy: name,
        scope,
        capacity_slots: slots.total(),
        phase,
        compared: outcome.compared,
        divergence: outcome
            .divergence
            .as_ref()
            .map(|found| Located { line: found.line, divergence: &found.divergence }),
    };
    let mut output = Output::new(&report, sheets(&report, &outcome))?;
    output.flat = Some(flat(&report));
    output::give(&output, &args.output)?;
    Ok(if report.conforms { Ending::Passed } else { Ending::Failed })
}

fn policy(args: &ConformArgs) -> Result<Named<PolicySpec>, Fault> {
    let policy: PolicySpec = args.policy.parse()?;
    let admission = parse::admissions(std::slice::from_ref(&args.admit))?;
    let mut guarded = parse::admitted(vec![Named::new(args.policy.clone(), policy)], &admission)?;
    guarded.pop().ok_or_else(|| Fault::Usage("give a policy".to_owned()))
}

/// The log: a file, or standard input for `-`.
fn read(path: &Path) -> Result<Box<dyn BufRead>, Fault> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path)
        .map_err(|reason| Fault::Read { path: path.display().to_string(), reason })?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    conforms: bool,
    trace: TraceSummary,
    policy: String,
    scope: Scope,
    capacity_slots: u32,
    phase: PhaseFilter,
    compared: Compared,
    divergence: Option<Located<'a>>,
}

#[derive(Serialize)]
struct Located<'a> {
    line: u64,
    #[serde(flatten)]
    divergence: &'a Divergence,
}

fn sheets(report: &Report<'_>, outcome: &Outcome) -> Vec<Sheet> {
    let slots = format!("{} slots, {} scope", report.capacity_slots, report.scope.name());
    let compared = &report.compared;
    let mut facts: Vec<(&str, Cell)> = vec![
        ("conforms", if report.conforms { "yes" } else { "no" }.into()),
        ("policy", report.policy.as_str().into()),
        ("cache", slots.into()),
        ("events alike", Cell::Count(compared.events)),
        ("hits, fetches in them", format!("{}, {}", compared.hits, compared.fetches).into()),
        ("served without a slot", Cell::Count(compared.unplaced)),
        ("victims compared", Cell::Count(compared.victims)),
        ("slots compared", Cell::Count(compared.slots)),
    ];
    let Some(LoggedDivergence { line, divergence }) = &outcome.divergence else {
        let mut sheet = Sheet::facts("", facts);
        if compared.fetches > 0 && compared.victims == 0 {
            sheet.note = "the log does not say who was evicted: only hits and fetches were \
                          compared"
                .to_owned();
        }
        return vec![sheet];
    };
    let at = format!(
        "event {}, line {line}: step {}, layer {}",
        divergence.event, divergence.step, divergence.layer
    );
    let wrapped = |text: &str| Cell::Text(commands::wrap(text));
    facts.push(("differs at", at.into()));
    facts.push(("what", wrapped(&divergence.what)));
    facts.push(("rule", wrapped(&divergence.rule)));
    facts.push(("policy's definition", wrapped(&divergence.definition)));
    facts.push(("events", wrapped(divergence.events)));
    vec![Sheet::facts("", facts), side_by_side(divergence), residents(divergence)]
}

/// One line for programs.
fn flat(report: &Report<'_>) -> Sheet {
    let compared = &report.compared;
    let mut cells: Vec<(&str, Cell)> = vec![
        ("conforms", if report.conforms { "true" } else { "false" }.into()),
        ("policy", report.policy.as_str().into()),
        ("scope", report.scope.name().into()),
        ("capacity_slots", Cell::Count(u64::from(report.capacity_slots))),
        ("events", Cell::Count(compared.events)),
        ("hits", Cell::Count(compared.hits)),
        ("fetches", Cell::Count(compared.fetches)),
        ("unplaced", Cell::Count(compared.unplaced)),
        ("victims", Cell::Count(compared.victims)),
        ("slots", Cell::Count(compared.slots)),
    ];
    let at = report.divergence.as_ref();
    let count = |of: fn(&Located<'_>) -> u64| at.map_or(Cell::Empty, |at| Cell::Count(of(at)));
    cells.push(("line", count(|at| at.line)));
    cells.push(("event", count(|at| at.divergence.event)));
    cells.push(("step", count(|at| at.divergence.step)));
    cells.push(("layer", count(|at| u64::from(at.divergence.layer))));
    let text = |of: fn(&Divergence) -> &String| {
        at.map_or(Cell::Empty, |at| Cell::Text(of(at.divergence).clone()))
    };
    cells.push(("what", text(|divergence| &divergence.what)));
    cells.push(("rule", text(|divergence| &divergence.rule)));
    let (names, row): (Vec<&str>, Vec<Cell>) = cells.into_iter().unzip();
    let mut sheet = Sheet::new("", names.iter().map(|name| Column::left(name, name)).collect());
    sheet.rows = vec![row];
    sheet
}

/// Every expert of the event, by the engine and by the policy.
fn side_by_side(divergence: &Divergence) -> Sheet {
    let mut sheet = Sheet::new(
        "the event",
        vec![
            Column::right("expert", "expert"),
            Column::left("the engine", "engine"),
            Column::left("the policy", "policy"),
        ],
    );
    let mut experts = divergence.asked.clone();
    for expert in experts_of(&divergence.engine) {
        if !experts.contains(&expert) {
            experts.push(expert);
        }
    }
    sheet.rows = experts
        .into_iter()
        .map(|expert| {
            let did = |decision| Cell::Text(did(decision, expert).join(", "));
            vec![Cell::Count(u64::from(expert)), did(&divergence.engine), did(&divergence.policy)]
        })
        .collect();
    sheet
}

fn experts_of(decision: &Decision) -> impl Iterator<Item = u32> + '_ {
    let hits = decision.hits.iter().map(|held| held.expert);
    let fetches = decision.fetches.iter().map(|fetched| fetched.expert);
    hits.chain(fetches).chain(decision.unplaced.iter().copied())
}

/// What a decision says of an expert; more than once if it says more.
fn did(decision: &Decision, expert: u32) -> Vec<String> {
    let slot = |slot: Option<u32>| slot.map_or(String::new(), |slot| format!(", slot {slot}"));
    let mut said = Vec::new();
    for held in decision.hits.iter().filter(|held| held.expert == expert) {
        said.push(format!("hit{}", slot(held.slot)));
    }
    for fetched in decision.fetches.iter().filter(|fetched| fetched.expert == expert) {
        let from = match fetched.evicted {
            Evicted::Unrecorded => String::new(),
            Evicted::Nobody => " into a free slot".to_owned(),
            Evicted::Expert(other) => {
                format!(" for {} of layer {}", other.expert, other.layer)
            }
        };
        said.push(format!("fetch{from}{}", slot(fetched.slot)));
    }
    if decision.unplaced.contains(&expert) {
        said.push("no slot".to_owned());
    }
    if said.is_empty() {
        said.push("-".to_owned());
    }
    said
}

/// Who was resident before the event in the layers that it concerns.
fn residents(divergence: &Divergence) -> Sheet {
    let mut sheet = Sheet::new(
        "resident before the event",
        vec![
            Column::right("layer", "layer"),
            Column::right("experts", "experts"),
            Column::left("which", "which"),
        ],
    );
    let count = |layer: u32| divergence.resident_before[layer as usize].len() as u64;
    sheet.rows = divergence
        .layers_concerned()
        .into_iter()
        .map(|layer| {
            let which = commands::wrap(&divergence.residents_of(layer));
            vec![Cell::Count(u64::from(layer)), Cell::Count(count(layer)), which.into()]
        })
        .collect();
    let all: usize = divergence.resident_before.iter().map(Vec::len).sum();
    sheet.note =
        format!("{all} experts are resident in all; --format json lists them, layer by layer");
    sheet
}
