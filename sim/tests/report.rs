//! Comparisons and replays in full: what is printed adds up and can be read back.

use hotset_cost_models::find_machine;
use hotset_policies::PolicySpec;
use hotset_sim::{
    Capacity, Compare, Compute, Named, POLICY_MEMORY, PhaseFilter, Prefetch, Recording, Scope,
    Semantics, Serving, SimError, TimeModel, Training, Window, compare, replay_in_full,
};
use hotset_traces::{Phase, Trace};

use crate::common::decode_trace;

fn request(prefetch: Prefetch) -> Compare {
    let machine = find_machine("h200").unwrap();
    Compare {
        policies: vec![Named::new("lru", PolicySpec::Lru(Default::default()))],
        scopes: vec![Scope::Global],
        capacities: vec![Named::new("25%", Capacity::Percent(25.0))],
        phase: PhaseFilter::Decode,
        semantics: Semantics::Event,
        warmup: None,
        chunk: 512,
        expert_bytes: None,
        serving: Serving { prefetch, ..Serving::default() },
        time: TimeModel {
            compute: Compute::of_machine(&machine, 8 << 20).unwrap(),
            ..TimeModel::default()
        },
        timelines: true,
        machine: None,
        training: Training::default(),
        sample: None,
        policy_memory: POLICY_MEMORY,
        seed: 0,
        links: machine.links,
    }
}

fn trace() -> Trace {
    hotset_traces::bundled().unwrap().select_sequences(&[0, 1, 2]).unwrap()
}

fn ahead() -> Prefetch {
    "ahead".parse().unwrap()
}

#[test]
fn four_prices_of_every_row_and_where_the_time_went() {
    let report = compare(&trace(), &request(ahead()), &()).unwrap();
    assert_eq!(report.rows.len(), 3);
    for row in &report.rows {
        assert!(row.prefetches > row.prefetches_used && row.prefetches_used > 0);
        let moved = (row.demand_fetches + row.prefetches) as f64 / row.tokens as f64;
        assert!((row.moved_per_token - moved).abs() < 1e-9);
        assert_eq!(row.links.len(), 2);
        for link in &row.links {
            let timeline = link.timeline_ms_per_token.unwrap();
            assert!(link.serial_ms_per_token >= timeline);
            assert!(timeline >= link.perfect_ms_per_token);
            assert!(link.serial_ms_per_token >= link.prefetch_hidden_ms_per_token);
            let time = link.time.unwrap();
            let parts = time.compute_ms
                + time.slowed_ms
                + time.exposed_demand_ms
                + time.exposed_prefetch_ms
                + time.exposed_host_ms
                + time.drained_ms;
            assert!((parts - timeline).abs() < 1e-9, "{time:?}");
        }
    }
}

/// The finding of the live runs, stated by a comparison: at the same cache and the same hits,
/// prefetch lowers the time over NVLink and raises it over PCIe.
#[test]
fn hit_rate_misleads_and_time_decides() {
    let of = |prefetch| {
        let report = compare(&trace(), &request(prefetch), &()).unwrap();
        let all = report.rows.into_iter().find(|row| row.window == Window::All).unwrap();
        let ms = |name: &str| {
            let link = all.links.iter().find(|link| link.link == name).unwrap();
            link.timeline_ms_per_token.unwrap()
        };
        (all.hit_rate.unwrap(), ms("h200-nvlink"), ms("h200-pcie"))
    };
    let (without, with) = (of(Prefetch::None), of(ahead()));
    assert!(with.0 > without.0 + 0.1, "the hit rate rises");
    assert!(with.1 < without.1, "NVLink: {} against {}", with.1, without.1);
    assert!(with.2 > without.2, "PCIe: {} against {}", with.2, without.2);
}

