//! `hotset link [list | show]`.

use hotset::cost_models::{
    HostContention, Link, MachineProfile, builtin_links, builtin_machines, find_link, find_machine,
};
use hotset::reports::{Cell, Column, Output, Sheet};
use serde::Serialize;

use crate::cli::{LinkArgs, LinkCommand};
use crate::commands::wrap;
use crate::fault::{Fault, Verdict};
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
pub fn run(args: &LinkArgs) -> Result<Verdict, Fault> {
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
    Ok(Verdict::Passed)
}

/// Links, one a row.
fn table(entries: &[Entry]) -> Sheet {
    let mut sheet = Sheet::new(
        "",
        vec![
            Column::left("link", "link"),
            Column::left("kind", "kind"),
            Column::right("1.69 MiB\nms", "ms_per_expert_of_1_6875_mib"),
            Column::right("12.6 MiB\nms", "ms_per_expert_of_12_61_mib"),
            Column::right("GiB/s", "gib_per_s_at_12_61_mib"),
        ],
    );
    sheet.rows = entries
        .iter()
        .map(|entry| {
            vec![
                entry.name.as_str().into(),
                entry.kind.as_str().into(),
                Cell::Number(entry.ms_per_expert_of_1_6875_mib, 4),
                Cell::Number(entry.ms_per_expert_of_12_61_mib, 4),
                Cell::Number(entry.gib_per_s_at_12_61_mib, 1),
            ]
        })
        .collect();
    sheet.note =
        "ms: one expert of that size alone; 'hotset link show NAME' gives the source".to_owned();
    sheet
}

fn list(entries: &[Entry]) -> Result<Output, Fault> {
    let sheet = table(entries);
    let machines = builtin_machines();
    let mut of_machines = Sheet::new(
        "",
        vec![
            Column::left("machine", "machine"),
            Column::left("links", "links"),
            Column::right("memory\nGB/s", "memory_gb_s"),
            Column::left("measured", "date"),
        ],
    );
    of_machines.rows = machines
        .iter()
        .map(|machine| {
            let links: Vec<&str> = machine.links.iter().map(|link| link.name.as_str()).collect();
            let memory = machine.hbm.as_ref().map(|hbm| hbm.saturated_gb_s());
            vec![
                machine.name.as_str().into(),
                links.join(", ").into(),
                Cell::number(memory, 0),
                machine.date.as_str().into(),
            ]
        })
        .collect();
    let names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
    let all = serde_json::json!({ "links": entries, "machines": names });
    let mut output = Output::new(&all, vec![sheet.clone(), of_machines])?;
    output.flat = Some(sheet);
    Ok(output)
}

fn one(link: &Link) -> Result<Output, Fault> {
    let entry = entry(link);
    let micros = |ps: u64| Cell::Number(ps as f64 / 1e6, 2);
    let slower = |permille: u32| Cell::Text(format!("{:.3} x", f64::from(permille) / 1000.0));
    let host = link.host_kernel.map(|_| link.host_kernel_ps(SMALL).unwrap_or(0) as f64 / 1e9);
    let facts = vec![
        ("link", entry.name.as_str().into()),
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
    let mut sheets = vec![Sheet::facts("", facts)];
    if !link.contention.host.is_empty() {
        let mut sheet = Sheet::new(
            "beside the host's cores",
            vec![
                Column::right("threads", "threads"),
                Column::right("cores alone\nGB/s", "host_gb_s"),
                Column::right("cores beside copies\ntimes as long", "host_slowdown"),
                Column::right("copies beside cores\ntimes as long", "copy_slowdown"),
            ],
        );
        let row = |host: &HostContention| {
            let rate = f64::from(1 << 20) / (host.host_ps_per_mib.max(1) as f64 * 1e-12) / 1e9;
            vec![
                Cell::Count(host.threads.into()),
                Cell::Number(rate, 1),
                Cell::Number(f64::from(host.host_permille) / 1000.0, 3),
                Cell::Number(f64::from(host.copy_permille) / 1000.0, 3),
            ]
        };
        sheet.rows = link.contention.host.iter().map(row).collect();
        sheets.push(sheet);
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
        ("machine", machine.name.as_str().into()),
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
