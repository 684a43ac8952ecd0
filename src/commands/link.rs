//! `hotset link [list | show]`.

use hotset::cost_models::{
    HostContention, Link, MachineProfile, builtin_links, builtin_machines, find_link, find_machine,
};
use hotset::reports::{Cell, Columns, Field, Output, Sheet, one_line};
use serde::Serialize;

use crate::cli::{LinkArgs, LinkCommand};
use crate::commands::wrap;
use crate::fault::{Ending, Fault};
use crate::parse::Profile;
use crate::{output, parse};

/// One size at which people compare links: 1.6875 MiB, an NVFP4 expert of a 35B-A3B model.
const SMALL: u64 = 1_769_472;
/// And one of 12.61 MiB, an MXFP4 expert of gpt-oss.
const LARGE: u64 = 13_221_888;

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: String,
    description: String,
    source: String,
    date: String,
    ms_per_expert_of_1_6875_mib: f64,
    ms_per_expert_of_12_61_mib: f64,
    gib_per_s_at_12_61_mib: f64,
    compute_ms_per_token: Option<f64>,
}

fn entry(link: &Link) -> Entry {
    Entry {
        name: link.name.clone(),
        kind: link.kind.name().to_owned(),
        description: link.description.clone(),
        source: link.source.clone(),
        date: link.date.clone(),
        ms_per_expert_of_1_6875_mib: link.transfer(SMALL).as_ms_f64(),
        ms_per_expert_of_12_61_mib: link.transfer(LARGE).as_ms_f64(),
        gib_per_s_at_12_61_mib: link.rate_gib_s(LARGE),
        compute_ms_per_token: link.compute_per_token.map(|time| time.as_ms_f64()),
    }
}

/// Fits, lists or shows.
pub fn run(args: &LinkArgs) -> Result<Ending, Fault> {
    let (name, to) = match &args.command {
        Some(LinkCommand::Fit(fit)) => return super::link_fit::run(fit),
        Some(LinkCommand::Price(price)) => return super::link_price::run(price),
        Some(LinkCommand::List { output }) => (None, output),
        Some(LinkCommand::Show { name, output }) => (Some(name), output),
        None => (args.name.as_ref(), &args.output),
    };
    let output = match name {
        None => list(&builtin_links().iter().map(entry).collect::<Vec<_>>())?,
        Some(name) if name.ends_with(".toml") => match parse::profile(name)? {
            Profile::Link(link) => one(&link)?,
            Profile::Machine(machine) => of_machine(&machine)?,
        },
        Some(name) => match find_machine(name) {
            Ok(machine) => of_machine(&machine)?,
            Err(_) => one(&find_link(name)?)?,
        },
    };
    output::give(&output, to)?;
    Ok(Ending::Passed)
}

const LINKS: &[Field<Entry>] = &[
    Field::left("link", "link", |entry| one_line(&entry.name).into()),
    Field::left("kind", "kind", |entry| entry.kind.as_str().into()),
    Field::right("1.69 MiB\nms", "ms_per_expert_of_1_6875_mib", |entry| {
        Cell::Number(entry.ms_per_expert_of_1_6875_mib, 4)
    }),
    Field::right("12.6 MiB\nms", "ms_per_expert_of_12_61_mib", |entry| {
        Cell::Number(entry.ms_per_expert_of_12_61_mib, 4)
    }),
    Field::right("GiB/s", "gib_per_s_at_12_61_mib", |entry| {
        Cell::Number(entry.gib_per_s_at_12_61_mib, 1)
    }),
];

/// Links, one a row.
fn table(entries: &[Entry]) -> Sheet {
    let mut sheet = Sheet::of("", LINKS, entries);
    sheet.note =
        "ms: one expert of that size alone; 'hotset link show NAME' gives the source".to_owned();
    sheet
}

const MACHINES: &[Field<MachineProfile>] = &[
    Field::left("machine", "machine", |machine| machine.name.as_str().into()),
    Field::left("links", "links", |machine| {
        let links: Vec<&str> = machine.links.iter().map(|link| link.name.as_str()).collect();
        links.join(", ").into()
    }),
    Field::right("memory\nGB/s", "memory_gb_s", |machine| {
        Cell::number(machine.hbm.as_ref().map(|hbm| hbm.saturated_gb_s()), 0)
    }),
    Field::left("measured", "date", |machine| machine.date.as_str().into()),
];

fn list(entries: &[Entry]) -> Result<Output, Fault> {
    let sheet = table(entries);
    let machines = builtin_machines();
    let of_machines = Sheet::of("", MACHINES, &machines);
    let names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
    let all = serde_json::json!({ "links": entries, "machines": names });
    let mut output = Output::new(&all, vec![sheet.clone(), of_machines])?;
    output.flat = Some(sheet);
    Ok(output)
}