#[test]
fn a_replay_in_full_adds_up_and_its_recording_is_json() {
    let recording = Recording { skip_steps: 2, most_spans: 500 };
    let (report, recorder) =
        replay_in_full(&trace(), &request(ahead()), Some(recording), &()).unwrap();
    let all = report.rows.iter().find(|row| row.window == Window::All).unwrap();
    assert_eq!(report.layers.len(), 16);
    let sum = |of: fn(&hotset_sim::LayerRow) -> u64| report.layers.iter().map(of).sum::<u64>();
    assert_eq!(sum(|l| l.accesses), all.accesses);
    assert_eq!(sum(|l| l.hits), all.hits);
    assert_eq!(sum(|l| l.prefetches), all.prefetches);
    assert_eq!(report.layers[0].prefetches, 0, "nobody predicts the first layer");
    assert_eq!(report.layers[5].experts_per_step, 8.0);
    let layers: f64 = report.layers.iter().map(|l| l.links[1].ms_per_token).sum();
    assert!((layers - all.links[1].timeline_ms_per_token.unwrap()).abs() < 1e-9);

    assert_eq!(report.step_times.len(), 6, "three windows, two links");
    for times in &report.step_times {
        assert!(times.p50_ms <= times.p90_ms && times.p90_ms <= times.p99_ms);
        assert!(times.p99_ms <= times.max_ms && times.mean_ms <= times.max_ms);
        assert_eq!(times.phase, Phase::Decode);
    }
    let recorder = recorder.unwrap();
    assert_eq!(recorder.spans().len(), 500);
    assert!(recorder.spans().iter().all(|span| span.step >= 2 && span.begin < span.end));
    let mut json = Vec::new();
    recorder.write_chrome(&report.trace.name, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert_eq!(events.len(), 500 + 4);
    assert!(events.iter().filter(|e| e["ph"] == "X").all(|e| e["dur"].as_f64().unwrap() > 0.0));
}

#[test]
fn what_has_no_timeline_is_told() {
    let mut several = request(ahead());
    several.capacities.push(Named::new("1", Capacity::Slots(1)));
    let told = replay_in_full(&trace(), &several, None, &()).unwrap_err();
    assert_eq!(told, SimError::OneSetting);
    let unsized_ = Compare { expert_bytes: Some(0), ..request(ahead()) };
    let told = replay_in_full(&trace(), &unsized_, None, &()).unwrap_err();
    assert!(told.to_string().contains("`Compare::expert_bytes`"));
    let sequential = Compare { semantics: Semantics::Sequential, ..request(Prefetch::None) };
    let report = compare(&trace(), &sequential, &()).unwrap();
    let link = &report.rows[0].links[0];
    assert_eq!((link.timeline_ms_per_token, link.time), (None, None));
    assert!(link.perfect_ms_per_token > 0.2, "compute is priced all the same");
}

/// Hits are what was in a slot when the layer's routing was known; of the prefetched ones among them some
/// are still on their way, and the timeline waits for those.
#[test]
fn a_late_prefetch_is_a_hit_that_is_waited_for() {
    let report = compare(&trace(), &request(ahead()), &()).unwrap();
    let all = report.rows.iter().find(|row| row.window == Window::All).unwrap();
    assert_eq!(all.hits + all.demand_fetches, all.accesses);
    let late = |name: &str| {
        let link = all.links.iter().find(|link| link.link == name).unwrap();
        link.time.unwrap().late_prefetches_per_token * all.tokens as f64
    };
    let (slow, fast) = (late("h200-pcie"), late("h200-nvlink"));
    assert!(slow > fast, "a slower link's copies come later: {slow} against {fast}");
    assert!(slow <= all.prefetches_used as f64, "each of them is a hit: {slow}");
    // What was copied ahead was asked for, evicted before, or is still held: 256 slots at most.
    let held = all.prefetches - all.prefetches_used - all.prefetches_wasted;
    assert!(all.prefetches_wasted > 0 && held <= u64::from(all.capacity_slots), "{held}");
}

/// Two experts an event and one slot a layer: nothing that must admit both can hit, and MIN with bypass
/// keeps one of them, which hits twice in three tokens.
#[test]
fn a_bound_is_one_where_an_event_needs_more_than_there_is() {
    let rows: [&[&[u8]]; 3] = [&[&[0, 1]], &[&[0, 1]], &[&[0, 1]]];
    let trace = decode_trace(4, 1 << 20, &rows).build().unwrap();
    let named = |names: &[&str]| names.iter().map(|n| Named::new(*n, n.parse().unwrap())).collect();
    let tight = Compare {
        policies: named(&["lru", "belady", "belady-bypass"]),
        scopes: vec![Scope::Layer],
        capacities: vec![Named::new("1", Capacity::Slots(1))],
        ..request(Prefetch::None)
    };
    let report = compare(&trace, &tight, &()).unwrap();
    let of = |policy: &str| {
        let row = report.rows.iter().find(|r| r.policy == policy && r.window == Window::All);
        let row = row.unwrap();
        (row.misses, row.bound, row.belady_misses, row.belady_ratio)
    };
    assert_eq!(of("lru"), (6, "belady-bypass", 4, Some(1.5)));
    assert_eq!(of("belady"), (6, "belady-bypass", 4, Some(1.5)));
    assert_eq!(of("belady-bypass"), (4, "belady-bypass", 4, Some(1.0)));
    assert!(report.warnings.iter().any(|told| told.ends_with("the bound is MIN with bypass")));
    // Two slots hold both, and the bound is MIN itself.
    let wide = Compare {
        policies: named(&["lru"]),
        capacities: vec![Named::new("2", Capacity::Slots(2))],
        ..tight
    };
    let row = &compare(&trace, &wide, &()).unwrap().rows[0];
    assert_eq!((row.misses, row.bound, row.belady_misses), (2, "belady", 2));
}

/// What may leave out a miss is held against the bound that may do so too, and no row is below its own.
#[test]
fn nothing_that_refuses_is_below_its_bound() {
    let names = ["lru", "lru+tinylfu", "belady", "belady-bypass"];
    let request = Compare {
        policies: names.map(|name| Named::new(name, name.parse().unwrap())).to_vec(),
        capacities: vec![
            Named::new("3%", Capacity::Percent(3.0)),
            Named::new("25%", Capacity::Percent(25.0)),
        ],
        scopes: vec![Scope::Global, Scope::Layer],
        timelines: false,
        ..request(Prefetch::None)
    };
    let report = compare(&trace(), &request, &()).unwrap();
    for row in report.rows.iter().filter(|row| row.window == Window::All) {
        assert!(row.misses >= row.belady_misses, "{row:?}");
        let refuses = row.policy.contains("tinylfu") || row.policy == "belady-bypass";
        // 3% are 30 slots, 1 or 2 a layer; a layer needs 8.
        let overflows = row.scope == Scope::Layer && row.capacity_slots < 128;
        let bound = if refuses || overflows { "belady-bypass" } else { "belady" };
        assert_eq!(row.bound, bound, "{row:?}");
    }
}
