//! Runs on a GPU; where there is none, each test says that it is skipped.

use hotset_live::{LiveError, LiveModel, LiveRun, LiveSetting, Planted, Replayed, Source};
use hotset_policies::miss::{MISS_HANDLERS, MissHandler, Rates};
use hotset_policies::{ADMISSIONS, Need, POLICIES};
use hotset_sim::{
    Compare, Composition, DecisionDigest, Named, POLICY_MEMORY, PREFILL_CHUNK, Parts, PhaseFilter,
    Prefill, Preparation, Scope, Semantics, Serving, SimError, TimeModel, Training, predictors,
    replay_on,
};
use hotset_traces::{Slice, Trace};

/// Whether there is a GPU; says so where there is none.
fn gpu() -> bool {
    match hotset_live::attached() {
        Ok(1..) => true,
        Ok(0) => {
            eprintln!("SKIPPED: the driver sees no GPU");
            false
        }
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            false
        }
    }
}

/// The end of the bundled trace's first sequence and the beginning of its second: 20 decode tokens, a prompt
/// of 192, and 20 decode tokens.
fn trace() -> Trace {
    let bundled = hotset_traces::bundled().unwrap();
    bundled.slice(&Slice { tokens: Some(428..660), ..Slice::default() }).unwrap()
}

struct Wanted {
    policy: String,
    scope: Scope,
    capacity: &'static str,
    serving: Serving,
    phase: PhaseFilter,
    expert_bytes: u64,
}

impl Wanted {
    fn of(policy: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            scope: Scope::Global,
            capacity: "25%",
            serving: Serving::default(),
            phase: PhaseFilter::Decode,
            expert_bytes: 96 << 10,
        }
    }

    fn compare(&self) -> Compare {
        Compare {
            policies: vec![Named::new(&*self.policy, self.policy.parse().unwrap())],
            scopes: vec![self.scope],
            capacities: vec![Named::new(self.capacity, self.capacity.parse().unwrap())],
            links: Vec::new(),
            machine: None,
            phase: self.phase,
            semantics: Semantics::Event,
            warmup: None,
            chunk: PREFILL_CHUNK,
            expert_bytes: Some(self.expert_bytes),
            serving: self.serving.clone(),
            time: TimeModel::default(),
            timelines: false,
            training: Training::default(),
            policy_memory: POLICY_MEMORY,
            sample: None,
            seed: 0,
        }
    }
}

fn model(trace: &Trace, expert_bytes: u64, source: Source) -> LiveModel {
    let shape = trace.shape().with_expert_bytes(expert_bytes);
    LiveModel::new(&shape, 1 << 20, source).unwrap()
}

/// Runs live and replays: the run, and whether both decided the same.
fn run(
    trace: &Trace,
    model: &LiveModel,
    wanted: &Wanted,
    planted: Option<Planted>,
) -> Result<(LiveRun, bool), LiveError> {
    let compare = wanted.compare();
    let parts = Parts::of(trace, &compare)?;
    let prepared = Preparation::of(&parts, &compare)?;
    let setting = prepared.setting(&compare.policies[0].value, &prepared.sizes()[0]);
    let live = LiveSetting { host_threads: 4, planted, ..LiveSetting::default() };
    let replayed = Replayed::of(&prepared);
    let run = replayed.run(model, &setting, &live)?;
    let mut digest = DecisionDigest::default();
    let (steps, futures) = (prepared.steps(), prepared.futures());
    let (counts, _) =
        replay_on(prepared.trace(), steps, futures, &setting, Vec::new(), &mut digest)?;
    let equal = digest == run.digest && counts == run.counts;
    Ok((run, equal))
}

