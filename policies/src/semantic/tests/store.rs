//! The store: every answer is that of scoring everything, and the most redundant leaves.

use proptest::prelude::*;

use super::super::vectors::{dot, unit_into};
use super::super::*;

/// What [`ConversationStore`] must be: everything scored, everything sorted.
struct Naive {
    config: StoreConfig,
    /// Unit vector, profile codes, id, age.
    kept: Vec<(Vec<f32>, Vec<u16>, u64, u64)>,
    inserted: u64,
}

impl Naive {
    fn unit(embedding: &[f32]) -> Vec<f32> {
        let mut unit = vec![0.0; embedding.len()];
        unit_into(embedding, &mut unit).unwrap();
        unit
    }

    fn insert(&mut self, embedding: &[f32], profile: &[f32], id: u64) -> Inserted {
        let unit = Self::unit(embedding);
        let codes: Vec<u16> =
            profile.iter().map(|&uses| (f64::from(uses) * 65_535.0).round() as u16).collect();
        let product = |a: &[u16], b: &[u16]| -> u64 {
            a.iter().zip(b).map(|(&a, &b)| u64::from(a) * u64::from(b)).sum()
        };
        let cosine = |a: &[u16], b: &[u16]| {
            let norms = (product(a, a) as f64).sqrt() * (product(b, b) as f64).sqrt();
            if norms > 0.0 { product(a, b) as f64 / norms } else { 0.0 }
        };
        let new = (unit, codes, id, self.inserted);
        self.inserted += 1;
        if self.kept.len() < self.config.capacity {
            self.kept.push(new);
            return Inserted { index: self.kept.len() as u32 - 1, overwrote: None };
        }
        let weight = self.config.embedding_weight;
        let score = |one: &(Vec<f32>, Vec<u16>, u64, u64)| {
            weight * f64::from(dot(&new.0, &one.0)) + (1.0 - weight) * cosine(&one.1, &new.1)
        };
        let most = (0..self.kept.len()).max_by(|&a, &b| {
            let (a, b) = (&self.kept[a], &self.kept[b]);
            score(a).total_cmp(&score(b)).then(b.3.cmp(&a.3))
        });
        let index = most.unwrap();
        let old = std::mem::replace(&mut self.kept[index], new);
        Inserted { index: index as u32, overwrote: Some(old.2) }
    }

    fn nearest(&self, query: &[f32], k: usize) -> Vec<Neighbour> {
        let unit = Self::unit(query);
        let mut all: Vec<(f32, u64, u32)> =
            (0..).zip(&self.kept).map(|(index, one)| (dot(&unit, &one.0), one.3, index)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let neighbour = |(cosine, _, index)| Neighbour { index, cosine };
        all.into_iter().take(k).map(neighbour).collect()
    }

    fn mean(&self, key: usize) -> f32 {
        let sum: u64 = self.kept.iter().map(|one| u64::from(one.1[key])).sum();
        (sum as f64 / (self.kept.len() as f64 * 65_535.0)) as f32
    }
}

/// Numbers that coincide, nearly coincide, vanish or dwarf the others.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => (-2i8..=2).prop_map(f32::from),
        4 => -1.0f32..1.0,
        2 => (-3i8..=3).prop_map(|n| 1.0 + f32::from(n) * f32::EPSILON),
        1 => Just(1e-45f32),
        1 => Just(-3e37f32),
    ]
}

/// Embeddings of one dimension, some of them all zeros.
fn embedding(dimension: usize) -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![
        9 => prop::collection::vec(number(), dimension),
        1 => Just(vec![0.0; dimension]),
    ]
}

type Conversation = (Vec<f32>, Vec<f32>);

/// Conversations, of which many are the same as others or differ in the last bit.
fn conversations(dimension: usize) -> impl Strategy<Value = Vec<Conversation>> {
    let profile = prop::collection::vec(prop_oneof![Just(0.0f32), 0.0f32..1.5], 3);
    let kinds = prop::collection::vec((embedding(dimension), profile), 1..12);
    let picks = prop::collection::vec((any::<prop::sample::Index>(), 0u32..3), 1..60);
    (kinds, picks).prop_map(|(kinds, picks)| {
        let pick = |(index, bits): (prop::sample::Index, u32)| {
            let (mut embedding, profile) = index.get(&kinds).clone();
            if embedding[0].abs() > 1e-30 {
                embedding[0] = f32::from_bits(embedding[0].to_bits() + bits);
            }
            (embedding, profile)
        };
        picks.into_iter().map(pick).collect()
    })
}

