//! Clusters of conversations by their embeddings, each with its members' mean expert profile.
//!
//! Spherical k-means (Dhillon and Modha 2001): nearness is the cosine, a centre is the direction of
//! its members' sum. Starts come from k-means++ (Arthur and Vassilvitskii 2007) with a seed; sums
//! are taken in the order of the conversations, so the same input gives the same clusters anywhere.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::SemanticError;
use super::codes::MAX_DIMENSION;
use super::error::{expect_length, expect_size};
use super::vectors::{dot, unit_into};

/// Conversations to be clustered, all in two flat slices.
#[derive(Debug, Clone, Copy)]
pub struct Conversations<'a> {
    /// Numbers in an embedding, 1 to [`MAX_DIMENSION`].
    pub dimension: usize,
    /// `[conversations][dimension]`, of any lengths.
    pub embeddings: &'a [f32],
    /// Expert keys in a profile, from 1.
    pub keys: usize,
    /// Uses of each key a token, `[conversations][keys]`.
    pub profiles: &'a [f32],
}

impl<'a> Conversations<'a> {
    /// How many there are, if sizes and numbers are sound.
    fn check(&self) -> Result<usize, SemanticError> {
        expect_size("dimension", MAX_DIMENSION, self.dimension)?;
        expect_size("keys", u32::MAX as usize, self.keys)?;
        let count = self.embeddings.len() / self.dimension;
        let whole = |rows: usize, width: usize| rows.saturating_mul(width);
        let expected = whole(count, self.dimension);
        expect_length("the list of embeddings", expected, self.embeddings.len())?;
        expect_length("the list of profiles", whole(count, self.keys), self.profiles.len())?;
        let possible = |uses: &f32| (0.0..f32::INFINITY).contains(uses);
        if let Some(at) = self.profiles.iter().position(|uses| !possible(uses)) {
            let value = self.profiles[at];
            return Err(SemanticError::Profile { at: at % self.keys, value });
        }
        Ok(count)
    }

    fn profile(&self, at: usize) -> &'a [f32] {
        &self.profiles[at * self.keys..][..self.keys]
    }
}

/// How clusters are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMeansConfig {
    /// Clusters, at least 1 and at most as many as conversations.
    pub clusters: usize,
    /// Seed of the first centres.
    pub seed: u64,
    /// Rounds of assigning and moving centres at most; 0 keeps the first centres.
    pub rounds: u32,
}

impl KMeansConfig {
    /// So many clusters from this seed, in 100 rounds at most.
    #[must_use]
    pub fn new(clusters: usize, seed: u64) -> Self {
        Self { clusters, seed, rounds: 100 }
    }
}

/// Clusters of conversations, none of them empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    dimension: usize,
    keys: usize,
    /// Unit vectors, `[clusters][dimension]`.
    centres: Vec<f32>,
    /// `[clusters][keys]`.
    profiles: Vec<f32>,
    /// Cluster of each conversation.
    labels: Vec<u32>,
    sizes: Vec<u32>,
    settled: bool,
}

impl Clusters {
    /// Clusters conversations. A cluster that loses all its members takes over the conversation
    /// that is farthest from its own centre, from a cluster with others.
    ///
    /// # Errors
    /// [`SemanticError::Clusters`] for more clusters than conversations, [`SemanticError::Size`]
    /// for none; [`SemanticError::Length`], [`SemanticError::Embedding`] or
    /// [`SemanticError::Profile`] for slices that do not fit together or numbers not possible.
    pub fn fit(
        conversations: &Conversations<'_>,
        config: &KMeansConfig,
    ) -> Result<Self, SemanticError> {
        let count = conversations.check()?;
        let clusters = config.clusters;
        if clusters > count {
            return Err(SemanticError::Clusters { clusters, conversations: count });
        }
        expect_size("clusters", count.min(u32::MAX as usize), clusters)?;
        let dimension = conversations.dimension;
        let mut points = vec![0.0; conversations.embeddings.len()];
        let given = conversations.embeddings.chunks_exact(dimension);
        for (given, point) in given.zip(points.chunks_exact_mut(dimension)) {
            unit_into(given, point)?;
        }
        let mut fit = Fit::start(&points, dimension, config);
        let mut labels = fit.assign();
        let mut settled = false;
        for _ in 0..config.rounds {
            fit.move_centres(&labels);
            let next = fit.assign();
            settled = next == labels;
            labels = next;
            if settled {
                break;
            }
        }
        let centres = fit.centres;
        let (profiles, sizes) = mean_profiles(conversations, &labels, clusters);
        let keys = conversations.keys;
        Ok(Self { dimension, keys, centres, profiles, labels, sizes, settled })
    }

    /// How many clusters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Never: there is at least one cluster.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// The cluster whose centre has the highest cosine with an embedding, ties to the lowest.
    ///
    /// # Errors
    /// [`SemanticError::Length`] or [`SemanticError::Embedding`].
    pub fn assign(&self, embedding: &[f32]) -> Result<u32, SemanticError> {
        expect_length("the embedding", self.dimension, embedding.len())?;
        let mut unit = vec![0.0; self.dimension];
        unit_into(embedding, &mut unit)?;
        Ok(nearest(&self.centres, &unit).0)
    }

    /// The mean profile of a cluster's members, in uses a token: `[keys]`.
    ///
    /// # Panics
    /// Where there is no such cluster.
    #[must_use]
    pub fn profile(&self, cluster: u32) -> &[f32] {
        &self.profiles[cluster as usize * self.keys..][..self.keys]
    }