fn holds(trace: &Trace, model: &LiveModel, wanted: &Wanted, what: &str) {
    match run(trace, model, wanted, None) {
        Ok((run, equal)) => {
            assert!(equal, "{what}: live and replay decided otherwise");
            assert!(run.checked > 0, "{what}: nothing was checked");
        }
        // What no engine does at all is refused by name.
        Err(LiveError::Sim(SimError::NoDevice { what: refused })) => {
            eprintln!("{what}: refused: {refused}");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn every_policy_decides_live_as_it_is_replayed() {
    if !gpu() {
        return;
    }
    let trace = trace();
    let model = model(&trace, 96 << 10, Source::Host);
    for policy in POLICIES.iter().filter(|policy| policy.name != "belady-bypass") {
        for scope in [Scope::Global, Scope::Layer] {
            let wanted = Wanted { scope, ..Wanted::of(policy.name) };
            holds(&trace, &model, &wanted, &format!("{} {}", policy.name, scope.name()));
        }
    }
    for admission in ADMISSIONS {
        let policy = format!("lru+{}", admission.name);
        if policy.parse::<hotset_policies::PolicySpec>().is_ok() {
            holds(&trace, &model, &Wanted::of(&policy), &policy);
        }
    }
}

#[test]
fn every_prefetcher_decides_live_as_it_is_replayed() {
    if !gpu() {
        return;
    }
    let trace = trace();
    let model = model(&trace, 96 << 10, Source::Host);
    for predictor in predictors() {
        for control in ["", "lookahead=2", "protect=nothing", "budget=1"] {
            let joint = if control.is_empty() { "" } else { ":" };
            let text = format!("{}{joint}{control}", predictor.name);
            // Not every predictor takes every control.
            let Ok(prefetch) = text.parse() else { continue };
            let serving = Serving { prefetch, ..Serving::default() };
            let wanted = Wanted { serving, phase: PhaseFilter::All, ..Wanted::of("lru") };
            match run(&trace, &model, &wanted, None) {
                Ok((_, equal)) => assert!(equal, "{text}"),
                // The trace may lack a column.
                Err(LiveError::Sim(refused)) => eprintln!("{text}: {refused}"),
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
}

#[test]
fn every_miss_handler_decides_live_as_it_is_replayed() {
    if !gpu() {
        return;
    }
    let trace = trace();
    let model = model(&trace, 96 << 10, Source::Host);
    let rates = Rates { copy_ps: 300, host_ps: Some(200), beside: Some((1000, 1000)) };
    for handler in MISS_HANDLERS {
        let Ok(misses) = handler.name.parse::<MissHandler>() else { continue };
        let serving = Serving { misses: misses.with_rates(&rates), ..Serving::default() };
        let wanted = Wanted { serving, ..Wanted::of("class-lru") };
        holds(&trace, &model, &wanted, handler.name);
    }
}

#[test]
fn prefill_batches_drafts_and_resizes_run_live() {
    if !gpu() {
        return;
    }
    let trace = trace();
    let model = model(&trace, 96 << 10, Source::Host);
    let composed = |concurrency, verify| {
        let composition = Composition { concurrency, verify, ..Composition::default() };
        Serving { composition: Some(composition), ..Serving::default() }
    };
    let prefill = |prefill| Serving { prefill, ..Serving::default() };
    let resized =
        Serving { schedule: "20:40%,60:15%,200:30%".parse().unwrap(), ..Serving::default() };
    let servings = [
        ("batch of 2", composed(2, 1)),
        ("drafts of 4", composed(1, 4)),
        ("prefill on demand", prefill(Prefill::OnDemand)),
        ("prefill past the cache", prefill(Prefill::Bypass)),
        ("prefill streamed", prefill(Prefill::Streamed)),
        ("resized", resized),
    ];
    for (what, serving) in servings {
        for policy in ["lru", "s3-fifo"] {
            let phase = PhaseFilter::All;
            let wanted = Wanted { serving: serving.clone(), phase, ..Wanted::of(policy) };
            holds(&trace, &model, &wanted, &format!("{what}, {policy}"));
        }
    }
}

#[test]
fn experts_in_the_gpus_own_memory_run_too() {
    if !gpu() {
        return;
    }
    let trace = trace();
    let model = model(&trace, 96 << 10, Source::Device);
    holds(&trace, &model, &Wanted::of("lru"), "device");
    let serving = Serving { misses: MissHandler::Host, ..Serving::default() };
    let error = run(&trace, &model, &Wanted { serving, ..Wanted::of("lru") }, None).unwrap_err();
    assert!(matches!(error, LiveError::HostLacksExperts), "{error}");
}

#[test]
fn planted_faults_are_found() {
    if !gpu() {
        return;
    }
    let trace = trace();
    let bytes = 2 << 20;
    let model = model(&trace, bytes, Source::Host);
    // A layer's worth of slots: whoever comes takes the place of whoever is in use.
    let wanted = Wanted { expert_bytes: bytes, capacity: "8", ..Wanted::of("lru") };
    let (run_right, equal) = run(&trace, &model, &wanted, None).unwrap();
    assert!(equal && run_right.checked > 1000);
    for planted in [Planted::NoWait, Planted::EarlyReuse, Planted::WrongExpert] {
        match run(&trace, &model, &wanted, Some(planted)) {
            Err(LiveError::Wrong { wrong, checked, first }) => {
                eprintln!("{planted:?}: {wrong} of {checked}; {first}");
            }
            other => panic!("{planted:?} was not found: {:?}", other.map(|(run, _)| run.checked)),
        }
    }
}

#[test]
fn where_there_is_no_gpu_one_line_says_so() {
    if hotset_live::attached().is_ok_and(|gpus| gpus > 0) {
        eprintln!("SKIPPED: there is a GPU");
        return;
    }
    let shape = trace().shape().with_expert_bytes(96 << 10);
    let error = LiveModel::new(&shape, 1 << 20, Source::Host).map(|_| ()).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.contains("GPU"), "{error}");
    let small = trace().shape().with_expert_bytes(3000);
    let error = LiveModel::new(&small, 1 << 20, Source::Host).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("3072"), "{error}");
}

#[test]
fn policies_that_need_the_future_are_known() {
    // The loop above leaves one out by its name.
    let bounds = POLICIES.iter().filter(|policy| policy.needs == Need::Future);
    let names: Vec<&str> = bounds.map(|policy| policy.name).collect();
    assert_eq!(names, ["belady", "belady-bypass"]);
}
