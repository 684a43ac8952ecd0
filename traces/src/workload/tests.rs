//! Cases worked by hand, the share reached, and what every order must be.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::testing::{full_builder, full_trace};
use crate::{Ids, Sequence, Shape, TraceBuilder};

/// One token for each sequence: its label and its document.
fn trace(sequences: &[(&str, Option<u32>)]) -> Trace {
    let shape = Shape::uniform(1, 2, 1).unwrap();
    let sequences: Vec<Sequence> = (0..)
        .zip(sequences)
        .map(|(at, &(label, document))| Sequence {
            id: at as u32,
            label: label.to_owned(),
            document,
            prompt_tokens: 0,
            has_repetition: None,
            rows: at..at + 1,
        })
        .collect();
    TraceBuilder::new("t", shape, Ids::U8(vec![0; sequences.len()]))
        .sequences(sequences)
        .build()
        .unwrap()
}

fn kinds(order: &WorkloadOrder) -> [usize; 3] {
    [Repeat::New, Repeat::SameDocument, Repeat::SameSequence].map(|kind| order.count(kind))
}

/// Two sequences of document 7 and one of 8, all repeats: whichever comes first, its document is
/// all there is to come back to.
#[test]
fn all_repeats_stay_with_the_first_document() {
    let trace = trace(&[("a", Some(7)), ("a", Some(8)), ("a", Some(7))]);
    let (mut firsts, workload) =
        (BTreeSet::new(), Workload { repetition: 1.0, ..Default::default() });
    for seed in 0..40 {
        let order = Workload { sequences: Some(4), seed, ..workload }.order(&trace).unwrap();
        let again = Repeat::SameSequence;
        if order.indices[0] == 1 {
            assert_eq!(order.indices, [1, 1, 1, 1]);
            assert_eq!(order.repeats, [Repeat::New, again, again, again]);
        } else {
            // The other sequence of document 7 comes before any comes twice.
            assert_eq!(order.indices[0] + order.indices[1], 2);
            assert_eq!(order.repeats, [Repeat::New, Repeat::SameDocument, again, again]);
            assert!(!order.indices[2..].contains(&1));
        }
        assert_eq!((order.nothing_to_repeat, order.nothing_new), (1, 0));
        assert_eq!(order.repetition(), 0.75);
        firsts.insert(order.indices[0]);
    }
    assert_eq!(firsts.len(), 3, "any sequence may be the first");
}

/// No repeats: as many sequences as documents, each document once; more must repeat.
#[test]
fn no_repeats_until_the_documents_run_out() {
    let trace = trace(&[("a", Some(1)), ("b", None), ("a", Some(1)), ("b", None)]);
    let order = Workload::default().order(&trace).unwrap();
    assert_eq!((order.indices.len(), kinds(&order)), (3, [3, 0, 0]));
    assert_eq!((order.documents, order.nothing_new, order.repetition()), (3, 0, 0.0));
    let order = Workload { sequences: Some(5), ..Default::default() }.order(&trace).unwrap();
    assert_eq!(order.repeats[..3], [Repeat::New; 3]);
    assert_eq!((order.count(Repeat::New), order.nothing_new), (3, 2));
    assert_eq!(
        order.to_string().split("; ").skip(1).collect::<Vec<_>>(),
        ["repetition 40.0% (asked 0.0%)", "2 repeated for want of more than 3 documents"]
    );
}

#[test]
fn one_sequence_runs_as_often_as_asked() {
    let trace = trace(&[("", None)]);
    for repetition in [0.0, 0.5, 1.0] {
        let workload = Workload { repetition, sequences: Some(3), ..Default::default() };
        let order = workload.order(&trace).unwrap();
        assert_eq!((order.indices.clone(), kinds(&order)), (vec![0; 3], [1, 0, 2]));
        assert!(
            order.to_string().ends_with("names no documents, so only the same sequence can repeat")
        );
    }
    assert_eq!(Workload::default().order(&trace).unwrap().indices, [0]);
}

