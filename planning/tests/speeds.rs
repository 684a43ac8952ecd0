//! Published speeds: exact where they follow from the inputs given, else inside the plan's range.
//!
//! What an engine costs beside moving bytes is published nowhere. Where a speed rests on it, one
//! measured point gives it, or the plan's fastest price must lie above the measurement.

use crate::shared::{gib, in_gib, near, published, request};
use hotset_cost_models::WeightFormat;
use hotset_cost_models::model::{KvFormat, Parallel};
use hotset_planning::{
    Checkpoint, MeasuredStep, MissPricing, Request, Routing, Speed, StepKind, plan,
};
use hotset_traces::testing::shared as shared_data;
use hotset_traces::{Format, ImportOptions, import};

fn uniform(request: &Request) -> Speed {
    plan(request, &Routing::uniform(&request.model)).unwrap().speed.expect("it fits")
}

/// The article's own checkpoint of Kimi-K3 on three H200.
fn kimi_k3() -> Request {
    let mut request = request("Kimi-K3", "3xh200");
    request.storage.format = Some(WeightFormat::Mxfp4);
    request.storage.checkpoint = Some(Checkpoint { total: gib(307.49), experts: None });
    request.parallel = Parallel { tensor: 3, expert: 1 };
    request
}

#[test]
fn kimi_k3_speculation() {
    let at = |path: &str, value| published("kimi-k3-speculation", path, value);
    let drafted = |drafts: u32, accept: Vec<f64>| {
        let mut request = kimi_k3();
        request.pace.measured = Some(MeasuredStep { first_ms: 28.67, further_ms: 5.95 });
        request.speculation.drafts = drafts;
        request.speculation.accept = accept;
        request.reserve.draft = Some(gib(2.0));
        plan(&request, &Routing::uniform(&request.model)).unwrap()
    };
    let plain = drafted(0, Vec::new()).speed.unwrap();
    near(plain.timeline.tokens_per_s, at("tps_0", 34.875), 0.005);
    // Tokens a step that the published rates imply at the published times.
    let steps = |tokens: f64, depth: u32| {
        tokens * drafted(depth, vec![0.5]).speed.unwrap().timeline.step_ms / 1e3
    };
    let (prose, coding) = (steps(42.464, 2), steps(52.454, 3));
    near(prose, at("implied_tokens_per_step_prose_2", 1.723), 0.005);
    near(coding, at("implied_tokens_per_step_coding_3", 2.440), 0.005);
    // An acceptance that gives so many, planned, gives the published rate back, and pays.
    let report = drafted(2, vec![0.48745]);
    let speed = report.speed.unwrap();
    near(speed.timeline.tokens_per_s, 42.464, 0.005);
    let even = report.break_even_tokens.unwrap();
    near(even, (28.67 + 2.0 * 5.95) / 28.67, 1e-9);
    assert!(speed.tokens_given > even);
}

#[test]
fn spark_speculation() {
    // Depth 1 emits 1.7 times the tokens in 1.49 times the time.
    let mut request = request("Qwen3.5-35B-A3B", "dgx-spark");
    request.storage.format = Some(WeightFormat::Nvfp4);
    request.pace.measured = Some(MeasuredStep { first_ms: 10.0, further_ms: 4.9 });
    request.speculation.drafts = 1;
    request.speculation.accept = vec![0.82, 0.66];
    let report = plan(&request, &Routing::uniform(&request.model)).unwrap();
    let even = report.break_even_tokens.unwrap();
    near(even, 1.49, 1e-9);
    near(1.7 / even, published("spark-speculation", "speedup_depth_1", 1.14), 0.01);
    // The first draft is accepted in 82%, which would give 1.82; what the article emitted is less.
    let given = report.speed.unwrap().tokens_given;
    assert!(given > 1.7 && given < 1.83, "{given}");
    // The time of depth 2 was not published, so that it is "no better than none" cannot follow;
    // for that it must take what its tokens give.
    request.speculation.drafts = 2;
    let report = plan(&request, &Routing::uniform(&request.model)).unwrap();
    near(report.speed.unwrap().tokens_given, 1.82 + 0.82 * 0.66, 1e-9);
}

