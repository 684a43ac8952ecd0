//! Published figures of memory and machines that a plan must reproduce from the inputs given.
//!
//! Each test carries the figure; where the shared folder is there, it must be the one written in
//! `receipts/seeds.toml`. Where a figure cannot follow from what was published, the test asserts
//! the range that does, and says why.

use crate::shared::{gib, in_gib, near, published, request};
use hotset_cost_models::model::{KvFormat, Parallel};
use hotset_cost_models::{WeightFormat, find_hardware, find_link};
use hotset_planning::{
    Bank, Binding, Checkpoint, FitVerdict, Load, Request, Routing, fit, plan, preflight,
};

#[test]
fn fury_memory() {
    let fury = find_hardware("zgx-fury").unwrap();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    assert_eq!(mib(fury.memory.value), published("fury-memory", "gpu_mib", 256_703.0));
    assert_eq!(mib(fury.host_memory.value), published("fury-memory", "system_mib", 506_017.0));
    let usable = in_gib(fury.memory.value - fury.context.value);
    near(usable, published("fury-memory", "usable_gib", 249.5), 1e-4);
    let total = in_gib(fury.memory.value + fury.host_memory.value);
    near(total, published("fury-memory", "total_gib", 744.8), 1e-4);
}

#[test]
fn spark_link() {
    let (spark, a100) = (find_hardware("dgx-spark").unwrap(), find_hardware("a100").unwrap());
    let rate = |link: &hotset_cost_models::Link| link.rate_gib_s(1 << 30);
    near(rate(&spark.link), published("spark-link", "spark_gib_s", 55.19), 1e-4);
    near(rate(&a100.link), published("spark-link", "a100_gib_s", 21.5), 1e-4);
    near(in_gib(spark.memory.value), published("spark-link", "pool_gib", 121.7), 1e-6);
    near(in_gib(a100.memory.value), published("spark-link", "a100_gib", 40.0), 1e-6);
    let host = a100.host_memory.value as f64 / 1e9;
    near(host, published("spark-link", "a100_host_gb", 250.0), 1e-6);
    assert!(spark.unified && !a100.unified);
}

/// Kimi K2 with so many GiB of weights on a ZGX Fury: the rest is for keys and values.
fn kimi_k2(outside_gib: f64) -> Request {
    let mut request = request("Kimi-K2", "zgx-fury");
    request.storage.format = Some(WeightFormat::Nvfp4);
    request.reserve.other = gib(outside_gib);
    request
}

/// What of the budget remains for keys and values with so many GiB of weights, in tokens.
fn kv_tokens(request: &Request, weights_gib: f64) -> f64 {
    let fitted = fit(request).unwrap();
    let kept = |name: &str| fitted.accelerator.iter().find(|l| l.name == name).unwrap().bytes;
    let weights: u64 = ["attention and dense layers", "shared experts", "embedding", "output head"]
        .map(kept)
        .iter()
        .sum();
    let kv = kept("keys and values");
    let others = fitted.used_bytes() - fitted.slots_bytes - weights - kv;
    let left = fitted.budget.bytes - others - gib(weights_gib);
    left as f64 / (kv as f64 / request.context as f64)
}

#[test]
fn h3_residency_keys_and_values() {
    let row = |n: usize, column: usize, value| {
        published("h3-residency", &format!("rows.{n}.{column}"), value)
    };
    // 549.4 GiB of NVFP4 experts by the article; the formulas' experts and the published rest.
    let whole = fit(&kimi_k2(0.0)).unwrap();
    assert_eq!(whole.experts, 60 * 384);
    near(in_gib(whole.experts * whole.slot_bytes), 549.4, 0.04);
    assert_eq!(whole.verdict, FitVerdict::Cached);
    let footprints = [row(0, 0, 168.9), row(1, 0, 87.2), row(2, 0, 44.5)];
    near(footprints[0] / footprints[2], 3.8, 0.005);
    // What lies outside the engine's allocator is given for two rows. The article does not say what
    // prefill, pages and graphs took: capacity is an upper bound, by at most an eighth.
    let outside = [
        published("h3-residency", "outside_allocator_gib.at_87_2", 11.0),
        published("h3-residency", "outside_allocator_gib.at_44_5", 53.0),
    ];
    let measured = [row(1, 2, 1_579_157.0), row(2, 2, 1_570_506.0)];
    for n in 0..2 {
        let tokens = kv_tokens(&kimi_k2(outside[n]), footprints[n + 1]);
        assert!(tokens >= measured[n] && tokens <= 1.125 * measured[n], "{n}: {tokens}");
    }
    assert!(kv_tokens(&kimi_k2(0.0), footprints[0]) >= row(0, 2, 423_029.0));
}

