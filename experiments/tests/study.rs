//! What an independent study found on `h200-moe`, second half, global LRU at 25%, as tables of the
//! experiments tell it.

use hotset_cost_models::find_machine;
use hotset_experiments::{ArmRow, Folds, Parts, PrefetchReport, Protocol, prefetch, semantic};
use hotset_sim::{
    Compare, Composition, Compute, Named, POLICY_MEMORY, PREFILL_CHUNK, PhaseFilter, Scope,
    Semantics, Serving, TimeModel, Training, Window, compare,
};
use hotset_traces::{Format, ImportOptions, Repeat, Trace, Workload, import, testing::shared};

fn trace() -> Option<Trace> {
    let path = shared("data/h200-moe/routes.npz")?;
    Some(import(Format::Npz, path, &ImportOptions::default()).unwrap())
}

fn plan(parts: Parts, arms: &[&str]) -> Protocol {
    let h200 = find_machine("h200").unwrap();
    Protocol {
        capacity: Named::new("25%", "25%".parse().unwrap()),
        scope: Scope::Global,
        time: TimeModel {
            compute: Compute::of_machine(&h200, 20 << 20).unwrap(),
            ..TimeModel::default()
        },
        links: h200.links,
        expert_bytes: Some(1_769_472),
        parts,
        workload: None,
        resamples: 500,
        seed: 1,
        arms: arms.iter().map(|arm| arm.parse().unwrap()).collect(),
        against: Vec::new(),
    }
}

fn row<'a>(rows: &'a [ArmRow], arm: &str) -> &'a ArmRow {
    rows.iter().find(|row| row.arm == arm).unwrap_or_else(|| panic!("no arm {arm}"))
}

/// None 783,054 demand fetches; ahead 172,858 and 739,544 prefetched, 107,352 of them wasted;
/// cross-layer table, online, m = 8: 659,482 and 764,538; static popularity 861,741 and 636,596;
/// perfect next layer 59,491 and 725,147.
#[test]
fn demand_and_prefetch_are_those_of_the_study() {
    let Some(trace) = trace() else { return };
    let arms = [
        "lru/ahead",
        "lru/cross-layer:learn=online,width=8",
        "lru/popularity:learn=trained,width=8",
        "lru/oracle",
    ];
    let PrefetchReport { block, predictors, break_even, .. } =
        prefetch(&trace, &plan(Parts::Train(50.0), &arms), &[1], &()).unwrap();
    let found = |arm| {
        let row = row(&block.rows, arm);
        (row.demand_fetches, row.prefetches, row.prefetches_unused)
    };
    assert_eq!(found("lru"), (783_054, 0, 0));
    assert_eq!(found(arms[0]), (172_858, 739_544, 107_352));
    let cross = found(arms[1]);
    assert_eq!((cross.0, cross.1), (659_482, 764_538));
    let popular = found(arms[2]);
    assert_eq!((popular.0, popular.1), (861_741, 636_596));
    assert_eq!(found(arms[3]), (59_491, 725_147, 0));

    // The recall that was recorded with the trace (0.85), and the oracle's.
    let recall = |arm: &str| predictors.iter().find(|row| row.arm == arm).unwrap().recall.unwrap();
    assert!((recall("lru/ahead") - 0.85).abs() < 0.01);
    assert_eq!(recall("lru/oracle"), 1.0);

    // Break-even: where the replay's lies, the oracle of that precision is as fast as LRU, and
    // what is computed is near it.
    for found in &break_even {
        let replayed = found.replayed.unwrap_or_else(|| panic!("{found:?}"));
        assert!((found.computed - replayed).abs() < 0.12, "{found:?}");
        let ahead = row(&block.rows, "lru/ahead");
        let precision = ahead.prefetches_used as f64 / ahead.prefetches as f64;
        let link = ahead.links.iter().find(|link| link.link == found.link).unwrap();
        let faster = link.timeline_change.estimate < 0.0;
        assert_eq!(faster, precision > replayed, "{found:?} {precision}");
    }
}

