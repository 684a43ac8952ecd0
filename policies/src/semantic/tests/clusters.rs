//! The clusters: what anyone can see, what no luck of the start may break, and odd input.

use proptest::prelude::*;

use super::super::vectors::{dot, unit_into};
use super::super::*;

fn fit(embeddings: &[f32], profiles: &[f32], clusters: usize, seed: u64) -> Clusters {
    let conversations = Conversations { dimension: 2, embeddings, keys: 1, profiles };
    Clusters::fit(&conversations, &KMeansConfig::new(clusters, seed)).unwrap()
}

/// Two groups a right angle apart: whatever the seed, each has a cluster and its mean profile.
#[test]
fn two_groups_are_found() {
    let embeddings = [1.0, 0.0, 0.0, 7.0, 5.0, 0.5, 0.1, 1.0];
    for seed in 0..20 {
        let clusters = fit(&embeddings, &[0.1, 0.5, 0.3, 0.7], 2, seed);
        let labels = clusters.labels();
        assert!(labels[0] == labels[2] && labels[1] == labels[3] && labels[0] != labels[1]);
        assert!((clusters.profile(labels[0])[0] - 0.2).abs() < 1e-7);
        assert!((clusters.profile(labels[1])[0] - 0.6).abs() < 1e-7);
        assert_eq!((clusters.size(0), clusters.size(1), clusters.len()), (2, 2, 2));
        assert!(clusters.settled());
        // Lengths do not count: 40 degrees are nearer to the first group, 50 to the second.
        assert_eq!(clusters.assign(&[766.0, 643.0]).unwrap(), labels[0]);
        assert_eq!(clusters.assign(&[0.643, 0.766]).unwrap(), labels[1]);
    }
}

/// A centre is the direction of the sum: of (1, 0) and (0.6, 0.8), (2, 1) over its length. One
/// round from a start at either point shows it.
#[test]
fn one_cluster_is_the_mean_of_all() {
    let clusters = fit(&[1.0, 0.0, 3.0, 4.0], &[0.25, 0.75], 1, 3);
    assert_eq!((clusters.labels(), clusters.profile(0)), (&[0, 0][..], &[0.5f32][..]));
    assert_eq!(clusters.assign(&[-1.0, -1.0]).unwrap(), 0);
}

/// As many clusters as points, all the same or all zeros: none may be empty.
#[test]
fn no_cluster_is_empty_where_all_points_coincide() {
    for point in [[1.0, 2.0], [0.0, 0.0]] {
        for count in 1..6usize {
            for clusters in 1..=count {
                let fitted = fit(&point.repeat(count), &vec![0.5; count], clusters, 9);
                let sizes: Vec<u32> = (0..clusters as u32).map(|c| fitted.size(c)).collect();
                assert!(!sizes.contains(&0) && sizes.iter().sum::<u32>() == count as u32);
                assert!(fitted.settled(), "{count} points, {clusters} clusters");
            }
        }
    }
}

#[test]
fn a_seed_gives_one_result() {
    let embeddings: Vec<f32> = (0..400u32).map(|n| (n * n % 97) as f32 - 48.0).collect();
    let profiles = vec![0.5; 200];
    let of_seed = |seed| fit(&embeddings, &profiles, 7, seed);
    assert_eq!(of_seed(1), of_seed(1));
    assert!((2..9).any(|seed| of_seed(seed).labels() != of_seed(1).labels()));
}

#[test]
fn what_cannot_be_is_refused() {
    let told = |dimension, embeddings: &[f32], profiles: &[f32], clusters| {
        let conversations = Conversations { dimension, embeddings, keys: 1, profiles };
        let fitted = Clusters::fit(&conversations, &KMeansConfig::new(clusters, 1));
        fitted.unwrap_err().to_string()
    };
    let three = "3 clusters of 2 conversations; ask for at most as many clusters as conversations";
    assert_eq!(told(1, &[1.0, 2.0], &[0.0, 0.0], 3), three);
    assert!(told(1, &[], &[], 1).starts_with("1 clusters of 0 conversations"));
    assert!(told(1, &[1.0, 2.0], &[0.0, 0.0], 0).starts_with("clusters is 0; 1 to 2"));
    assert!(told(0, &[1.0], &[0.0], 1).starts_with("dimension is 0"));
    assert!(told(2, &[1.0, 2.0, 3.0], &[0.0], 1).starts_with("the list of embeddings has 3"));
    assert!(told(1, &[1.0, 2.0], &[0.0], 1).starts_with("the list of profiles has 1"));
    assert!(told(1, &[1.0, f32::NAN], &[0.0, 0.0], 1).starts_with("embedding: number 0 is NaN"));
    assert!(told(1, &[1.0, 2.0], &[0.0, -0.1], 1).starts_with("profile: key 0 is used -0.1"));
}

