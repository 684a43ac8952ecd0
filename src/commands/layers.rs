//! `--cpu-moe` and `--pp`: accelerators, of several kinds too, that take whole layers in turn.

use hotset::cost_models::Hardware;
use hotset::planning::engine::find_engine;
use hotset::planning::placement::{HostLayers, PlacedReport, place};
use hotset::planning::{MissPricing, Request};

use crate::cli::SettingArgs;
use crate::fault::Fault;
use crate::flags::with_flags;
use crate::parse;

/// Whether layers lie whole on accelerators or the host.
pub fn in_turn(args: &SettingArgs) -> bool {
    args.spread.cpu_moe.is_some() || args.spread.pp.is_some()
}

/// The machine, of several kinds the first: as many of its accelerators as are asked for.
pub fn machine(args: &SettingArgs) -> Result<Hardware, Fault> {
    let (first, others) = match args.machine.split_once('+') {
        Some((first, others)) => (first.trim(), Some(others)),
        None => (args.machine.as_str(), None),
    };
    if others.is_some() && !in_turn(args) {
        return Err(Fault::Usage(format!(
            "--machine {}: cards of several kinds take whole layers in turn: give --pp {} or --cpu-moe auto",
            args.machine,
            args.machine.split('+').count()
        )));
    }
    let machine = parse::hardware(first)?;
    match (args.spread.pp, others) {
        (Some(wanted), None) if wanted < machine.accelerators => {
            let name = single(&machine.name).to_owned();
            Ok(Hardware { name, ..machine }.with_accelerators(wanted))
        }
        _ => Ok(machine),
    }
}

/// Plans with layers in turn, and experts of some on the host.
pub fn placed(args: &SettingArgs, request: &Request) -> Result<PlacedReport, Fault> {
    if request.offload.misses != MissPricing::Fetch {
        return Err(Fault::Usage(
            "--miss is for experts that are copied: with --cpu-moe or --pp whole layers are computed where they are"
                .to_owned(),
        ));
    }
    let others = args.machine.split('+').skip(1);
    let more: Vec<Hardware> =
        others.map(|name| parse::hardware(name.trim())).collect::<Result<_, _>>()?;
    let more: Vec<Hardware> = more
        .iter()
        .flat_map(|card| std::iter::repeat_n(card.clone(), card.accelerators.max(1) as usize))
        .collect();
    let cards = request.machine.accelerators as usize + more.len();
    if let Some(wanted) = args.spread.pp.filter(|wanted| *wanted as usize != cards) {
        return Err(Fault::Usage(format!(
            "--pp {wanted} needs {wanted} accelerators and --machine {} has {cards}: give {wanted}x{} or \
             several kinds, rtx-5090+rtx-3090",
            args.machine,
            single(&request.machine.name)
        )));
    }
    let mut request = request.clone();
    if request.engine.is_none() {
        // What most people place whole layers with.
        request.engine = Some(find_engine("llama.cpp")?);
    }
    let layers = args.spread.cpu_moe.unwrap_or(HostLayers::Layers(0));
    let mut report = place(&request, layers, &more)?;
    if !more.is_empty() {
        report.machine.clone_from(&args.machine);
    }
    report.notes.iter_mut().for_each(|note| *note = with_flags(note));
    Ok(report)
}

/// `4xrtx-3090` is made of `rtx-3090`.
fn single(name: &str) -> &str {
    match name.split_once('x') {
        Some((count, single)) if count.parse::<u32>().is_ok() => single,
        _ => name,
    }
}
