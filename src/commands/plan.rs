//! `hotset plan` and `hotset preflight`.

use hotset::cost_models::model::{EngineLayout, KvFormat, Parallel};
use hotset::cost_models::{Model, SlotLayout};
use hotset::planning::engine::find_engine;
use hotset::planning::placement::{HostLayers, place};
use hotset::planning::{
    Axis, Knob, MemoryReserve, Offload, PlanError, Request, Routing, Speculation, Storage,
};

use super::request::with_threads;
use crate::cli::{EngineName, KvName, PlanArgs, PreflightArgs, SettingArgs};
use crate::fault::{Ending, Fault};
use crate::flags::with_flags;
use crate::{commands, output, parse};

/// vLLM's defaults: tokens a block, tokens that a step may add.
const VLLM_BLOCK: u64 = 16;
const VLLM_IN_FLIGHT: u64 = 8192;
/// llama.cpp's micro-batch.
const MICRO_BATCH: u64 = 512;

/// Plans, or plans at many values.
pub fn run(args: &PlanArgs) -> Result<Ending, Fault> {
    let request = request(&args.setting)?;
    if let Some(layers) = args.setting.spread.cpu_moe {
        return placed(args, &request, layers);
    }
    let axes: Vec<Axis> =
        args.vary.iter().map(|text| text.parse()).collect::<Result<_, PlanError>>()?;
    let drafted =
        request.speculation.drafts > 0 || axes.iter().any(|axis| axis.knob == Knob::Speculate);
    refuse_idle(&args.setting, drafted)?;
    let trace = args.trace.as_deref().map(|path| commands::open(Some(path))).transpose()?;
    let histogram = args.histogram.as_deref().map(commands::open_histogram).transpose()?;
    let routing = |model: &Model| match (&trace, &histogram) {
        (Some(trace), _) => Routing::of_trace(model, trace, args.stand_in),
        (None, Some(histogram)) => Routing::of_histogram(model, histogram),
        (None, None) => Ok(Routing::uniform(model)),
    };
    let output = if axes.is_empty() {
        let work = || hotset::planning::plan(&request, &routing(&request.model)?);
        let mut report = with_threads(args.threads, work)??;
        name_flags(report.texts_mut());
        hotset::reports::plan(&report)?
    } else {
        let work = || hotset::planning::what_if(&request, &axes, routing);
        let mut report = with_threads(args.threads, work)??;
        name_flags(report.texts_mut());
        hotset::reports::what_if(&report)?
    };
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}

/// Plans with experts of whole layers on the host.
fn placed(args: &PlanArgs, request: &Request, layers: HostLayers) -> Result<Ending, Fault> {
    let SettingArgs { machine, formats, .. } = &args.setting;
    let given = [
        ("--trace", args.trace.is_some()),
        ("--histogram", args.histogram.is_some()),
        ("--vary", !args.vary.is_empty()),
    ];
    if let Some((flag, _)) = given.iter().find(|flag| flag.1) {
        return Err(Fault::Usage(format!(
            "{flag} is for experts that are copied: with --cpu-moe whole layers are computed where they are"
        )));
    }
    let more: Vec<_> = machine
        .split('+')
        .skip(1)
        .map(|name| parse::hardware(name.trim()))
        .collect::<Result<_, _>>()?;
    let name = match formats.engine {
        EngineName::Algorithm | EngineName::LlamaCpp => "llama.cpp",
        EngineName::Vllm => "vLLM",
        EngineName::IkLlamaCpp => "ik_llama.cpp",
        EngineName::Ktransformers => "KTransformers",
        EngineName::Sglang => "SGLang",
    };
    let engine = find_engine(name).map_err(|error| Fault::Usage(error.to_string()))?;
    let report = place(request, layers, &more, &engine)?;
    output::give(&hotset::reports::placed(&report)?, &args.output)?;
    Ok(Ending::Passed)
}

/// Checks the contract of every rank: the exit code says whether it is kept.
pub fn preflight(args: &PreflightArgs) -> Result<Ending, Fault> {
    refuse_idle(&args.setting, args.setting.pace.speculate > 0)?;
    let mut report = hotset::planning::preflight(&request(&args.setting)?, args.cached)?;
    name_flags(report.texts_mut());
    output::give(&hotset::reports::preflight(&report)?, &args.output)?;
    Ok(if report.passes { Ending::Passed } else { Ending::Failed })
}