proptest! {
    #[test]
    fn answers_are_those_of_scoring_everything(
        (all, queries) in prop_oneof![Just(1usize), Just(2), Just(17), Just(40)].prop_flat_map(
            |dimension| (conversations(dimension), prop::collection::vec(embedding(dimension), 4))
        ),
        capacity in 1usize..40,
        k in 0usize..12,
        embedding_weight in prop_oneof![Just(0.0), Just(0.5), Just(1.0), 0.0..1.0f64],
    ) {
        let dimension = queries[0].len();
        let config = StoreConfig { capacity, dimension, keys: 3, embedding_weight };
        let mut store = ConversationStore::new(&config).unwrap();
        let mut naive = Naive { config, kept: Vec::new(), inserted: 0 };
        let mut search = store.search().unwrap();
        for (id, (embedding, profile)) in (100..).zip(&all) {
            let inserted = store.insert(embedding, profile, id).unwrap();
            prop_assert_eq!(inserted, naive.insert(embedding, profile, id));
            prop_assert_eq!(store.id(inserted.index), id);
        }
        prop_assert_eq!(store.len(), naive.kept.len());
        let stored = all.iter().take(3).map(|(embedding, _)| embedding);
        for query in queries.iter().chain(stored) {
            let nearest = store.nearest(query, k, &mut search).unwrap();
            prop_assert_eq!(nearest, &naive.nearest(query, k)[..]);
        }
        let mut mean = [0.0; 3];
        store.mean_of_all(&mut mean).unwrap();
        prop_assert_eq!(mean, [naive.mean(0), naive.mean(1), naive.mean(2)]);
    }
}

/// Hundreds of embeddings around one direction, some apart by less than the codes can tell.
#[test]
fn near_ties_are_told_apart() {
    let dimension = 512;
    let config = StoreConfig::new(600, dimension, 1);
    let mut store = ConversationStore::new(&config).unwrap();
    let mut naive = Naive { config, kept: Vec::new(), inserted: 0 };
    let embedding = |n: usize| -> Vec<f32> {
        let wave = |at: usize| ((n % 200 * 31 + at * 17) % 101) as f32 - 50.0;
        (0..dimension).map(|at| 1.0 + 1e-4 * wave(at)).collect()
    };
    for n in 0..600 {
        store.insert(&embedding(n), &[0.5], n as u64).unwrap();
        naive.insert(&embedding(n), &[0.5], n as u64);
    }
    let mut search = store.search().unwrap();
    for n in (0..600).step_by(37) {
        let found = store.nearest(&embedding(n), 10, &mut search).unwrap();
        assert_eq!(found, naive.nearest(&embedding(n), 10));
        // Three conversations are the same; the oldest comes first, though rounding may let one
        // that is not the same come before it.
        let ids: Vec<u64> = found.iter().map(|one| store.id(one.index)).collect();
        let same: Vec<u64> = ids.into_iter().filter(|id| *id as usize % 200 == n % 200).collect();
        assert!(same.is_sorted() && same.len() == 3, "{n}: {same:?}");
    }
}

#[test]
fn the_most_redundant_is_overwritten() {
    let redundant = |embedding_weight| {
        let config = StoreConfig { capacity: 2, dimension: 2, keys: 2, embedding_weight };
        let mut store = ConversationStore::new(&config).unwrap();
        store.insert(&[1.0, 0.0], &[0.0, 1.0], 1).unwrap();
        store.insert(&[0.0, 1.0], &[1.0, 0.0], 2).unwrap();
        // Cosines of the embeddings 0.6 and 0.8, of the profiles 0.8 and 0.6.
        store.insert(&[0.6, 0.8], &[0.3, 0.4], 3).unwrap()
    };
    assert_eq!(redundant(1.0), Inserted { index: 1, overwrote: Some(2) });
    assert_eq!(redundant(0.0), Inserted { index: 0, overwrote: Some(1) });
    assert_eq!(redundant(0.4), Inserted { index: 0, overwrote: Some(1) });
}