/// 1,000 places over 2,000 documents of two sequences: the share is within four standard errors.
#[test]
fn the_share_is_reached() {
    let sequences: Vec<(&str, Option<u32>)> = (0..4000).map(|n| ("", Some(n / 2))).collect();
    let trace = trace(&sequences);
    for repetition in [0.0, 0.1, 0.5, 0.9, 1.0] {
        for users in [1, 7] {
            let workload =
                Workload { repetition, users, sequences: Some(1000), ..Default::default() };
            let order = workload.order(&trace).unwrap();
            let error = (repetition * (1.0 - repetition) / 1000.0f64).sqrt();
            // Each user's first place is new.
            let off = (order.repetition() - repetition).abs();
            assert!(off <= 4.0 * error + f64::from(users) / 1000.0 + 1e-9, "{repetition}: {order}");
            assert!(repetition > 0.0 || kinds(&order) == [1000, 0, 0]);
            assert!(repetition < 1.0 || order.count(Repeat::New) == users as usize);
            assert!(order.nothing_to_repeat <= users as usize && order.nothing_new == 0);
        }
    }
}

/// Labels of 3, 2 and 1 documents. With full drift they come one after another, whatever the
/// seed; without any, they are mixed for most seeds.
#[test]
fn topics_drift() {
    let trace =
        trace(&[("a", None), ("b", None), ("a", None), ("c", None), ("b", None), ("a", None)]);
    let runs = |drift, seed| {
        let order = Workload { drift, seed, ..Default::default() }.order(&trace).unwrap();
        let labels: Vec<&str> =
            order.indices.iter().map(|&at| trace.sequences()[at].label.as_str()).collect();
        labels.chunk_by(|a, b| a == b).map(|run| run[0].to_owned()).collect::<Vec<_>>()
    };
    let all: BTreeSet<Vec<String>> = (0..60).map(|seed| runs(1.0, seed)).collect();
    assert!(all.iter().all(|runs| runs.len() == 3), "{all:?}");
    assert_eq!(all.len(), 6, "the labels come in any order");
    assert!((0..60).filter(|&seed| runs(0.0, seed).len() > 3).count() > 40);
}

/// Two labels of one document each, two places on each: with full drift, repeats keep to the label
/// of the moment, and what cannot be new there is new elsewhere.
#[test]
fn drift_holds_for_repeats_and_yields_where_it_cannot() {
    let trace = trace(&[("a", Some(1)), ("b", Some(2))]);
    for seed in 0..30 {
        let base = Workload { drift: 1.0, sequences: Some(4), seed, ..Default::default() };
        let order = base.order(&trace).unwrap();
        let first = order.indices[0];
        // The second place has nothing new of the first label; then only repeats are left, and
        // the label of the moment is the second.
        assert_eq!(order.indices, [first, 1 - first, 1 - first, 1 - first]);
        // All repeats: the second label never had a document, so the first goes on.
        let order = Workload { repetition: 1.0, ..base }.order(&trace).unwrap();
        assert_eq!(order.indices, [order.indices[0]; 4]);
    }
}

/// Three labels of two documents for three users: each has a label to themselves, and they take
/// turns.
#[test]
fn users_keep_to_their_documents_and_take_turns() {
    let labels = ["a", "b", "c", "a", "b", "c"];
    let trace = trace(&labels.map(|label| (label, None)));
    for seed in 0..20 {
        let workload =
            Workload { repetition: 0.5, users: 3, sequences: Some(31), seed, drift: 0.0 };
        let order = workload.order(&trace).unwrap();
        let mut of_users: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for (place, &index) in order.indices.iter().enumerate() {
            of_users.entry(order.user(place)).or_default().insert(labels[index]);
        }
        assert_eq!(of_users.len(), 3);
        assert!(of_users.values().all(|labels| labels.len() == 1));
        assert_eq!(of_users.values().flatten().collect::<BTreeSet<_>>().len(), 3);
    }
}

#[test]
fn a_seed_gives_one_order() {
    let trace = crate::bundled().unwrap();
    let order = |seed| {
        let all = Workload { repetition: 0.4, drift: 0.5, users: 4, sequences: Some(200), seed };
        all.order(&trace).unwrap()
    };
    assert_eq!(order(3), order(3));
    assert_ne!(order(3).indices, order(4).indices);
    // Recorded once: a change of it changes every result on a workload, and must be deliberate.
    let first = Workload { repetition: 0.4, sequences: Some(12), ..Default::default() };
    assert_eq!(first.order(&trace).unwrap().indices, [41, 6, 6, 6, 47, 4, 47, 32, 18, 18, 6, 24]);
}