#[test]
fn kimi_k3_batch() {
    let at = |path: &str, value| published("kimi-k3-batch", path, value);
    // A step of one token measured 28.67 ms; kernels that read memory are a small part of it, and
    // the rest (launches, sums between accelerators) is the engine's own.
    let single = uniform(&kimi_k3());
    let fixed = 28.67 - single.timeline.step_ms;
    assert!(fixed > 10.0, "{fixed}");
    let of = |users: u32, fixed: f64| {
        let mut request = kimi_k3();
        request.users = users;
        request.pace.fixed_ms = fixed;
        uniform(&request)
    };
    near(of(1, fixed).timeline.tokens_per_s, at("graphs", 34.875), 0.005);
    // How that grows with the batch is not published. Two and four ran with drafts, of which a step
    // gives at most 2.44 (coding, depth 3); a total is that of all users, never one's.
    for (users, total) in [
        (2, at("batch_2_dspark", 51.4)),
        (4, at("batch_4_dspark", 76.9)),
        (8, at("batch_8_target_only", 88.5)),
    ] {
        let speed = of(users, fixed);
        let given = if users < 8 { 2.44 } else { 1.0 };
        assert!(total <= given * speed.perfect.tokens_per_s, "{users}: {speed:?}");
        assert!(total > speed.timeline.tokens_per_s_each, "{users}: {speed:?}");
        near(
            speed.timeline.tokens_per_s / f64::from(users),
            speed.timeline.tokens_per_s_each,
            1e-9,
        );
    }
    // Eager engines launch every kernel by hand: only an upper bound is left.
    assert!(at("eager", 6.632) <= single.no_overlap.tokens_per_s);
    let mut sparks = kimi_k3();
    sparks.machine = hotset_cost_models::find_hardware("4xdgx-spark").unwrap();
    sparks.parallel = Parallel { tensor: 4, expert: 1 };
    assert!(at("gb10_tp4_eager", 5.076) <= uniform(&sparks).no_overlap.tokens_per_s);
}

/// Distinct experts a layer of gpt-oss-20b: 4 of one sequence. Eight like ones were published to
/// need 13.9, which the replay core's tests reproduce; the trace's own eight at a time are on
/// different subjects and need more, but fewer than if every expert were alike.
#[test]
fn concurrency_union() {
    let Some(experts) = shared_data("data/gpt-oss-20b/experts.npy") else { return };
    let trace = import(Format::Npy, experts, &ImportOptions::default()).unwrap();
    let model = request("gpt-oss-20b", "a100-40gb").model;
    let routing = Routing::of_trace(&model, &trace, false).unwrap();
    let distinct = |users| routing.need(StepKind { users, tokens: 1 }, 1.0).unwrap().distinct;
    assert_eq!(distinct(1), published("concurrency-union", "at_1", 4.0));
    let eight = distinct(8);
    assert!(eight > published("concurrency-union", "at_8", 13.9), "{eight}");
    // Skew without order says nearly what was replayed.
    let unions = routing.unions(StepKind { users: 8, tokens: 1 }).unwrap().unwrap();
    near(unions.uniform, 32.0 * (1.0 - 0.875f64.powi(8)), 1e-9);
    assert!(eight < unions.uniform - 2.0, "{eight}");
    near(unions.windows, unions.replayed, 0.06);
}

#[test]
fn freetoken_glm() {
    let at = |path: &str, value| published("freetoken-glm", path, value);
    let mut request = request("GLM-5.2", "rtx-pro-6000");
    request.storage.format = Some(WeightFormat::Nvfp4);
    request.storage.checkpoint =
        Some(Checkpoint { total: 433_000_000_000, experts: Some(419_000_000_000) });
    request.storage.kv = KvFormat::Fp8;
    request.context = 32_768;
    request.offload.misses = MissPricing::Balanced;
    let report = plan(&request, &Routing::recorded(&request.model)).unwrap();
    assert_eq!(report.fit.verdict, hotset_planning::FitVerdict::Cached);
    // 88.5 GB of the card used; the budget is 0.9 of it.
    let used = report.fit.used_bytes() as f64;
    assert!((88.5e9..=1.05 * 88.5e9).contains(&used), "{used}");
    near(report.fit.host_used_bytes() as f64, 402e9, 0.05);
    // Measured 14.9 to 17.2 tokens/s. The routing is other models', so only the range counts.
    let speed = report.speed.unwrap();
    let most_misses = speed.timeline_between.unwrap()[0];
    // Nothing overlaps, with the most misses that a recorded model had.
    let slow =
        speed.no_overlap.tokens_per_s * most_misses.tokens_per_s / speed.timeline.tokens_per_s;
    let fast = speed.perfect.tokens_per_s;
    for place in 0..3 {
        let tps = at(&format!("decode_tps_measured.{place}"), [14.9, 16.9, 17.2][place]);
        assert!(tps >= slow && tps <= fast, "{tps} outside {slow} to {fast}");
    }
    // llama.cpp keeps whole layers on the host and caches nothing.
    assert!(at("llama_cpp_tps", 7.3) < slow);
}

