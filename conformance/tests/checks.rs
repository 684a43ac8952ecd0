//! What a log may say, and what it is told.

use hotset_conformance::{
    Compared, ConformError, Conformance, Decision, Divergence, Evicted, Expert, Fetched, Held,
    LayerDemand, ModelShape, assert_conforms,
};
use hotset_policies::Slots;

const MODEL: ModelShape<'_> = ModelShape { experts: &[4, 4], top_k: &[2, 2] };

fn first_divergence(
    policy: &str,
    slots: u32,
    events: &[(usize, &[u32], Decision)],
) -> Result<Compared, ConformError> {
    let spec = policy.parse().unwrap();
    let mut conformance = Conformance::new(&spec, &MODEL, &Slots::Global(slots))?;
    for (layer, experts, decision) in events {
        conformance.begin_step(1);
        conformance.event(*layer, experts, &[], decision)?;
    }
    Ok(conformance.compared())
}

fn diverged(error: ConformError) -> Divergence {
    match error {
        ConformError::Diverged(divergence) => *divergence,
        other => panic!("{other}"),
    }
}

/// LRU, three slots: 0 and 1 of layer 0, then 2 of layer 1; the victim of a fourth is 0.
fn warm() -> Vec<(usize, &'static [u32], Decision)> {
    let free = Evicted::Nobody;
    vec![
        (0, &[1, 0], Decision::of(0).fetch(0, free).fetch(1, free)),
        (1, &[2, 2], Decision::of(1).fetch(2, free)),
    ]
}

#[test]
fn the_policys_own_decisions_conform() {
    let mut events = warm();
    // The order within an event is the log's own.
    let fourth = Decision::of(0).fetch(3, Evicted::expert(0, 0)).hit(1);
    events.push((0, &[3, 1], fourth));
    let compared = first_divergence("lru", 3, &events).unwrap();
    let expected = Compared { events: 3, hits: 1, fetches: 4, unplaced: 0, victims: 4, slots: 0 };
    assert_eq!(compared, expected);
}

#[test]
fn a_wrong_victim_is_told_with_the_residents_before_it() {
    let mut events = warm();
    events.push((0, &[3], Decision::of(0).fetch(3, Evicted::expert(1, 2))));
    let divergence = diverged(first_divergence("lru", 3, &events).unwrap_err());
    assert_eq!((divergence.event, divergence.step, divergence.layer), (2, 2, 0));
    assert_eq!(
        divergence.what,
        "for expert 3 the engine evicts expert 2 of layer 1, the policy expert 0 of layer 0"
    );
    assert_eq!(divergence.resident_before, [vec![0, 1], vec![2]]);
    let text = divergence.to_string();
    assert!(text.contains("  layer 0: 0 1\n  layer 1: 2\n"), "{text}");
    assert!(text.contains("the victim is the least recent"), "{text}");
}

#[test]
fn the_rule_names_the_mistake() {
    let told = |experts: &'static [u32], decision: Decision| {
        let mut events = warm();
        events.push((0, experts, decision));
        let divergence = diverged(first_divergence("lru", 3, &events).unwrap_err());
        (divergence.what, divergence.rule)
    };
    let fetch = |expert, evicted| Decision::of(0).fetch(expert, evicted);
    let victim = Evicted::expert(0, 1);

    // vLLM #37190: 1 is needed by the same event.
    let (what, rule) = told(&[1, 3], fetch(3, victim).hit(1));
    assert!(what.contains("evicts expert 1 of layer 0, the policy expert 0"), "{what}");
    assert!(rule.starts_with("No expert that the event needs may leave"), "{rule}");

    let (what, rule) = told(&[1, 1], Decision::of(0).hit(1).hit(1));
    assert_eq!(what, "the engine counts expert 1 twice");
    assert!(rule.contains("duplicates are one demand"), "{rule}");

    let (what, rule) = told(&[3], Decision::of(0).hit(3));
    assert_eq!(what, "expert 3: a hit for the engine, a fetch for the policy");
    assert!(rule.contains("its copy complete, before the event"), "{rule}");

    let (what, _) = told(&[1], fetch(1, Evicted::expert(0, 0)));
    assert_eq!(what, "expert 1: a fetch for the engine, a hit for the policy");
    let (what, _) = told(&[1, 3], Decision::of(0).hit(1));
    assert_eq!(what, "the engine says nothing of experts 3");
    let (what, _) = told(&[1], Decision::of(0).hit(1).hit(0));
    assert_eq!(what, "expert 0: a hit for the engine, but nobody asked for it");
    let (what, _) = told(&[3], fetch(3, Evicted::Nobody));
    assert!(what.contains("evicts nobody, but no slot is free"), "{what}");
    let (what, rule) =
        told(&[2, 3], fetch(3, Evicted::expert(0, 0)).fetch(2, Evicted::expert(0, 1)));
    assert!(what.starts_with("for expert 3 the engine evicts expert 0"), "{what}");
    assert!(rule.starts_with("It leaves in this event, but for another"), "{rule}");
    let (what, _) = told(&[3], Decision::of(0).bypass(3));
    assert_eq!(what, "expert 3: served without a slot for the engine, a fetch for the policy");
}