/// A conversation-keyed eviction score gains 5 to 8% fewer misses than LRU; the controls are what
/// it has to be held against.
#[test]
fn a_score_keyed_on_the_conversation_gains_what_the_study_says() {
    let Some(trace) = trace() else { return };
    let arms = [
        "semantic",
        "semantic:by=out",
        "semantic:from=mean",
        "semantic:from=shuffled",
        "semantic:from=prompt",
        "semantic:from=own",
    ];
    let report = semantic(&trace, &plan(Parts::Train(50.0), &arms), &[], &()).unwrap();
    let fewer = |arm| -row(&report.blocks[0].rows, arm).misses_change.estimate;
    for arm in ["semantic", "semantic:by=out"] {
        assert!((0.05..0.08).contains(&fewer(arm)), "{arm} {}", fewer(arm));
    }
    assert!(fewer("semantic:from=mean") > 0.5 * fewer("semantic"));
    assert!(fewer("semantic:from=shuffled") < fewer("semantic:from=mean"));
    assert!(fewer("semantic:from=own") > fewer("semantic:from=prompt"));
    // Which of the two is better depends on the fold; over both, the prompt's own routes are.
    let report = semantic(&trace, &plan(Parts::Folds(2), &arms), &[0.0, 0.75], &()).unwrap();
    let points = |block: usize, arm| row(&report.blocks[block].rows, arm).hit_points.estimate;
    assert!(points(0, "semantic:from=prompt") > points(0, "semantic"));
    // And where most of the workload repeats, the store knows what the prompt does not.
    assert!(points(1, "semantic") > points(1, "semantic:from=prompt"));
}

/// Each arm is held against the break-even of its own width.
#[test]
fn a_verdict_names_the_break_even_of_its_width() {
    let trace = hotset_traces::bundled().unwrap();
    let arms = ["lru/ahead:width=3", "lru/ahead"];
    let report = prefetch(&trace, &plan(Parts::Folds(2), &arms), &[1], &()).unwrap();
    assert_eq!(report.break_even.len(), 4, "two widths over two links");
    let mut needed = Vec::new();
    for (arm, width) in [(arms[0], 3), (arms[1], 8)] {
        let of_width = report.break_even.iter().find(|found| found.width == width).unwrap();
        let share = of_width.replayed.unwrap();
        let question = format!("does {arm} pay over {}?", of_width.link);
        let verdict = report.verdicts.iter().find(|v| v.question == question).unwrap();
        let named = format!("{:.0}% break even", share * 100.0);
        assert!(verdict.because.ends_with(&named), "{}: not {named}", verdict.because);
        needed.push(named);
    }
    assert_ne!(needed[0], needed[1], "the widths must differ for this test to tell");
}

/// The same report with one thread and with two.
#[test]
fn reports_do_not_depend_on_threads() {
    let trace = hotset_traces::bundled().unwrap().select_sequences(&[0, 1, 2, 3, 4, 5]).unwrap();
    let plan = plan(Parts::Folds(3), &[]);
    let workload = Workload { users: 2, drift: 0.5, ..Workload::default() };
    let plan = Protocol { workload: Some(workload), ..plan };
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| semantic(&trace, &plan, &[0.0, 1.0], &()).unwrap())
    };
    assert_eq!(run(1), run(2));
}

fn short() -> Trace {
    let sequences: Vec<usize> = (0..16).collect();
    hotset_traces::bundled().unwrap().select_sequences(&sequences).unwrap()
}

/// The order in which documents come again is drawn from the experiment's seed, whoever gives the
/// workload.
#[test]
fn repeats_are_drawn_from_the_experiment_s_seed() {
    let trace = short();
    let hits = |seed, workload| {
        let plan = Protocol { seed, workload, ..plan(Parts::Folds(2), &["fifo"]) };
        let report = semantic(&trace, &plan, &[0.5], &()).unwrap();
        report.blocks[0].rows[0].hit_rate
    };
    assert_ne!(hits(1, None), hits(2, None), "the seed was ignored");
    let drawn = Workload { seed: 2, ..Workload::default() };
    assert_eq!(hits(2, None), hits(2, Some(drawn)));
}

/// The same seeds, documents and counts as the orders themselves tell.
#[test]
fn verbatim_repeats_are_told_from_new_windows() {
    let trace = short();
    let arms = ["semantic", "semantic:from=mean"];
    let plan = Protocol { seed: 3, ..plan(Parts::Folds(2), &arms) };
    let report = semantic(&trace, &plan, &[0.0, 0.75], &()).unwrap();
    let workload = Workload { repetition: 0.75, seed: 3, ..Workload::default() };
    let folds = Folds::of(&trace, plan.parts, Some(&workload)).unwrap();
    let repeats = report.blocks[1].repeats;
    let counted = [Repeat::New, Repeat::SameDocument, Repeat::SameSequence].map(|kind| {
        let orders = folds.folds.iter().filter_map(|fold| fold.order.as_ref());
        orders.map(|order| order.count(kind)).sum::<usize>()
    });
    assert_eq!([repeats.new, repeats.same_document, repeats.same_sequence], counted);
    assert!(repeats.same_sequence > 0);
    let none = report.blocks[0].repeats;
    assert_eq!((none.same_document, none.same_sequence), (0, 0));
    let asked = |question: &str| report.verdicts.iter().any(|v| v.question == question);
    assert!(asked("does semantic gain more on lru in verbatim repeats?"));
    let windows = asked("does semantic gain more on lru in new windows of documents seen before?");
    assert_eq!(windows, repeats.same_document > 0);
    assert!(asked("does semantic gain more on semantic:from=mean as the workload repeats?"));
    let shown = |question: &str| {
        report.verdicts.iter().filter(|v| v.question.contains(question)).all(|verdict| {
            verdict.because.contains("[no interval]") && verdict.answer == "undecided"
        })
    };
    // Fewer than five sequences say nothing of how far they differ.
    assert!(repeats.same_document >= 5 || shown("in new windows of documents seen before?"));
    let grown = "does semantic gain more on lru as the workload repeats?";
    let grown = report.verdicts.iter().find(|v| v.question == grown).unwrap();
    let told = format!("{} verbatim)", repeats.same_sequence);
    assert!(grown.because.ends_with(&told), "{}", grown.because);
}