#[test]
fn unified_double_allocation() {
    // Experts of so many shares of the pool, held in a bank and in slots.
    let pool = find_hardware("dgx-spark").unwrap().memory.value;
    let doubled = |share: f64| {
        let mut request = request("Qwen3.5-35B-A3B", "dgx-spark");
        let weights = (pool as f64 * share / 2.0) as u64;
        request.storage.format = Some(WeightFormat::Nvfp4);
        request.storage.checkpoint =
            Some(Checkpoint { total: weights, experts: Some(weights / 1000 * 999) });
        request.offload.bank = Some(Bank::Inclusive);
        request.reserve.usable_share = Some(1.0);
        request.reserve.host_reserved = Some(0);
        (request, weights)
    };
    let at =
        |n: usize, share| published("unified-double-allocation", &format!("verdicts.{n}.0"), share);
    for (share, verdict) in [
        (at(0, 0.2), FitVerdict::Resident),
        (at(1, 0.94), FitVerdict::Resident),
        (at(2, 1.0), FitVerdict::Cached),
    ] {
        let (request, weights) = doubled(share);
        let fitted = fit(&request).unwrap();
        assert_eq!(fitted.verdict, verdict, "{share}");
        let others = fitted.needed_for_all_bytes - 2 * weights;
        // The rule, beside what any engine needs: caches, activations, the process.
        assert!(in_gib(others) < 3.0, "{share}: {}", in_gib(others));
    }
    // At the pool's size both copies do not fit.
    let (whole, _) = doubled(1.0);
    let fitted = fit(&whole).unwrap();
    assert!(fitted.needed_for_all_bytes > pool && fitted.slots < fitted.experts);
    assert_eq!(fitted.binding, Binding::UnifiedMemory);
    // Nearly at it, the plan says what was measured; once only, it is no matter.
    let (tight, _) = doubled(0.94);
    let report = plan(&tight, &Routing::uniform(&tight.model)).unwrap();
    assert!(report.warnings.iter().any(|w| w.contains("17% slower")), "{:?}", report.warnings);
    assert!(report.warnings.iter().any(|w| w.contains("experts twice")), "{:?}", report.warnings);
    let (mut once, _) = doubled(1.0);
    once.offload.bank = None;
    assert_eq!(fit(&once).unwrap().verdict, FitVerdict::Resident);
    // With the share of the pool that the machine reports as free, 94% is too much.
    let (mut careful, _) = doubled(0.94);
    (careful.reserve.usable_share, careful.reserve.host_reserved) = (None, None);
    assert_eq!(fit(&careful).unwrap().verdict, FitVerdict::Cached);
}

#[test]
fn spark_refusals() {
    let weights = published("spark-refusals", "deepseek_v4_flash_gib", 155.4);
    let on = |machine: &str| {
        let mut request = request("DeepSeek-V4-Flash", machine);
        request.storage.checkpoint = Some(Checkpoint { total: gib(weights), experts: None });
        request.storage.kv = KvFormat::Fp8;
        request
    };
    let spark = fit(&on("dgx-spark")).unwrap();
    assert!(!spark.verdict.in_memory(), "{:?}", spark.verdict);
    assert_eq!(spark.binding, Binding::UnifiedMemory);
    assert!(in_gib(spark.short_bytes) > weights - 121.7);
    let mut no_disk = on("dgx-spark");
    no_disk.offload.disk = false;
    assert_eq!(fit(&no_disk).unwrap().verdict, FitVerdict::DoesNotFit);
    let a100 = fit(&on("a100-40gb")).unwrap();
    assert_eq!(a100.verdict, FitVerdict::Cached, "the host's 250 GB hold the experts");
    // The dense models that were short by 170 to 254 MiB have no experts: nothing here plans them.
}

#[test]
fn page_cache() {
    // 57 GB of weights and 27 GB of engine: 84 GB of 121.7 GiB.
    let mut request = request("Qwen3-30B-A3B", "dgx-spark");
    let weights = 57_000_000_000;
    request.storage.checkpoint = Some(Checkpoint { total: weights, experts: None });
    request.reserve.usable_share = Some(1.0);
    request.reserve.other = 27_000_000_000;
    for room in [
        &mut request.reserve.activations,
        &mut request.reserve.graphs,
        &mut request.reserve.process,
    ] {
        *room = Some(0);
    }
    request.context = 1;
    let fitted = fit(&request).unwrap();
    assert_eq!(fitted.verdict, FitVerdict::Resident);
    near(fitted.used_bytes() as f64, 84e9, 1e-4);
    // The page cache took 82 GB of the rest and the engine was killed: it may take all that is
    // read, and the plan warns.
    let pool = request.machine.memory.value;
    assert!(fitted.used_bytes() + 82_000_000_000 > pool);
    let report = plan(&request, &Routing::uniform(&request.model)).unwrap();
    assert!(report.warnings.iter().any(|w| w.contains("page cache")), "{:?}", report.warnings);
    // A load that copies host to device needs the weights twice: 114 GB and the engine.
    request.offload.load = Load::Copied;
    let twice = fit(&request).unwrap();
    near((twice.load_transient_bytes + weights) as f64, 114e9, 1e-4);
    assert_eq!((twice.verdict, twice.binding), (FitVerdict::DoesNotFit, Binding::LoadTransient));
    request.offload.load = Load::Direct;
    let report = plan(&request, &Routing::uniform(&request.model)).unwrap();
    assert!(report.warnings.iter().all(|w| !w.contains("page cache")), "{:?}", report.warnings);
}

