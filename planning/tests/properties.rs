//! What holds for every model and machine: more memory never lowers slots, more context never
//! raises them, prices are ordered, recurrent layers keep no keys.

use crate::shared::{gib, request};
use hotset_cost_models::model::{KvFormat, builtin_models};
use hotset_cost_models::{Model, WeightFormat, builtin_hardware};
use hotset_planning::{Bank, FitVerdict, MeasuredStep, PlanError, Request, Routing, fit, plan};
use hotset_traces::bundled;
use proptest::prelude::*;

/// Any built-in model in some format on any built-in machine.
fn any_request() -> impl Strategy<Value = Request> {
    let models = builtin_models();
    let machines = builtin_hardware();
    let formats = [WeightFormat::Nvfp4, WeightFormat::Fp8Block128, WeightFormat::Bf16];
    (0..models.len(), 0..machines.len(), 0..formats.len(), 1u32..64, 1u64..100_000, 0u32..3)
        .prop_map(move |(model, machine, format, users, context, bank)| {
            let model = Model::builtin(&models[model].name).unwrap();
            let mut request = Request::new(model, machines[machine].clone());
            request.storage.format = Some(formats[format]);
            (request.users, request.context) = (users, context);
            request.offload.bank = [None, Some(Bank::Inclusive), Some(Bank::Exclusive)]
                [bank as usize]
                .filter(|bank| *bank == Bank::Inclusive || !request.machine.unified);
            request
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn more_memory_never_lowers_slots(
        request in any_request(), small in 4.0f64..800.0, more in 0.0f64..400.0,
    ) {
        let with = |memory: f64| {
            let mut request = request.clone();
            request.machine.memory.value = gib(memory);
            if request.machine.unified {
                request.machine.host_memory.value = gib(memory);
            }
            fit(&request).unwrap()
        };
        let (less, more) = (with(small), with(small + more));
        prop_assert!(less.slots <= more.slots, "{} > {}", less.slots, more.slots);
        prop_assert!(more.verdict <= less.verdict);
    }

    #[test]
    fn more_context_or_users_never_raise_slots(
        request in any_request(), context in 1u64..1_000_000, users in 1u32..64,
    ) {
        let with = |context: u64, users: u32| {
            let mut request = request.clone();
            (request.context, request.users) = (context, users);
            fit(&request).unwrap()
        };
        let short = with(request.context, request.users);
        let long = with(request.context + context, request.users);
        let many = with(request.context, request.users + users);
        prop_assert!(long.slots <= short.slots);
        prop_assert!(many.slots <= short.slots);
        prop_assert!(long.verdict >= short.verdict && many.verdict >= short.verdict);
    }

    #[test]
    fn lines_and_slots_fill_the_budget_and_never_more(request in any_request()) {
        let fitted = fit(&request).unwrap();
        if fitted.verdict != FitVerdict::DoesNotFit {
            let in_pool = if request.machine.unified { fitted.host_used_bytes() } else { 0 };
            let all = fitted.used_bytes() + in_pool + fitted.left_bytes;
            prop_assert_eq!(all, fitted.budget.bytes);
            prop_assert!(fitted.slots >= fitted.least_slots && fitted.slots <= fitted.experts);
        } else {
            prop_assert!(fitted.short_bytes > 0);
        }
    }

    #[test]
    fn prices_are_ordered(request in any_request()) {
        let report = plan(&request, &Routing::uniform(&request.model)).unwrap();
        if let Some(speed) = report.speed {
            let [slow, middle, fast] =
                [speed.no_overlap, speed.timeline, speed.perfect].map(|rate| rate.step_ms);
            prop_assert!(slow >= middle * (1.0 - 1e-12) && middle >= fast * (1.0 - 1e-12));
            prop_assert!(fast > 0.0 && slow.is_finite());
            prop_assert!(speed.need.misses <= speed.need.distinct);
        }
    }
}

#[test]
fn more_memory_never_slows_down() {
    let trace = bundled().unwrap();
    let mut request = request("OLMoE-1B-7B", "rtx-4090");
    request.context = 4096;
    let routing = Routing::of_trace(&request.model, &trace, false).unwrap();
    let mut before = 0.0;
    for tenths in 30..160 {
        request.reserve.free = Some(gib(f64::from(tenths) / 10.0));
        let Some(speed) = plan(&request, &routing).unwrap().speed else { continue };
        assert!(speed.timeline.tokens_per_s >= before, "{tenths}");
        before = speed.timeline.tokens_per_s;
    }
    assert!(before > 0.0);
}

#[test]
fn recurrent_layers_keep_no_keys() {
    for model in ["Qwen3-Next-80B-A3B", "Kimi-Linear-48B-A3B", "Nemotron-3-Nano-30B-A3B"] {
        let mut request = request(model, "8xh200");
        request.storage.format = Some(WeightFormat::Bf16);
        let line = |context: u64, name: &str| {
            let mut request = request.clone();
            request.context = context;
            let fitted = fit(&request).unwrap();
            fitted.accelerator.iter().find(|line| line.name == name).map(|line| line.bytes)
        };
        let attention = request.model.layers.iter().filter(|l| !l.mixer.is_recurrent());
        let kept: u64 =
            attention.map(|layer| layer.mixer.kv(65_536, KvFormat::Bf16, 1).tokens).sum();
        assert_eq!(line(65_536, "keys and values"), Some(kept), "{model}");
        let state = line(65_536, "recurrent state");
        assert!(state > Some(0) && state == line(1, "recurrent state"), "{model}");
    }
}

/// Slots of three settings worked out by hand: 0.9 of the memory less a reserve, all weights
/// outside the experts, and what the sequences keep.
#[test]
fn slots_of_settings_by_hand() {
    let (bf16, q8_0) = (WeightFormat::Bf16, "q8_0".parse().unwrap());
    let q4_k = "q4_k".parse().unwrap();
    for (model, format, rest, memory, reserve, users, context, kv, slots) in [
        ("Qwen3-30B-A3B", WeightFormat::Nvfp4, bf16, 12.0, 1.0, 4, 8192, KvFormat::Bf16, 1589),
        ("gpt-oss-120b", WeightFormat::Mxfp4, bf16, 24.0, 1.5, 4, 32_768, KvFormat::Bf16, 942),
        ("GLM-4.5-Air", q4_k, q8_0, 24.0, 1.5, 1, 32_768, KvFormat::Fp8, 1037),
    ] {
        let mut request = request(model, "rtx-4090");
        request.machine.memory.value = gib(memory);
        (request.storage.format, request.storage.rest_format) = (Some(format), Some(rest));
        (request.users, request.context, request.storage.kv) = (users, context, kv);
        let room = &mut request.reserve;
        room.usable_share = Some(0.9);
        room.other = gib(reserve);
        (room.activations, room.graphs, room.process) = (Some(0), Some(0), Some(0));
        assert_eq!(fit(&request).unwrap().slots, slots, "{model}");
    }
}

/// FreeToken's three cases: the floor, the cap, and the refusal a byte below the floor.
#[test]
fn floor_cap_and_refusal() {
    let mut request = request("Qwen3-30B-A3B", "rtx-4090");
    request.storage.format = Some(WeightFormat::Nvfp4);
    request.reserve.free = Some(gib(20.0));
    let fitted = fit(&request).unwrap();
    let fixed = fitted.used_bytes() - fitted.slots_bytes;
    let floor = fixed + 128 * fitted.slot_bytes;
    let with = |free: u64, overlap: bool| {
        let mut request = request.clone();
        (request.reserve.free, request.reserve.overlap) = (Some(free), overlap);
        fit(&request).unwrap()
    };
    assert_eq!(with(floor, false).slots, 128, "one layer's experts");
    let below = with(floor - 1, false);
    assert_eq!((below.verdict, below.short_bytes), (FitVerdict::DoesNotFit, 1));
    assert_eq!(with(floor, true).verdict, FitVerdict::DoesNotFit);
    assert_eq!(with(floor, true).short_bytes, 128 * fitted.slot_bytes, "two layers'");
    let cap = fixed + 6144 * fitted.slot_bytes;
    let one_short = with(cap - 1, false);
    assert_eq!((one_short.slots, one_short.short_bytes), (6143, 1));
    let all = with(gib(23.9), false);
    assert_eq!((all.slots, all.verdict), (6144, FitVerdict::Resident));
}

#[test]
fn contradictions_are_refused() {
    let base = || {
        let mut request = request("Qwen3.5-35B-A3B", "rtx-4090");
        request.storage.format = Some(WeightFormat::Nvfp4);
        request
    };
    let refused = |change: &dyn Fn(&mut Request), parts: &[&str]| {
        let mut request = base();
        change(&mut request);
        let error: PlanError = fit(&request).unwrap_err();
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "'{text}' lacks '{part}'");
        }
    };
    refused(
        &|r| (r.reserve.usable_share, r.reserve.free) = (Some(0.5), Some(gib(1.0))),
        &["`MemoryReserve::usable_share` and `MemoryReserve::free` contradict"],
    );
    refused(&|r| r.reserve.free = Some(gib(99.0)), &["more than"]);
    refused(
        &|r| {
            r.machine = r.machine.with_accelerators(8);
            (r.parallel.tensor, r.parallel.expert) = (4, 8);
        },
        &["`Parallel::tensor` and `Parallel::expert` contradict"],
    );
    refused(&|r| r.parallel.tensor = 2, &["needs 2 accelerators", "2xrtx-4090"]);
    refused(&|r| (r.reserve.buffers, r.reserve.overlap) = (2, true), &["`MemoryReserve::buffers`"]);
    refused(&|r| r.speculation.drafts = 2, &["`Speculation::drafts` needs `Speculation::accept`"]);
    refused(
        &|r| {
            r.speculation.drafts = 2;
            r.speculation.accept = vec![1.5];
        },
        &["0% to 100%"],
    );
    refused(
        &|r| {
            r.model = Model::builtin("Qwen3-30B-A3B").unwrap();
            r.speculation.drafts = 1;
            r.speculation.accept = vec![0.5];
        },
        &["no draft layers", "`MemoryReserve::draft`"],
    );
    refused(
        &|r| {
            (r.pace.measured, r.pace.fixed_ms) =
                (Some(MeasuredStep { first_ms: 1.0, further_ms: 1.0 }), 2.0)
        },
        &["`Pace::measured` and `Pace::fixed_ms`"],
    );
    refused(&|r| r.offload.misses = hotset_planning::MissPricing::Balanced, &["host_kernel_rate"]);
    refused(
        &|r| {
            r.machine = hotset_cost_models::find_hardware("dgx-spark").unwrap();
            r.offload.bank = Some(Bank::Exclusive);
        },
        &["`Offload::bank` exclusive"],
    );
    refused(&|r| r.context = 0, &["`Request::context` is 0"]);
    refused(&|r| r.context = u64::MAX, &["`Request::context`"]);
    refused(&|r| r.users = 0, &["`Request::users` is 0"]);
    refused(&|r| r.parallel.expert = 0, &["at least 1"]);
    let error = fit(&request("Kimi-K3", "8xh200")).unwrap_err().to_string();
    assert!(error.contains("give a format"), "{error}");
}
