//! Comparisons and replays in full: what is printed adds up and can be read back.

use hotset_cost_models::find_machine;
use hotset_policies::PolicySpec;
use hotset_sim::{
    Capacity, Compare, Compute, POLICY_MEMORY, PhaseFilter, Prefetch, Recording, Scope, Semantics,
    Serving, SimError, TimeModel, Training, Window, compare, replay_in_full,
};
use hotset_traces::{Phase, Trace};

fn request(prefetch: Prefetch) -> Compare {
    let machine = find_machine("h200").unwrap();
    Compare {
        policies: vec![("lru".into(), PolicySpec::Lru(Default::default()))],
        scopes: vec![Scope::Global],
        capacities: vec![("25%".into(), Capacity::Percent(25.0))],
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
    several.capacities.push(("1".into(), Capacity::Slots(1)));
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