const CONTENTION: &[Field<HostContention>] = &[
    Field::right("threads", "threads", |host| Cell::Count(host.threads.into())),
    Field::right("cores alone\nGB/s", "host_gb_s", |host| {
        let seconds_per_mib = host.host_ps_per_mib.max(1) as f64 * 1e-12;
        Cell::Number(f64::from(1 << 20) / seconds_per_mib / 1e9, 1)
    }),
    Field::right("cores beside copies\ntimes as long", "host_slowdown", |host| {
        Cell::Number(f64::from(host.host_permille) / 1000.0, 3)
    }),
    Field::right("copies beside cores\ntimes as long", "copy_slowdown", |host| {
        Cell::Number(f64::from(host.copy_permille) / 1000.0, 3)
    }),
];

/// Where it was measured with several tokens.
const FURTHER: &[Field<HostContention>] =
    &[Field::right("a further token\nus a MiB", "further_us_per_mib", |host| {
        Cell::Number(host.more_ps_per_mib as f64 / 1e6, 3)
    })];

fn one(link: &Link) -> Result<Output, Fault> {
    let entry = entry(link);
    let micros = |ps: u64| Cell::Number(ps as f64 / 1e6, 2);
    let slower = |permille: u32| Cell::Text(format!("{:.3} x", f64::from(permille) / 1000.0));
    let host = link.host_kernel.map(|_| link.host_kernel_ps(SMALL).unwrap_or(0) as f64 / 1e9);
    let mut facts = vec![
        ("link", one_line(&entry.name).into()),
        ("kind", entry.kind.as_str().into()),
        ("what", wrap(&entry.description).into()),
        ("source", wrap(&entry.source).into()),
        ("date", entry.date.as_str().into()),
        ("an expert of 1.6875 MiB, ms", Cell::Number(entry.ms_per_expert_of_1_6875_mib, 6)),
        ("an expert of 12.61 MiB, ms", Cell::Number(entry.ms_per_expert_of_12_61_mib, 6)),
        ("GiB/s at 12.61 MiB", Cell::Number(entry.gib_per_s_at_12_61_mib, 2)),
        ("compute, ms a token", Cell::number(entry.compute_ms_per_token, 3)),
        ("1.6875 MiB on the host, ms", Cell::number(host, 6)),
        ("hand-off, us a burst", micros(link.submission.handoff_ps)),
        ("between copies at least, us", micros(link.submission.copy_ps)),
        ("copies beside kernels", slower(link.contention.copy_beside_kernel_permille)),
        ("kernels beside copies", slower(link.contention.kernel_beside_copy_permille)),
    ];
    if let Some(kernel) = link.host_kernel.filter(|kernel| kernel.more_ps_per_mib > 0) {
        let ms = (kernel.expert_ps(SMALL, 2) - kernel.expert_ps(SMALL, 1)) as f64 / 1e9;
        facts.insert(10, ("  each further token, ms", Cell::Number(ms, 6)));
    }
    let mut sheets = vec![Sheet::facts("", facts)];
    let beside = &link.contention.host;
    if !beside.is_empty() {
        let mut columns = Columns::of(CONTENTION);
        if beside.iter().any(|host| host.more_ps_per_mib > 0) {
            columns.add_all(FURTHER);
        }
        sheets.push(columns.sheet("beside the host's cores", beside));
    }
    Ok(Output::new(&entry, sheets)?)
}

#[derive(Serialize)]
struct MachineEntry<'a> {
    name: &'a str,
    description: &'a str,
    source: &'a str,
    date: &'a str,
    memory_gb_s: Option<f64>,
    links: Vec<Entry>,
    other_paths: Vec<Entry>,
}

fn of_machine(machine: &MachineProfile) -> Result<Output, Fault> {
    let entries = |links: &[Link]| links.iter().map(entry).collect::<Vec<_>>();
    let memory = machine.hbm.as_ref().map(|hbm| hbm.saturated_gb_s());
    let facts = vec![
        ("machine", one_line(&machine.name).into()),
        ("what", wrap(&machine.description).into()),
        ("source", wrap(&machine.source).into()),
        ("date", machine.date.as_str().into()),
        ("its own memory, GB/s", Cell::number(memory, 0)),
    ];
    let all = MachineEntry {
        name: &machine.name,
        description: &machine.description,
        source: &machine.source,
        date: &machine.date,
        memory_gb_s: memory,
        links: entries(&machine.links),
        other_paths: entries(&machine.other_paths),
    };
    let mut links = table(&all.links);
    links.title = "links".to_owned();
    links.note = String::new();
    let mut sheets = vec![Sheet::facts("", facts), links];
    if !all.other_paths.is_empty() {
        let mut other = table(&all.other_paths);
        other.title = "other ways of moving bytes".to_owned();
        sheets.push(other);
    }
    Ok(Output::new(&all, sheets)?)
}