proptest! {
    /// What holds of every clustering: all are taken, nobody alone, profiles are means, and where
    /// the rounds sufficed, everybody is with the nearest centre but those that fill a gap.
    #[test]
    fn invariants(
        numbers in prop::collection::vec(prop_oneof![Just(0.0f32), -1.0f32..1.0], 2..80),
        share in 0.0f64..1.0,
        seed: u64,
    ) {
        let count = numbers.len() / 2;
        let embeddings = &numbers[..count * 2];
        let clusters = 1 + (share * count as f64) as usize % count;
        let profiles: Vec<f32> = (0..count).map(|n| n as f32 / count as f32).collect();
        let fitted = fit(embeddings, &profiles, clusters, seed);
        for cluster in 0..clusters as u32 {
            let members: Vec<usize> =
                (0..count).filter(|&at| fitted.labels()[at] == cluster).collect();
            prop_assert!(!members.is_empty());
            prop_assert_eq!(members.len(), fitted.size(cluster) as usize);
            let sum: f64 = members.iter().map(|&at| f64::from(profiles[at])).sum();
            let mean = (sum / members.len() as f64) as f32;
            prop_assert_eq!(fitted.profile(cluster), &[mean][..]);
        }
        if fitted.settled() {
            let astray = embeddings.chunks_exact(2).zip(fitted.labels()).filter(|(point, label)| {
                let nearest = fitted.assign(point).unwrap();
                nearest != **label && fitted.size(**label) > 1
            });
            prop_assert_eq!(astray.count(), 0);
            // And the centres are the directions of the members' sums, summed here afresh.
            let unit = |point: &[f32]| {
                let norm = f64::from(point[0]).hypot(f64::from(point[1])).max(f64::MIN_POSITIVE);
                [f64::from(point[0]) / norm, f64::from(point[1]) / norm]
            };
            let mut centres = vec![[0.0f64; 2]; clusters];
            for (point, &label) in embeddings.chunks_exact(2).zip(fitted.labels()) {
                let centre = &mut centres[label as usize];
                *centre = [centre[0] + unit(point)[0], centre[1] + unit(point)[1]];
            }
            // Of a sum near 0, rounding alone makes the direction.
            prop_assume!(centres.iter().all(|centre| centre[0].hypot(centre[1]) > 1e-3));
            for (point, &label) in embeddings.chunks_exact(2).zip(fitted.labels()) {
                let cosine = |centre: &[f64; 2]| {
                    let norm = centre[0].hypot(centre[1]);
                    (centre[0] * unit(point)[0] + centre[1] * unit(point)[1]) / norm
                };
                let best = centres.iter().map(cosine).fold(-1.0, f64::max);
                let own = cosine(&centres[label as usize]);
                prop_assert!(fitted.size(label) == 1 || own >= best - 1e-4, "{own} {best}");
            }
        }
    }
}

/// The start prefers what is far: of a crowd and one stranger, two centres nearly always take both.
#[test]
fn the_start_prefers_what_is_far() {
    let mut embeddings = [1.0, 0.0].repeat(50);
    embeddings.extend([0.0, 1.0]);
    let conversations =
        Conversations { dimension: 2, embeddings: &embeddings, keys: 1, profiles: &[0.5; 51] };
    for seed in 0..20 {
        let config = KMeansConfig { rounds: 0, ..KMeansConfig::new(2, seed) };
        let clusters = Clusters::fit(&conversations, &config).unwrap();
        let stranger = clusters.labels()[50];
        assert_eq!(clusters.size(stranger), 1);
        let mut unit = [0.0; 2];
        unit_into(&[0.0, 2.0], &mut unit).unwrap();
        assert_eq!(dot(&unit, &[0.0, 1.0]), 1.0);
        assert_eq!(clusters.assign(&[0.0, 2.0]).unwrap(), stranger);
    }
}