    /// Conversations in a cluster.
    ///
    /// # Panics
    /// Where there is no such cluster.
    #[must_use]
    pub fn size(&self, cluster: u32) -> u32 {
        self.sizes[cluster as usize]
    }

    /// The cluster of each conversation that was given.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Whether the last round changed nothing; else the rounds ran out.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.settled
    }
}

/// The centre with the highest cosine, ties to the lowest, and that cosine.
fn nearest(centres: &[f32], unit: &[f32]) -> (u32, f32) {
    let cosines = centres.chunks_exact(unit.len()).map(|centre| dot(centre, unit));
    let first = (0, f32::NEG_INFINITY);
    (0..).zip(cosines).fold(first, |best, one| if one.1 > best.1 { one } else { best })
}

/// Centres on their way to where they stay.
struct Fit<'a> {
    dimension: usize,
    /// Unit vectors, `[conversations][dimension]`.
    points: &'a [f32],
    centres: Vec<f32>,
}

impl<'a> Fit<'a> {
    /// k-means++: the first centre is any point, each further one a point drawn in proportion to
    /// its squared distance from the nearest centre so far, which is 2 - 2 cosine.
    fn start(points: &'a [f32], dimension: usize, config: &KMeansConfig) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(config.seed);
        let count = points.len() / dimension;
        let point = |at: usize| &points[at * dimension..][..dimension];
        let mut centres = Vec::with_capacity(config.clusters * dimension);
        let mut chosen = random.random_range(0..count as u64) as usize;
        let mut taken = vec![false; count];
        let mut distances = vec![f64::INFINITY; count];
        loop {
            centres.extend_from_slice(point(chosen));
            taken[chosen] = true;
            if centres.len() == config.clusters * dimension {
                return Self { dimension, points, centres };
            }
            for (at, distance) in distances.iter_mut().enumerate() {
                let cosine = f64::from(dot(point(chosen), point(at)));
                // Of points taken, rounding may leave a trace of distance.
                *distance = if taken[at] { 0.0 } else { distance.min((1.0 - cosine).max(0.0)) };
            }
            chosen = draw(&distances, &taken, random.random::<f64>());
        }
    }

    /// The nearest centre of each point, with a point for every centre that is nobody's nearest.
    fn assign(&self) -> Vec<u32> {
        let nearest = self.points.chunks_exact(self.dimension).map(|p| nearest(&self.centres, p));
        let (mut labels, cosines): (Vec<u32>, Vec<f32>) = nearest.unzip();
        let mut sizes = vec![0u32; self.centres.len() / self.dimension];
        labels.iter().for_each(|&label| sizes[label as usize] += 1);
        if sizes.contains(&0) {
            let mut farthest: Vec<usize> = (0..labels.len()).collect();
            farthest.sort_by(|&a, &b| cosines[a].total_cmp(&cosines[b]));
            let mut farthest = farthest.into_iter();
            for empty in 0..sizes.len() {
                // There are at least as many points as centres, so a shared one is found.
                while sizes[empty] == 0
                    && let Some(at) = farthest.next()
                {
                    let old = labels[at] as usize;
                    if sizes[old] > 1 {
                        sizes[old] -= 1;
                        sizes[empty] = 1;
                        labels[at] = empty as u32;
                    }
                }
            }
        }
        labels
    }

    /// Each centre becomes the direction of its members' sum; where that is 0, it has none.
    fn move_centres(&mut self, labels: &[u32]) {
        let mut sums = vec![0.0f64; self.centres.len()];
        for (point, &label) in self.points.chunks_exact(self.dimension).zip(labels) {
            let sum = &mut sums[label as usize * self.dimension..][..self.dimension];
            sum.iter_mut().zip(point).for_each(|(sum, &number)| *sum += f64::from(number));
        }
        let rows = sums.chunks_exact(self.dimension);
        for (centre, sum) in self.centres.chunks_exact_mut(self.dimension).zip(rows) {
            let norm = sum.iter().map(|number| number * number).sum::<f64>().sqrt();
            for (centre, &number) in centre.iter_mut().zip(sum) {
                *centre = if norm > 0.0 { (number / norm) as f32 } else { 0.0 };
            }
        }
    }
}

/// A point in proportion to its distance, by a number from 0 to below 1; where all distances are
/// 0, the first that is not taken.
fn draw(distances: &[f64], taken: &[bool], number: f64) -> usize {
    let total: f64 = distances.iter().sum();
    let mut left = number * total;
    let mut last = None;
    for (at, &distance) in distances.iter().enumerate().filter(|&(_, &distance)| distance > 0.0) {
        if left < distance {
            return at;
        }
        left -= distance;
        last = Some(at);
    }
    // Rounding may carry the number past the last.
    last.or_else(|| taken.iter().position(|taken| !taken)).unwrap_or(0)
}

/// The mean profile of each cluster's members, and how many they are.
fn mean_profiles(
    conversations: &Conversations<'_>,
    labels: &[u32],
    clusters: usize,
) -> (Vec<f32>, Vec<u32>) {
    let keys = conversations.keys;
    let mut sizes = vec![0u32; clusters];
    let mut sums = vec![0.0f64; clusters * keys];
    for (at, &label) in labels.iter().enumerate() {
        sizes[label as usize] += 1;
        let sum = &mut sums[label as usize * keys..][..keys];
        let uses = conversations.profile(at);
        sum.iter_mut().zip(uses).for_each(|(sum, &uses)| *sum += f64::from(uses));
    }
    let sized = sums.chunks_exact(keys).zip(&sizes);
    let means = sized
        .flat_map(|(sum, &size)| sum.iter().map(move |sum| (sum / f64::from(size.max(1))) as f32));
    (means.collect(), sizes)
}