/// Names flags where a result's texts name fields of the request.
fn name_flags<'a>(texts: impl Iterator<Item = &'a mut String>) {
    texts.for_each(|text| *text = with_flags(text));
}

/// Refuses flags of speculation where nothing is drafted: they would do nothing.
fn refuse_idle(args: &SettingArgs, drafted: bool) -> Result<(), Fault> {
    let given = [
        ("--accept", !args.pace.accept.is_empty()),
        ("--draft-model", args.pace.draft_model.is_some()),
    ];
    match given.iter().find(|flag| flag.1 && !drafted) {
        Some((flag, _)) => Err(Fault::Usage(format!(
            "{flag} is for drafted tokens: give --speculate N or --vary speculate=0..4"
        ))),
        None => Ok(()),
    }
}

fn request(args: &SettingArgs) -> Result<Request, Fault> {
    let SettingArgs { formats, spread, room, pace, .. } = args;
    let model = Model::open(&args.model).map_err(PlanError::from)?;
    let first = match spread.cpu_moe {
        Some(_) => args.machine.split('+').next().unwrap_or_default().trim(),
        None => &args.machine,
    };
    let mut machine = parse::hardware(first)?;
    if let Some(host) = &args.host {
        machine = machine.with_host(host).map_err(|why| Fault::Usage(format!("--host {why}")))?;
    }
    if let Some(disk) = args.disk {
        machine = machine.with_disk(disk);
    }
    if !(1.0..=16.0).contains(&formats.slot_multiplier) {
        return Err(Fault::Usage("--slot-multiplier must be 1 to 16".to_owned()));
    }
    let whole = spread.ep > 1 || spread.cpu_moe.is_some();
    let tensor = spread.tp.unwrap_or(if whole { 1 } else { machine.accelerators });
    let drafts = pace.speculate;
    let mut request = Request::new(model, machine);
    request.link = spread.link.as_deref().map(parse::link).transpose()?;
    request.parallel = Parallel { tensor, expert: spread.ep };
    request.storage = Storage {
        format: formats.expert_format,
        rest_format: formats.rest_format,
        slot: SlotLayout::multiplier(formats.slot_multiplier),
        checkpoint: formats.weights,
        kv: match formats.kv_format {
            KvName::Bf16 => KvFormat::Bf16,
            KvName::Fp8 => KvFormat::Fp8,
            KvName::Q8_0 => KvFormat::Q8_0,
            KvName::Q4_0 => KvFormat::Q4_0,
        },
        layout: match formats.engine {
            EngineName::Algorithm | EngineName::Ktransformers | EngineName::Sglang => {
                EngineLayout::Algorithm
            }
            EngineName::Vllm => EngineLayout::Vllm {
                block: VLLM_BLOCK,
                in_flight: VLLM_IN_FLIGHT,
                state_slots: 1 + u64::from(drafts),
            },
            EngineName::LlamaCpp | EngineName::IkLlamaCpp => {
                EngineLayout::LlamaCpp { micro_batch: MICRO_BATCH }
            }
        },
    };
    (request.context, request.users) = (args.context, args.users);
    request.speculation = Speculation { drafts, accept: pace.accept.clone() };
    request.reserve = MemoryReserve {
        usable_share: room.usable_share,
        free: room.free,
        chunk: room.chunk,
        buffers: room.prefill_buffers,
        overlap: room.prefill_overlap,
        activations: room.activations,
        graphs: room.graphs,
        process: room.process,
        draft: pace.draft_model,
        other: room.other,
        slack: room.slack,
        host_reserved: room.host_reserved,
    };
    request.offload = Offload {
        bank: spread.bank.map(Into::into),
        load: spread.load.into(),
        disk: !spread.no_disk,
        misses: spread.miss.into(),
    };
    request.pace.measured = pace.measured_step;
    request.pace.fixed_ms = pace.fixed_ms;
    request.pace.efficiency = pace.efficiency;
    Ok(request)
}
