//! A live run as a point: means over its tokens, and the prediction beside them.

use hotset::live::{LiveModel, LiveRun, LiveStep};
use hotset::sim::{DecisionDigest, StepTime};
use hotset::traces::{Phase, Trace};
use serde::Serialize;

/// One setting that was run, in one phase.
#[derive(Debug, Clone, Serialize)]
pub struct LivePoint {
    /// The routes.
    pub trace: String,
    /// Where the experts lie.
    pub link: &'static str,
    /// Bytes of the largest expert.
    pub expert_bytes: u64,
    /// Bytes that a step reads for each layer beside the experts.
    pub dense_bytes_per_layer: u64,
    /// Slots over all pools.
    pub slots: u32,
    /// Experts over all layers.
    pub experts: u32,
    /// The prefetcher as typed.
    pub prefetch: String,
    /// Tokens of the phase, the warm-up included.
    pub tokens: u64,
    /// Tokens that no mean has.
    pub warmup_tokens: u64,
    /// Copies of experts that were asked for.
    pub misses_per_token: f64,
    /// Copies of experts that were predicted.
    pub prefetches_per_token: f64,
    /// By the accelerator's clock.
    pub gpu_ms_per_token: f64,
    /// By the host's clock.
    pub wall_ms_per_token: f64,
    /// The policy as typed.
    pub policy: String,
    /// The scope.
    pub scope: &'static str,
    /// The miss handler as typed.
    pub miss: String,
    /// The phase of the steps.
    pub phase: Phase,
    /// Steps after the warm-up.
    pub steps: u64,
    /// Share of distinct experts found in a slot.
    pub hit_rate: Option<f64>,
    /// Experts that host cores computed.
    pub host_per_token: f64,
    /// The host's time to walk the trace and decide, an event, in nanoseconds.
    pub decide_ns_per_event: f64,
    /// The same as a share of the step's time.
    pub decide_share: f64,
    /// Experts whose sums were compared in the whole run, all right.
    pub checked: u64,
    /// What was predicted from measurements of links and kernels alone.
    #[serde(flatten)]
    pub predicted: Option<Predicted>,
}

/// What the replay says of a point.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Predicted {
    /// Time a token.
    pub predicted_ms: f64,
    /// |predicted - measured| / measured.
    pub error: f64,
    /// Whether the replay decided the same, slot for slot and victim for victim.
    pub decisions_equal: bool,
    /// Decisions that were compared.
    pub decisions: u64,
}

/// What of a setting is printed with its point.
pub struct Names<'a> {
    pub policy: &'a str,
    pub scope: &'static str,
    pub prefetch: &'a str,
    pub miss: &'a str,
    pub slots: u32,
    pub warmup: u64,
    pub hit_rates: [Option<f64>; 3],
}

/// A replay of the setting: its steps' times and its decisions.
pub struct Replay {
    pub steps: Vec<StepTime>,
    pub digest: DecisionDigest,
}

/// One point for each phase that has steps after the warm-up.
pub fn points(
    trace: &Trace,
    model: &LiveModel,
    names: &Names<'_>,
    run: &LiveRun,
    replay: Option<&Replay>,
) -> Vec<LivePoint> {
    let mut before = 0;
    let warm: Vec<bool> = run
        .steps
        .iter()
        .map(|step| {
            let cold = before < names.warmup;
            before += u64::from(step.tokens);
            !cold
        })
        .collect();
    Phase::ALL
        .into_iter()
        .filter_map(|phase| {
            let chosen: Vec<usize> =
                (0..run.steps.len()).filter(|&s| warm[s] && run.steps[s].phase == phase).collect();
            (!chosen.is_empty()).then(|| point(trace, model, names, (phase, &chosen), run, replay))
        })
        .collect()
}

fn point(
    trace: &Trace,
    model: &LiveModel,
    names: &Names<'_>,
    (phase, chosen): (Phase, &[usize]),
    run: &LiveRun,
    replay: Option<&Replay>,
) -> LivePoint {
    let steps = || chosen.iter().map(|&step| &run.steps[step]);
    let sum = |of: fn(&LiveStep) -> u64| steps().map(of).sum::<u64>();
    let tokens = sum(|step| step.tokens.into()).max(1);
    let a_token = |sum: u64| sum as f64 / tokens as f64;
    let of_phase = run.steps.iter().filter(|step| step.phase == phase);
    let all: u64 = of_phase.map(|step| u64::from(step.tokens)).sum();
    let wall_ns = sum(|step| step.wall_ns);
    let wall = a_token(wall_ns) / 1e6;
    let (events, decided) = (sum(|step| step.events.into()), sum(|step| step.decide_ns));
    let shape = trace.shape();
    let predicted = replay.map(|replay| {
        let ps: u64 = chosen.iter().filter_map(|&step| replay.steps.get(step)).map(|s| s.ps).sum();
        let predicted_ms = a_token(ps) / 1e9;
        Predicted {
            predicted_ms,
            error: (predicted_ms - wall).abs() / wall,
            decisions_equal: replay.digest == run.digest,
            decisions: run.digest.decisions(),
        }
    });
    LivePoint {
        trace: trace.name().to_owned(),
        link: model.source().name(),
        expert_bytes: model.expert_bytes(),
        dense_bytes_per_layer: model.dense_bytes(),
        slots: names.slots,
        experts: shape.total_experts(),
        prefetch: names.prefetch.to_owned(),
        tokens: all,
        warmup_tokens: all - tokens,
        misses_per_token: a_token(sum(|step| step.copies.into())),
        prefetches_per_token: a_token(sum(|step| step.prefetches.into())),
        gpu_ms_per_token: steps().map(|step| step.gpu_ms).sum::<f64>() / tokens as f64,
        wall_ms_per_token: wall,
        policy: names.policy.to_owned(),
        scope: names.scope,
        miss: names.miss.to_owned(),
        phase,
        steps: chosen.len() as u64,
        hit_rate: names.hit_rates[phase as usize],
        host_per_token: a_token(sum(|step| step.host.into())),
        decide_ns_per_event: decided as f64 / events.max(1) as f64,
        decide_share: decided as f64 / wall_ns.max(1) as f64,
        checked: run.checked,
        predicted,
    }
}

/// Every step as a row of a file.
pub fn step_rows(rows: &mut String, names: &Names<'_>, run: &LiveRun, replay: Option<&Replay>) {
    use std::fmt::Write;
    for (index, step) in run.steps.iter().enumerate() {
        let predicted = replay.and_then(|replay| replay.steps.get(index));
        let predicted =
            predicted.map_or(String::new(), |step| format!("{:.6}", step.ps as f64 / 1e9));
        // Writing to a text cannot fail.
        let _ = writeln!(
            rows,
            "\"{}\",{},{},\"{}\",\"{}\",{index},{},{},{:.6},{:.6},{},{},{},{},{predicted}",
            names.policy.replace('"', "\"\""),
            names.scope,
            names.slots,
            names.prefetch,
            names.miss,
            step.phase.name(),
            step.tokens,
            step.gpu_ms,
            step.wall_ns as f64 / 1e6,
            step.copies,
            step.prefetches,
            step.host,
            step.decide_ns,
        );
    }
}

/// The columns of those rows.
pub const STEP_COLUMNS: &str = "policy,scope,slots,prefetch,miss,step,phase,tokens,ms_gpu,ms_wall,\
                                misses,prefetches,host,decide_ns,ms_predicted\n";