/// The article's own checkpoint of Kimi-K3.
fn kimi_k3(machine: &str, tensor: u32) -> Request {
    let mut request = request("Kimi-K3", machine);
    request.storage.format = Some(WeightFormat::Mxfp4);
    request.storage.checkpoint = Some(Checkpoint { total: gib(307.49), experts: None });
    request.parallel = Parallel { tensor, expert: 1 };
    request
}

#[test]
fn kimi_k3_preflight() {
    let at = |path: &str, value| published("kimi-k3-preflight", path, value);
    let free = gib(at("preflight_free_gib", 90.0));
    let mut four = kimi_k3("4xdgx-spark", 4);
    four.reserve.free = Some(free);
    let contract = preflight(&four, false).unwrap();
    assert!(contract.passes);
    assert_eq!((contract.ranks, contract.ranks_per_host), (4, 1));
    near(in_gib(contract.rank_weights_bytes), at("tp4_weights_per_rank_gib", 76.87), 0.005);
    // The article's steady state has 1.6 GiB beside the weights, and does not say of how many
    // tokens; the plan reserves prefill and graphs as well.
    let steady = in_gib(contract.rank_steady_bytes);
    assert!(steady > 76.87 && steady < 90.0, "{steady}");
    near(steady, at("tp4_steady_gib", 78.5), 0.04);
    let mut three = kimi_k3("3xdgx-spark", 3);
    three.reserve.free = Some(free);
    let short = preflight(&three, false).unwrap();
    assert!(!short.passes);
    assert!(short.rank_margin_bytes < -(gib(12.0) as i64), "{}", short.rank_margin_bytes);
    assert!(preflight(&kimi_k3("3xh200", 3), false).unwrap().passes);
}

#[test]
fn h5_a_gib_held_off() {
    let at = |path: &str, value| published("h5-format-cost", path, value);
    let per_gib = |format| {
        let mut request = request("Qwen3.5-35B-A3B", "rtx-pro-6000");
        request.storage.format = Some(format);
        request.link = Some(find_link("zgx-pcie").unwrap());
        request.reserve.free = Some(gib(12.0));
        let report = plan(&request, &Routing::uniform(&request.model)).unwrap();
        let fitted = &report.fit;
        let off = in_gib((fitted.experts - fitted.slots) * report.model.expert_bytes);
        assert!(off > 5.0, "{off}");
        report.speed.unwrap().parts.link_ms / off
    };
    let (nvfp4, fp8) = (per_gib(WeightFormat::Nvfp4), per_gib(WeightFormat::Fp8Block128));
    near(nvfp4, at("nvfp4_ms_per_gib", 2.10), 0.005);
    // By bytes a GiB costs the same in both: what FP8 costs more, measured 1.158 times, is not
    // bytes (its kernels and smaller share of resident experts), and no plan derives it.
    near(fp8, nvfp4, 0.005);
    let measured = at("fp8_ms_per_gib", 2.43);
    assert!(fp8 <= measured);
    near(measured / nvfp4, at("fp8_over_nvfp4", 1.158), 0.005);
}

#[test]
fn right_sized() {
    // 21.4 GB in NVFP4, the whole 262,144 tokens of context, on one Spark.
    let mut small = request("Qwen3.5-35B-A3B", "dgx-spark");
    small.storage.format = Some(WeightFormat::Nvfp4);
    // Its experts by the formulas; the rest is what remains of the published size.
    let experts = 40 * 256 * 1_769_496;
    small.storage.checkpoint = Some(Checkpoint { total: 21_400_000_000, experts: Some(experts) });
    small.context = 262_144;
    let report = plan(&small, &Routing::uniform(&small.model)).unwrap();
    assert_eq!(report.fit.verdict, FitVerdict::Resident);
    // Measured at 74.8 tokens/s with a short context; the plan's is what memory allows.
    small.context = 1024;
    let report = plan(&small, &Routing::uniform(&small.model)).unwrap();
    let fastest = report.speed.unwrap().perfect.tokens_per_s;
    assert!((74.8..3.0 * 74.8).contains(&fastest), "{fastest}");
    // Beside the big model that does not fit, the smaller ones that do are listed.
    let mut big = request("DeepSeek-V4-Flash", "dgx-spark");
    big.context = 262_144;
    let report = plan(&big, &Routing::uniform(&big.model)).unwrap();
    assert_ne!(report.fit.verdict, FitVerdict::Resident);
    assert!(!report.right_sized.is_empty());
    let listed = report.right_sized.iter().map(|one| one.used_bytes).max().unwrap();
    assert!(listed <= report.fit.budget.bytes);
}