#[test]
fn what_was_overwritten_makes_the_newcomer_the_youngest() {
    let mut store = ConversationStore::new(&StoreConfig::new(2, 1, 1)).unwrap();
    for id in 0..3 {
        store.insert(&[1.0], &[1.0], id).unwrap();
    }
    // 2 took the place of 0, the older of two that are the same; 1 is now the oldest.
    let mut search = store.search().unwrap();
    let nearest = store.nearest(&[3.0], 9, &mut search).unwrap();
    let ids: Vec<u64> = nearest.iter().map(|one| store.id(one.index)).collect();
    assert_eq!((ids, nearest[0].index), (vec![1, 2], 1));
}

#[test]
fn mean_profiles_weigh_by_likeness() {
    let mut store = ConversationStore::new(&StoreConfig::new(4, 2, 2)).unwrap();
    let mut search = store.search().unwrap();
    let mut out = [9.0; 2];
    let nobody = store.nearest(&[1.0, 0.0], 3, &mut search).unwrap();
    assert_eq!((store.mean_profile(nobody, &mut out), out), (Ok(0.0), [0.0, 0.0]));
    store.insert(&[1.0, 0.0], &[1.0, 0.0], 1).unwrap();
    store.insert(&[3.0, 4.0], &[0.0, 1.0], 2).unwrap();
    store.insert(&[-1.0, 0.0], &[1.0, 1.0], 3).unwrap();
    store.insert(&[0.0, 0.0], &[1.0, 1.0], 4).unwrap();
    // Cosines 1, 0.6, 0 and -1: the last two weigh nothing.
    let all = store.nearest(&[2.0, 0.0], 4, &mut search).unwrap();
    let weight = store.mean_profile(all, &mut out).unwrap();
    assert!((weight - 1.6).abs() < 1e-6, "{weight}");
    assert!((out[0] - 0.625).abs() < 1e-6 && (out[1] - 0.375).abs() < 1e-6, "{out:?}");
    let farthest = store.nearest(&[2.0, 0.0], 4, &mut search).unwrap()[3];
    assert_eq!(store.id(farthest.index), 3);
    assert_eq!((store.mean_profile(&[farthest], &mut out), out), (Ok(0.0), [0.0, 0.0]));
    let profile: Vec<f32> = store.profile(1).collect();
    assert_eq!((profile, store.embedding(1)), (vec![0.0, 1.0], &[0.6, 0.8][..]));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let made = |config: StoreConfig| ConversationStore::new(&config).unwrap_err().to_string();
    let config = StoreConfig::new(1, 2, 2);
    assert!(made(StoreConfig { capacity: 0, ..config }).starts_with("capacity is 0; 1 to"));
    assert!(made(StoreConfig { dimension: 0, ..config }).ends_with("1 to 65536 are possible"));
    assert!(made(StoreConfig { dimension: 65_537, ..config }).starts_with("dimension is 65537"));
    assert!(made(StoreConfig { keys: 0, ..config }).starts_with("keys is 0"));
    let weight = StoreConfig { embedding_weight: f64::NAN, ..config };
    assert!(made(weight).starts_with("embedding_weight is NaN"));
    let huge = StoreConfig { capacity: u32::MAX as usize, keys: u32::MAX as usize, ..config };
    assert!(made(huge).contains("more than memory can hold"));

    let mut store = ConversationStore::new(&config).unwrap();
    store.insert(&[1.0, 0.0], &[1.0, 0.0], 1).unwrap();
    let told = |error: SemanticError| error.to_string();
    let refused = [
        store.insert(&[1.0], &[1.0, 0.0], 2).map_err(told),
        store.insert(&[1.0, 0.0], &[1.0], 2).map_err(told),
        store.insert(&[1.0, f32::NAN], &[0.0, 1.0], 2).map_err(told),
        store.insert(&[0.0, 1.0], &[0.0, -1.0], 2).map_err(told),
    ];
    let starts =
        ["the embedding has 1", "the profile has 1", "embedding: number 1", "profile: key 1"];
    for (refused, start) in refused.iter().zip(starts) {
        assert!(refused.as_ref().unwrap_err().starts_with(start), "{refused:?}");
    }
    let (mut search, mut out) = (store.search().unwrap(), [0.0; 2]);
    assert!(store.nearest(&[f32::INFINITY, 0.0], 1, &mut search).is_err());
    assert!(store.mean_of_all(&mut [0.0; 3]).is_err());
    store.mean_of_all(&mut out).unwrap();
    assert_eq!((store.id(0), out), (1, [1.0, 0.0]));
}