#[test]
fn h3_residency_speed() {
    let at = |n: usize, value| published("h3-residency", &format!("rows.{n}.1"), value);
    let measured = [at(0, 14.47), at(1, 12.47), at(2, 12.53)];
    near(1.0 - measured[2] / measured[0], 0.13, 0.05);
    let with = |weights_gib: f64, fixed_ms: f64| {
        let mut request = request("Kimi-K2", "zgx-fury");
        request.storage.format = Some(WeightFormat::Nvfp4);
        request.pace.fixed_ms = fixed_ms;
        // So much memory that the weights get just this.
        let plain = hotset_planning::fit(&request).unwrap();
        let beside: u64 = plain
            .accelerator
            .iter()
            .filter(|line| {
                !["attention and dense layers", "shared experts", "embedding", "output head"]
                    .contains(&line.name)
            })
            .map(|line| line.bytes)
            .sum();
        request.reserve.free = Some(beside + gib(weights_gib));
        let report = plan(&request, &Routing::recorded(&request.model)).unwrap();
        assert!(in_gib(report.fit.left_bytes) < 0.1);
        report.speed.unwrap()
    };
    // What lies outside the allocator is experts too: the second and third row hold nearly the same.
    let outside = [
        published("h3-residency", "outside_allocator_gib.at_87_2", 11.0),
        published("h3-residency", "outside_allocator_gib.at_44_5", 53.0),
    ];
    let held = [168.9, 87.2 + outside[0], 44.5 + outside[1]];
    // The engine's own time is not published, and a step takes far longer than its bytes: the
    // plan alone is faster in every row.
    for (held, tps) in held.into_iter().zip(measured) {
        assert!(with(held, 0.0).no_overlap.tokens_per_s > 2.0 * tps, "{held}");
    }
    // Given by the first row, the others follow to a tenth, with other models' routing.
    let fixed = 1e3 / measured[0] - with(held[0], 0.0).timeline.step_ms;
    for n in 1..3 {
        near(with(held[n], fixed).timeline.tokens_per_s, measured[n], 0.1);
    }
    // Eight streams gave 35.7 tokens/s in all, less than eight times one.
    let eight = published("h3-residency", "eight_streams_tps", 35.7);
    assert!(eight / 8.0 < measured[2]);
}

/// A step of 20 ms was measured with every expert in its slot. Where half of them are held by the host,
/// a token waits for its misses on top: each price is the step and what its own rule makes of the copies.
#[test]
fn a_measured_step_pays_for_its_misses() {
    let mut request = request("gpt-oss-20b", "rtx-4090");
    request.reserve.free = Some(gib(10.0));
    let calculated = plan(&request, &Routing::uniform(&request.model)).unwrap();
    assert_eq!(calculated.fit.verdict, hotset_planning::FitVerdict::Cached);
    let calculated = calculated.speed.unwrap();
    assert!(calculated.need.misses > 0.0);
    request.pace.measured = Some(MeasuredStep { first_ms: 20.0, further_ms: 5.0 });
    let measured = uniform(&request);
    let parts = &calculated.parts;
    let kernels = parts.dense_ms + parts.experts_ms + parts.head_ms + parts.exchange_ms;
    let on_top = |rate: f64| rate - kernels;
    near(measured.timeline.step_ms, 20.0 + on_top(calculated.timeline.step_ms), 1e-9);
    near(measured.no_overlap.step_ms, 20.0 + on_top(calculated.no_overlap.step_ms), 1e-9);
    assert!(measured.no_overlap.step_ms > measured.timeline.step_ms);
    assert!(measured.timeline.step_ms > 20.0);
    assert!(measured.perfect.step_ms >= 20.0);
    near(measured.perfect.step_ms, calculated.perfect.step_ms.max(20.0), 1e-9);
}