#[test]
fn what_cannot_be_is_refused() {
    let told = |workload: Workload, trace: &Trace| workload.order(trace).unwrap_err().to_string();
    let (three, workload) = (full_trace(), Workload::default());
    let share = "workload: repetition is NaN; a share from 0 to 1 is possible";
    assert_eq!(told(Workload { repetition: f64::NAN, ..workload }, &three), share);
    assert!(told(Workload { repetition: 1.1, ..workload }, &three).contains("repetition is 1.1"));
    assert!(told(Workload { drift: -0.1, ..workload }, &three).contains("drift is -0.1"));
    let none = "workload: 0 sequences; 1 to 16777216 are possible";
    assert_eq!(told(Workload { sequences: Some(0), ..workload }, &three), none);
    assert!(told(Workload { sequences: Some(usize::MAX), ..workload }, &three).contains("1 to 16"));
    assert!(
        told(Workload { users: 0, ..workload }, &three).starts_with("workload: 0 users; 1 to 3")
    );
    assert!(told(Workload { users: 4, ..workload }, &three).contains("3 documents in the trace"));
    let short = Workload { users: 3, sequences: Some(2), ..workload };
    assert!(told(short, &three).starts_with("workload: 3 users; 1 to 2 are possible with 2"));
    let alike = trace(&[("a", None), ("a", None)]);
    assert!(told(Workload { drift: 0.1, ..workload }, &alike).contains("drift needs labels"));
    assert!(workload.order(&alike).is_ok());
}

#[test]
fn an_order_becomes_a_trace() {
    let trace = full_trace();
    let workload = Workload { repetition: 0.5, sequences: Some(6), ..Default::default() };
    let order = workload.order(&trace).unwrap();
    assert!(order.count(Repeat::SameSequence) > 0);
    let arranged = order.arrange(&trace).unwrap();
    arranged.validate().unwrap();
    let ids: Vec<u32> = arranged.sequences().iter().map(|sequence| sequence.id).collect();
    let expected: Vec<u32> = order.indices.iter().map(|&at| 10 + at as u32).collect();
    assert_eq!(ids, expected);
    assert!(trace.steps().is_some() && arranged.steps().is_none());
    let provenance = arranged.provenance();
    assert!(provenance.contains(r#""repetition":0.5"#) && provenance.contains("another order"));
    assert!(provenance.contains(trace.digest()));
    // An order of each sequence once has no steps either: the engine ran another.
    let once = Workload::default().order(&trace).unwrap().arrange(&trace).unwrap();
    assert!(once.steps().is_none() && once.tokens() == trace.tokens());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("arranged.hst");
    crate::write_hst(&arranged, &path, crate::Codec::Zstd(3)).unwrap();
    let opened = Trace::open(&path).unwrap();
    opened.validate().unwrap();
    assert!(opened == arranged);
    // The order of another trace.
    let one = full_builder().build().unwrap().select_sequences(&[0]).unwrap();
    assert!(order.arrange(&one).unwrap_err().to_string().contains("there are 1"));
}

proptest! {
    /// The kinds say what they mean, whatever was asked, worked out afresh from the indices.
    #[test]
    fn kinds_are_what_they_say(
        given in prop::collection::vec((0usize..4, prop::option::of(0u32..6)), 1..30),
        repetition in 0.0f64..=1.0,
        drift in 0.0f64..=1.0,
        users in 1u32..4,
        length in 1usize..80,
        seed: u64,
    ) {
        let labels = ["a", "b", "c", "d"];
        let given: Vec<(&str, Option<u32>)> =
            given.into_iter().map(|(label, document)| (labels[label], document)).collect();
        let trace = trace(&given);
        let workload = Workload { repetition, drift, users, sequences: Some(length), seed };
        let Ok(order) = workload.order(&trace) else { return Ok(()) };
        prop_assert_eq!((order.indices.len(), order.repeats.len()), (length, length));
        let of = |index: usize| given[index].1.map_or((1, index), |number| (0, number as usize));
        let (mut ran, mut had) = (BTreeSet::new(), BTreeMap::new());
        for (place, (&index, &repeat)) in order.indices.iter().zip(&order.repeats).enumerate() {
            let known = had.contains_key(&of(index));
            let expected = match (known, ran.contains(&index)) {
                (false, _) => Repeat::New,
                (true, false) => Repeat::SameDocument,
                (true, true) => Repeat::SameSequence,
            };
            prop_assert_eq!(repeat, expected);
            if repeat == Repeat::SameSequence {
                let left = (0..given.len()).filter(|&other| of(other) == of(index));
                prop_assert!(left.into_iter().all(|other| ran.contains(&other)));
            }
            ran.insert(index);
            let user = had.entry(of(index)).or_insert(order.user(place));
            prop_assert_eq!(*user, order.user(place), "a document has one user");
        }
    }
}
