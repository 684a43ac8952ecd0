//! `hotset plan` and `hotset preflight`.

use hotset::cost_models::model::{EngineLayout, KvFormat, Parallel, UnknownKeys};
use hotset::cost_models::{Model, SlotLayout};
use hotset::planning::engine::Pages;
use hotset::planning::{
    Axis, Knob, MemoryReserve, Offload, PlanError, Request, Routing, Speculation, Storage,
};

use super::layers::{self, placed};
use super::request::with_threads;
use crate::cli::{KvName, PlanArgs, PreflightArgs, SettingArgs};
use crate::fault::{Ending, Fault};
use crate::flags::with_flags;
use crate::parse::ExpertFormat;
use crate::progress::Bar;
use crate::{commands, output, parse};

/// vLLM's defaults: tokens a block, tokens that a step may add.
const VLLM_BLOCK: u64 = 16;
const VLLM_IN_FLIGHT: u64 = 8192;
/// Tokens of a prefill chunk.
const CHUNK: u64 = 2048;
/// llama.cpp's micro-batch.
const MICRO_BATCH: u64 = 512;

/// Plans, or plans at many values.
pub fn run(args: &PlanArgs) -> Result<Ending, Fault> {
    let request = request(&args.setting)?;
    if layers::in_turn(&args.setting) {
        refuse_idle(&args.setting, request.speculation.drafts > 0)?;
        return layered(args, &request);
    }
    let axes: Vec<Axis> =
        args.vary.iter().map(|text| text.parse()).collect::<Result<_, PlanError>>()?;
    let drafted =
        request.speculation.drafts > 0 || axes.iter().any(|axis| axis.knob == Knob::Speculate);
    refuse_idle(&args.setting, drafted)?;
    let trace = args.trace.as_deref().map(|path| commands::open(Some(path))).transpose()?;
    let histogram = args.histogram.as_deref().map(commands::open_histogram).transpose()?;
    let bar = Bar::new();
    let routing = |model: &Model| match (&trace, &histogram) {
        (Some(trace), _) => Ok(Routing::of_trace(model, trace, args.stand_in)?.watched_by(&bar)),
        (None, Some(histogram)) => Routing::of_histogram(model, histogram),
        (None, None) if args.uniform => Ok(Routing::uniform(model)),
        (None, None) => Ok(Routing::recorded(model)),
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

/// Refuses what is for experts that are copied, then plans layers in turn.
fn layered(args: &PlanArgs, request: &Request) -> Result<Ending, Fault> {
    let given = [
        ("--trace", args.trace.is_some()),
        ("--histogram", args.histogram.is_some()),
        ("--uniform", args.uniform),
        ("--vary", !args.vary.is_empty()),
    ];
    if let Some((flag, _)) = given.iter().find(|flag| flag.1) {
        return Err(Fault::Usage(format!(
            "{flag} is for experts that are copied: with --cpu-moe or --pp whole layers are computed where they are"
        )));
    }
    let report = placed(&args.setting, request)?;
    output::give(&hotset::reports::placed(&report)?, &args.output)?;
    Ok(Ending::Passed)
}

/// Checks the contract of every rank: the exit code says whether it is kept.
pub fn preflight(args: &PreflightArgs) -> Result<Ending, Fault> {
    refuse_idle(&args.setting, args.setting.pace.speculate > 0)?;
    if layers::in_turn(&args.setting) {
        let report = placed(&args.setting, &request(&args.setting)?)?;
        output::give(&hotset::reports::placed(&report)?, &args.output)?;
        return Ok(if report.fits { Ending::Passed } else { Ending::Failed });
    }
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

/// The model, stored as asked.
fn model(args: &SettingArgs) -> Result<Model, Fault> {
    let unknown = if args.allow_unknown { UnknownKeys::Allow } else { UnknownKeys::Refuse };
    let model = Model::open_with(&args.model, unknown).map_err(PlanError::from)?;
    let formats = &args.formats;
    let mix = match (&formats.expert_format, &formats.quant) {
        (Some(ExpertFormat::Mix(mix)), _) | (_, Some(mix)) => mix,
        _ => return Ok(model),
    };
    if formats.rest_format.is_some() {
        return Err(Fault::Usage(format!(
            "--rest-format does not go with the mix {mix}, which gives all tensors their formats"
        )));
    }
    Ok(model.quantised(mix))
}

fn request(args: &SettingArgs) -> Result<Request, Fault> {
    let SettingArgs { formats, spread, room, pace, .. } = args;
    let model = model(args)?;
    let mut machine = layers::machine(args)?;
    if let Some(host) = &args.host {
        machine = machine.with_host(host).map_err(|why| Fault::Usage(format!("--host {why}")))?;
    }
    if let Some(disk) = args.disk {
        machine = machine.with_disk(disk);
    }
    if !(1.0..=16.0).contains(&formats.slot_multiplier) {
        return Err(Fault::Usage("--slot-multiplier must be 1 to 16".to_owned()));
    }
    let whole = spread.ep > 1 || layers::in_turn(args);
    let tensor = spread.tp.unwrap_or(if whole { 1 } else { machine.accelerators });
    let drafts = pace.speculate;
    let engine = parse::engine(&formats.engine)?;
    let planned = engine.as_ref().and_then(|engine| engine.memory.as_ref()?.buffers.as_ref());
    if formats.ubatch.is_some() && planned.is_none() {
        let told = "--ubatch is for engines that run chunks in micro-batches: give --engine \
                    llama.cpp or ik_llama.cpp";
        return Err(Fault::Usage(told.to_owned()));
    }
    let mut request = Request::new(model, machine);
    request.link = spread.link.as_deref().map(parse::link).transpose()?;
    request.parallel = Parallel { tensor, expert: spread.ep };
    request.storage = Storage {
        format: match &formats.expert_format {
            Some(ExpertFormat::Format(format)) => Some(*format),
            Some(ExpertFormat::Mix(_)) | None => None,
        },
        rest_format: formats.rest_format,
        slot: SlotLayout::multiplier(formats.slot_multiplier),
        checkpoint: formats.weights,
        kv: match formats.kv_format {
            KvName::Bf16 => KvFormat::Bf16,
            KvName::Fp8 => KvFormat::Fp8,
            KvName::Q8_0 => KvFormat::Q8_0,
            KvName::Q4_0 => KvFormat::Q4_0,
        },
        layout: match engine.as_ref().map(|engine| engine.pages) {
            None | Some(Pages::Algorithm) => EngineLayout::Algorithm,
            Some(Pages::Vllm) => EngineLayout::Vllm {
                block: VLLM_BLOCK,
                in_flight: VLLM_IN_FLIGHT,
                state_slots: 1 + u64::from(drafts),
            },
            Some(Pages::LlamaCpp) => {
                EngineLayout::LlamaCpp { micro_batch: formats.ubatch.unwrap_or(MICRO_BATCH) }
            }
        },
    };
    let profiled = engine.as_ref().and_then(|engine| engine.memory.as_ref()?.profile.as_ref());
    let memory = request.machine.memory.value as f64;
    let usual = profiled.map_or(CHUNK, |rules| rules.tokens_on(Some(memory)) as u64);
    let chunk = room.chunk.unwrap_or(usual);
    request.engine = engine;
    (request.context, request.users) = (args.context, args.users);
    request.speculation = Speculation { drafts, accept: pace.accept.clone() };
    request.reserve = MemoryReserve {
        usable_share: room.usable_share,
        free: room.free,
        chunk,
        micro_batch: formats.ubatch,
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
