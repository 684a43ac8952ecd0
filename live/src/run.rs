//! One live run of one setting, and the replay that it must equal.

use std::time::Duration;

use hotset_policies::Slots;
use hotset_sim::{
    Counts, DecisionDigest, Futures, Preparation, Setting, SimError, StepTime, Steps, Timeline,
    replay_on,
};
use hotset_traces::{Phase, Trace};

use crate::LiveError;
use crate::engine::{LiveEngine, Planted, SlotMap};
use crate::model::LiveModel;
use crate::record::Log;

/// What one step took, and what it did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveStep {
    /// Its phase.
    pub phase: Phase,
    /// Its tokens.
    pub tokens: u32,
    /// From its first call to the end of its last kernel, by the host's clock, in nanoseconds.
    pub wall_ns: u64,
    /// The same by the accelerator's, in milliseconds.
    pub gpu_ms: f64,
    /// Of the host's time, what walking the trace and the cache's decisions took, in nanoseconds.
    pub decide_ns: u64,
    /// Events: one a layer.
    pub events: u32,
    /// Copies of experts that were asked for.
    pub copies: u32,
    /// Copies of experts that were predicted.
    pub prefetches: u32,
    /// Experts that host cores computed.
    pub host: u32,
}

impl Default for LiveStep {
    fn default() -> Self {
        Self {
            phase: Phase::Decode,
            tokens: 0,
            wall_ns: 0,
            gpu_ms: 0.0,
            decide_ns: 0,
            events: 0,
            copies: 0,
            prefetches: 0,
            host: 0,
        }
    }
}

/// How one setting is run live.
#[derive(Debug, Clone, Default)]
pub struct LiveSetting {
    /// Threads of the host that compute experts; 0: none do.
    pub host_threads: u32,
    /// Whether the decisions are kept as a log.
    pub logs: bool,
    /// A fault on purpose.
    pub planted: Option<Planted>,
}

/// A live run.
#[derive(Debug, Clone)]
pub struct LiveRun {
    /// Its steps.
    pub steps: Vec<LiveStep>,
    /// The cache's counts.
    pub counts: Counts,
    /// Experts whose sums were compared, all right.
    pub checked: u64,
    /// Its decisions.
    pub digest: DecisionDigest,
    /// Its decisions one by one, where they were asked for.
    pub log: Option<Log>,
}

impl LiveRun {
    /// The host's time for the cache's decisions over all steps.
    #[must_use]
    pub fn decided(&self) -> Duration {
        Duration::from_nanos(self.steps.iter().map(|step| step.decide_ns).sum())
    }
}

/// What replays of one setting share.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its steps.
    pub steps: &'a Steps,
    /// Its recorded future.
    pub futures: &'a Futures<'a>,
}

impl<'a> Replayed<'a> {
    /// Those of a preparation.
    #[must_use]
    pub fn of(prepared: &'a Preparation<'_>) -> Self {
        Self { trace: prepared.trace(), steps: prepared.steps(), futures: prepared.futures() }
    }

    /// The setting replayed over one link: its counts, its steps' times, its decisions.
    ///
    /// # Errors
    /// As [`replay_on`].
    pub fn predict(
        &self,
        setting: &Setting,
        timeline: Timeline,
    ) -> Result<(Counts, Vec<StepTime>, DecisionDigest), SimError> {
        let mut digest = DecisionDigest::default();
        let timelines = vec![timeline.with_steps()];
        let (counts, mut timelines) =
            replay_on(self.trace, self.steps, self.futures, setting, timelines, &mut digest)?;
        let (times, _) = timelines.remove(0).finish();
        Ok((counts, times.steps, digest))
    }

    /// The setting run live.
    ///
    /// # Errors
    /// [`LiveError`]: [`LiveError::Wrong`] where an expert's sum is not its own.
    pub fn run(
        &self,
        model: &LiveModel,
        setting: &Setting,
        live: &LiveSetting,
    ) -> Result<LiveRun, LiveError> {
        let map = slot_map(model, setting);
        let threads = if setting.misses.uses_host() { live.host_threads.max(1) } else { 0 };
        let mut engine = LiveEngine::new(model, map, threads, live.planted)?;
        engine.log = live.logs.then(|| Log::new(model.layout.bases.clone()));
        let ran = replay_on(self.trace, self.steps, self.futures, setting, Vec::new(), &mut engine);
        let (steps, checked, digest, log) = engine.finish()?;
        let (counts, _) = ran?;
        Ok(LiveRun { steps, counts, checked, digest, log })
    }
}

/// The most slots that each pool ever has, one pool after another.
fn slot_map(model: &LiveModel, setting: &Setting) -> SlotMap {
    let layers = model.layout.expert_bytes.len();
    let all =
        std::iter::once(&setting.slots).chain(setting.resizes.iter().map(|change| &change.to));
    let mut most = vec![0u32; layers];
    let mut global = 0;
    for slots in all {
        match slots {
            Slots::Global(slots) => global = global.max(*slots),
            Slots::Layer(each) => {
                most.iter_mut().zip(each).for_each(|(most, &slots)| *most = (*most).max(slots));
            }
        }
    }
    let mut total = global;
    let bases = most
        .iter()
        .map(|&slots| {
            let base = if global > 0 { 0 } else { total };
            total += slots;
            base
        })
        .collect();
    SlotMap { bases, total, transient: model.layout.widest }
}