/// A comparison and an experiment over the same tokens say the same of what prefetch wasted.
#[test]
fn wasted_means_one_thing() {
    let trace = short();
    let plan = plan(Parts::Train(50.0), &["lru/ahead"]);
    let found = prefetch(&trace, &plan, &[1], &()).unwrap();
    let found = row(&found.block.rows, "lru/ahead");
    let request = Compare {
        policies: vec![Named::new("lru", "lru".parse().unwrap())],
        scopes: vec![plan.scope],
        capacities: vec![plan.capacity.clone()],
        links: plan.links.clone(),
        machine: None,
        phase: PhaseFilter::Decode,
        semantics: Semantics::Event,
        warmup: None,
        chunk: PREFILL_CHUNK,
        expert_bytes: plan.expert_bytes,
        serving: Serving {
            prefetch: "ahead".parse().unwrap(),
            composition: Some(Composition::default()),
            ..Serving::default()
        },
        time: plan.time.clone(),
        timelines: false,
        training: Training { share: Some(50.0), ..Training::default() },
        sample: None,
        policy_memory: POLICY_MEMORY,
        seed: 1,
    };
    let report = compare(&trace, &request, &()).unwrap();
    let compared = report.rows.iter().find(|row| row.window == Window::All).unwrap();
    assert_eq!(compared.prefetches, found.prefetches);
    assert_eq!(compared.prefetches_used, found.prefetches_used);
    assert_eq!(compared.prefetches_wasted, found.prefetches_wasted);
    // What nobody asked for was evicted, or is still held.
    assert_eq!(found.prefetches_unused, found.prefetches - found.prefetches_used);
    let held = found.prefetches_unused - found.prefetches_wasted;
    assert!(found.prefetches_wasted > 0 && held <= 256, "{held}");
}

/// Any arm against any other: the difference of the two against LRU, the other way round with the other
/// sign, and corrected for all arms.
#[test]
fn any_two_arms_are_compared() {
    let trace = short();
    let arms = ["semantic", "lru/cross-layer", "fifo"];
    let against = ["lru/cross-layer", "semantic"].map(|arm| arm.parse().unwrap()).to_vec();
    let plan = Protocol { against, ..plan(Parts::Folds(2), &arms) };
    let report = semantic(&trace, &plan, &[], &()).unwrap();
    let block = &report.blocks[0];
    let of = |arm: &str, against: &str| {
        block.against(against).find(|compared| compared.arm == arm).unwrap().hit_points
    };
    let points = |arm| row(&block.rows, arm).hit_points.estimate;
    let registered = of("semantic", "lru/cross-layer");
    let turned = of("lru/cross-layer", "semantic");
    let apart = points("semantic") - points("lru/cross-layer");
    assert!((registered.interval.estimate - apart).abs() < 1e-9);
    assert!((registered.interval.low + turned.interval.high).abs() < 0.1, "{registered:?}");
    assert_eq!(registered.interval.estimate, -turned.interval.estimate);
    for reference in ["lru", "lru/cross-layer", "semantic"] {
        assert_eq!(block.against(reference).count(), 3, "against {reference}");
        for compared in block.against(reference) {
            let tested = compared.hit_points;
            assert!(tested.p_holm.unwrap() >= tested.p.unwrap(), "{compared:?}");
            assert_eq!(compared.links.len(), 2);
        }
    }
    let asked = "does semantic hit more often than lru/cross-layer?";
    let verdict = report.verdicts.iter().find(|verdict| verdict.question == asked).unwrap();
    assert_eq!(verdict.answer == "no", registered.p_holm.unwrap() <= 0.05 && apart < 0.0);
}