#[test]
fn who_was_dropped_is_compared_where_it_is_logged() {
    let mut events = warm();
    let mut decision = Decision::of(0).hit(0);
    decision.dropped = Some(vec![Expert { layer: 1, expert: 2 }]);
    events.push((0, &[0], decision));
    let divergence = diverged(first_divergence("lru", 3, &events).unwrap_err());
    assert_eq!(divergence.what, "the engine lets expert 2 of layer 1 go, the policy nobody");
}

#[test]
fn overflow_and_admission_are_rules_of_their_own() {
    let events = [(0, &[0, 1][..], Decision::of(0).fetch(0, Evicted::Nobody).bypass(1))];
    let divergence = diverged(first_divergence("lru", 1, &events).unwrap_err());
    assert!(divergence.rule.starts_with("An event that needs more experts"));
    let free = Evicted::Nobody;
    let events = [(0, &[0, 1][..], Decision::of(0).fetch(0, free).fetch(1, free))];
    let divergence = diverged(first_divergence("lru+upload-cap:n=1", 3, &events).unwrap_err());
    assert!(divergence.rule.contains("the first n in the order of admission"));
    assert!(divergence.definition.contains("Admission upload-cap:n=1: "));
}

#[test]
fn slots_are_the_engines_to_number_but_must_be_consistent() {
    let numbered = |expert, slot, evicted| {
        let fetches = vec![Fetched { expert, slot: Some(slot), evicted }];
        Decision { fetches, ..Decision::of(0) }
    };
    let free = Evicted::Nobody;
    let with = |last: Decision, asked: &'static [u32]| {
        let events = [
            (0, &[0][..], numbered(0, 70, free)),
            (0, &[1], numbered(1, 3, free)),
            (0, asked, last),
        ];
        first_divergence("lru", 2, &events)
    };
    let victim = Evicted::expert(0, 0);
    assert_eq!(with(numbered(2, 70, victim), &[2]).unwrap().slots, 3);
    let what = |last, asked| diverged(with(last, asked).unwrap_err()).what;
    assert!(what(numbered(2, 71, victim), &[2]).contains("was in slot 70"));
    let hit =
        |slot| Decision { hits: vec![Held { expert: 1, slot: Some(slot) }], ..Decision::of(0) };
    assert!(what(hit(4), &[1]).ends_with("in slot 4, before in slot 3"));
    let taken = [(0, &[0][..], numbered(0, 7, free)), (0, &[1], numbered(1, 7, free))];
    let divergence = diverged(first_divergence("lru", 2, &taken).unwrap_err());
    assert!(divergence.what.ends_with("in slot 7, which holds expert 0 of layer 0"));
}

#[test]
fn what_is_not_of_this_model_is_no_divergence() {
    let told = |layer: usize, decision: Decision| {
        first_divergence("lru", 3, &[(layer, &[0], decision)]).unwrap_err().to_string()
    };
    assert_eq!(told(0, Decision::of(7)), "layer 7 does not exist: MoE layers are numbered 0 to 1");
    assert_eq!(
        told(0, Decision::of(0).hit(4)),
        "expert 4 does not exist: layer 0 has experts 0 to 3"
    );
    assert!(told(0, Decision::of(0).fetch(0, Evicted::expert(2, 0))).starts_with("layer 2"));
    assert!(told(0, Decision::of(1).hit(0)).contains("event 0 of the trace is layer 0"));
    assert!(told(5, Decision::of(0)).starts_with("layer 5 does not exist"));
    let spec = "belady".parse().unwrap();
    let error = Conformance::new(&spec, &MODEL, &Slots::Global(2)).err().unwrap();
    assert!(error.to_string().starts_with("policy 'belady' needs the future"));
}

#[test]
fn steps_are_numbered_upwards() {
    let spec = "lru".parse().unwrap();
    let mut conformance = Conformance::new(&spec, &MODEL, &Slots::Global(3)).unwrap();
    let mut event = |layer: u32, step: Option<u64>, begins: bool| {
        if begins {
            conformance.begin_step(1);
        }
        let decision = Decision { step, ..Decision::of(layer) };
        conformance.event::<u32>(layer as usize, &[], &[], &decision)
    };
    assert_eq!(event(0, Some(40), true), Ok(()));
    assert_eq!(event(1, None, false), Ok(()));
    assert_eq!(event(1, Some(41), false), Err(ConformError::Step { given: 41, before: 40 }));
    assert_eq!(event(0, Some(40), true), Err(ConformError::Step { given: 40, before: 40 }));
    assert_eq!(event(0, Some(42), false), Ok(()));
}

#[test]
#[should_panic(expected = "event 1 (step 1, layer 0): expert 1: a hit for the engine, a fetch")]
fn assert_conforms_panics_with_the_divergence() {
    let demands = [LayerDemand::new(0, 0, &[0]), LayerDemand::new(1, 0, &[1])];
    let decisions = [Decision::of(0).fetch(0, Evicted::Nobody), Decision::of(0).hit(1)];
    assert_conforms("fifo", &MODEL, &Slots::Layer(vec![2, 1]), &demands, &decisions);
}

#[test]
#[should_panic(expected = "1 decisions for 2 events")]
fn assert_conforms_wants_a_decision_for_each_event() {
    let demands = [LayerDemand::new(0, 0, &[0]), LayerDemand::new(1, 0, &[1])];
    let decisions = [Decision::of(0).fetch(0, Evicted::Nobody)];
    assert_conforms("fifo", &MODEL, &Slots::Global(2), &demands, &decisions);
}
