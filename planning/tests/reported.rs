//! Reports of people: the goals that predictions of memory keep, on those at hand and on a few of our own.

use hotset_planning::verify::{CheckedRow, Known, Reports, VerifyReport, verify};
use hotset_traces::testing::shared;

fn verified(bytes: &[u8]) -> VerifyReport {
    let mut reports = Reports::default();
    reports.add(bytes, "reports").unwrap();
    verify(&reports, &Known::builtin())
}

/// Rows of some kinds that were answered: how many, the median error, and how many are within a tenth.
fn come_to(report: &VerifyReport, kinds: &[&str]) -> (usize, f64, f64) {
    let rows = report.rows.iter().filter(|row| kinds.contains(&row.kind.as_str()));
    let mut errors: Vec<f64> = rows.filter_map(|row| row.error.map(f64::abs)).collect();
    errors.sort_by(f64::total_cmp);
    let tenth = errors.iter().filter(|error| **error <= 0.1).count();
    (errors.len(), errors[errors.len() / 2], tenth as f64 / errors.len() as f64)
}

#[test]
fn memory_as_people_measured_it() {
    let Some(path) = shared("reported/memory.csv") else { return };
    let report = verified(&std::fs::read(path).unwrap());
    let exact = [
        "file_size",
        "model_buffer_gpu",
        "model_buffer_cpu",
        "kv",
        "recurrent_state",
        "weights_per_rank",
        "params_total",
    ];
    let (answered, median, tenth) = come_to(&report, &exact);
    assert!(answered >= 140 && median <= 0.02 && tenth >= 0.9, "{answered} {median} {tenth}");
    for kind in ["compute_buffer_gpu", "compute_buffer_host"] {
        let (answered, median, _) = come_to(&report, &[kind]);
        assert!(answered >= 25 && median <= 0.1, "{kind}: {answered} {median}");
    }
    let (answered, _, right) = come_to(&report, &["oom"]);
    assert!(answered >= 12 && right >= 0.9, "{answered} {right}");
    let silent: Vec<&CheckedRow> =
        report.rows.iter().filter(|r| r.predicted.is_none() && r.why_not.is_none()).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn reports_of_our_own_by_hand() {
    let report = verified(include_bytes!("../../docs/reported.csv"));
    let row = |id: &str| report.rows.iter().find(|row| row.id == id).unwrap();
    // 16 layers, keys and values of 16 heads of 128 in two bytes, 4,096 tokens.
    assert_eq!(row("own-3").predicted, Some(512.0));
    // Logits of 512 tokens and two of their hidden states.
    let logits = 512.0 * 4.0 * f64::from(50_304 + 2 * 2048) / f64::from(1 << 20);
    assert_eq!(row("own-4").predicted, Some(logits));
    // Half of 30.5 B weights in two bytes on each of two cards: more than 90% of 24 GiB.
    assert!(row("own-5").error.unwrap().abs() < 0.02, "{:?}", row("own-5"));
    assert_eq!(row("own-6").predicted, Some(1.0));
    assert!(row("own-7").why_not.as_deref().unwrap().contains("My-Own-8x1B"));
    assert!(report.rows.iter().all(|row| row.id != "own-8"), "it was at fault");
    assert_eq!((report.rows.len(), report.faulty), (7, 1));
    let all = report.summary.iter().find(|row| row.kind == "kv").unwrap();
    assert_eq!((all.rows, all.answered, all.inside), (2, 1, 1));
}

#[test]
fn whatever_a_row_says_it_is_answered_or_says_why_not() {
    let kinds = [
        "file_size",
        "model_buffer_gpu",
        "model_buffer_cpu",
        "kv",
        "recurrent_state",
        "oom",
        "compute_buffer_gpu",
        "compute_buffer_host",
        "output_buffer",
        "weights_per_rank",
        "kv_avail",
        "kv_tokens",
        "max_concurrency",
        "activation_peak",
        "graph_memory",
        "nonweight",
        "total_used",
        "params_total",
        "params_active",
        "mystery",
    ];
    let mut text = "id,engine,model,kind,format,context,ubatch,batch,parallel,kv_type,tp_ep_pp,\
                    gpu,gpu_mem_gib,settings,value,unit,notes\n"
        .to_owned();
    let models = ["DeepSeek-V3", "Qwen3.5-35B-A3B", "DeepSeek-V4-Flash", "gemma-4-26B-A4B", "M"];
    for engine in ["llama.cpp", "ik_llama.cpp", "vLLM", "MLX", "imp", "nobody's"] {
        for (model, kind) in models.iter().flat_map(|m| kinds.iter().map(move |k| (m, k))) {
            for (format, count, settings) in [
                ("", "", ""),
                ("Q4_K_M", "4294967296", "-ngl 7 -mla 1 -fa off"),
                ("bf16", "9000000000000000", "-ncmoe 99999999 -amb 0"),
                ("[f32:1 q9:7]", "0", "-ot exps=CPU -amb 18446744073709551616"),
                ("MLX 4bit", "1", "cpu only KV 1e300 K 1 + V 2"),
            ] {
                text += &format!(
                    "r,{engine},{model},{kind},{format},{count},{count},{count},{count},q8_0,tp1024 ep \
                     pp9 dcp2,x,{},{settings},1,GiB,with draft layer\n",
                    if count.is_empty() { "" } else { "1e18" }
                );
            }
        }
    }
    for row in verified(text.as_bytes()).rows {
        let finite = row.predicted.is_none_or(f64::is_finite);
        assert!(finite && row.predicted.is_none() != row.why_not.is_none(), "{row:?}");
        assert!(row.low <= row.predicted && row.predicted <= row.high, "{row:?}");
    }
}

#[test]
fn engines_have_what_their_rules_need() {
    for engine in hotset_planning::engine::builtin_engines() {
        let Some(memory) = &engine.memory else { continue };
        let figures = [&memory.usable_share, &memory.full_share];
        for share in figures.into_iter().flatten() {
            assert!((0.0..=1.0).contains(&share.value), "{}", engine.name);
        }
        let spreads = memory.buffers.as_ref().map(|rules| [rules.device, rules.host]);
        for spread in spreads.into_iter().flatten() {
            assert!(spread.low <= 1.0 && spread.high >= 1.0, "{}", engine.name);
            assert!(spread.inside <= spread.reports, "{}", engine.name);
        }
    }
}
