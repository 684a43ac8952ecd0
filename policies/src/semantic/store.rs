//! The store of earlier conversations: bounded, searched exactly, its most redundant overwritten.
//!
//! Source: FineMoE (fMoE), expert map store. There the maps are gate probabilities by layer; here
//! a profile counts how often each expert key was used a token, which every trace can tell.

use std::collections::TryReserveError;

use super::SemanticError;
use super::codes::MAX_DIMENSION;
use super::error::{expect_length, expect_size};
use super::profiles::{self, Profiles};
use super::search::{Embeddings, Neighbour, Search};

/// Sizes of a [`ConversationStore`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoreConfig {
    /// Conversations that it keeps at most, from 1.
    pub capacity: usize,
    /// Numbers in an embedding, 1 to [`MAX_DIMENSION`].
    pub dimension: usize,
    /// Expert keys in a profile, from 1.
    pub keys: usize,
    /// How much the embeddings' likeness counts in what is most redundant, from 0 (the profiles'
    /// alone) to 1; FineMoE takes its prefetch distance over the number of layers.
    pub embedding_weight: f64,
}

impl StoreConfig {
    /// A store of these sizes in which embeddings and profiles weigh the same.
    #[must_use]
    pub fn new(capacity: usize, dimension: usize, keys: usize) -> Self {
        Self { capacity, dimension, keys, embedding_weight: 0.5 }
    }
}

/// Where a conversation went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inserted {
    /// Its index in the store.
    pub index: u32,
    /// The id of the conversation that it overwrote, if the store was full.
    pub overwrote: Option<u64>,
}

/// Earlier conversations: an embedding, an expert profile and an id each.
///
/// All memory is reserved at construction: 5 bytes for each number of an embedding and 2 for each
/// key of a profile.
///
/// ```
/// use hotset_policies::semantic::{ConversationStore, StoreConfig};
/// let mut store = ConversationStore::new(&StoreConfig::new(100, 2, 3))?;
/// store.insert(&[1.0, 0.0], &[0.9, 0.1, 0.0], 7)?;
/// store.insert(&[0.0, 5.0], &[0.0, 0.1, 0.9], 8)?;
/// let mut search = store.search()?;
/// let nearest = store.nearest(&[2.0, 1.0], 1, &mut search)?;
/// assert_eq!(store.id(nearest[0].index), 7);
/// let mut profile = [0.0; 3];
/// store.mean_profile(nearest, &mut profile)?;
/// assert!((profile[0] - 0.9).abs() < 1e-5);
/// # Ok::<(), hotset_policies::semantic::SemanticError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ConversationStore {
    capacity: usize,
    embedding_weight: f64,
    embeddings: Embeddings,
    profiles: Profiles,
    ids: Vec<u64>,
    /// Conversations inserted so far.
    inserted: u64,
    /// Buffers of an insertion.
    search: Search,
    codes: Vec<u16>,
}

impl ConversationStore {
    /// An empty store.
    ///
    /// # Errors
    /// [`SemanticError::Size`] for a size of 0 or one too large, [`SemanticError::Weight`] for a
    /// weight that is not a share, [`SemanticError::Memory`] for more than there is.
    pub fn new(config: &StoreConfig) -> Result<Self, SemanticError> {
        let StoreConfig { capacity, dimension, keys, embedding_weight } = *config;
        expect_size("capacity", u32::MAX as usize, capacity)?;
        expect_size("dimension", MAX_DIMENSION, dimension)?;
        expect_size("keys", u32::MAX as usize, keys)?;
        if !(0.0..=1.0).contains(&embedding_weight) {
            return Err(SemanticError::Weight { value: embedding_weight });
        }
        let bytes = Embeddings::bytes(dimension)
            .saturating_add(Profiles::bytes(keys))
            .saturating_add(size_of::<u64>() + Search::BYTES);
        let reserve = || {
            let mut ids = Vec::new();
            ids.try_reserve_exact(capacity)?;
            let mut codes = Vec::new();
            codes.try_reserve_exact(keys)?;
            codes.resize(keys, 0);
            Ok(Self {
                capacity,
                embedding_weight,
                embeddings: Embeddings::with_capacity(capacity, dimension)?,
                profiles: Profiles::with_capacity(capacity, keys)?,
                ids,
                inserted: 0,
                search: Search::with_capacity(capacity, dimension)?,
                codes,
            })
        };
        let memory = |_: TryReserveError| SemanticError::Memory { conversations: capacity, bytes };
        reserve().map_err(memory)
    }

    /// Conversations stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Conversations stored at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Numbers in an embedding.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.embeddings.dimension
    }

    /// Expert keys in a profile.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.codes.len()
    }

    /// The id of a stored conversation.
    ///
    /// # Panics
    /// Where there is no conversation `index`.
    #[must_use]
    pub fn id(&self, index: u32) -> u64 {
        self.ids[index as usize]
    }

    /// The embedding of a stored conversation, scaled to length 1: `[dimension]`.
    ///
    /// # Panics
    /// Where there is no conversation `index`.
    #[must_use]
    pub fn embedding(&self, index: u32) -> &[f32] {
        self.embeddings.unit(index)
    }

    /// The profile of a stored conversation, in uses a token, to within 1 in 131,070: `[keys]`.
    ///
    /// # Panics
    /// Where there is no conversation `index`.
    pub fn profile(&self, index: u32) -> impl Iterator<Item = f32> {
        self.profiles.get(index as usize).iter().map(|&code| profiles::decode(code))
    }

    /// Stores a conversation: its embedding of any length but the right dimension, how often it
    /// used each key a token (1 at most is kept), and an id of the caller's, which need not be
    /// unique. Where the store is full it overwrites the most redundant: the one with the highest
    /// `w * cosine of the embeddings + (1 - w) * cosine of the profiles` with the newcomer, ties
    /// to the older; w is [`StoreConfig::embedding_weight`].
    ///
    /// # Errors
    /// [`SemanticError::Length`], [`SemanticError::Embedding`] or [`SemanticError::Profile`]; the
    /// store is then as it was.
    pub fn insert(
        &mut self,
        embedding: &[f32],
        profile: &[f32],
        id: u64,
    ) -> Result<Inserted, SemanticError> {
        expect_length("the profile", self.codes.len(), profile.len())?;
        profiles::encode(profile, &mut self.codes)?;
        self.search.take(embedding, self.embeddings.dimension)?;
        let full = self.len() == self.capacity;
        let at = if full { self.most_redundant() } else { self.len() };
        let overwrote = full.then(|| std::mem::replace(&mut self.ids[at], id));
        if !full {
            self.ids.push(id);
        }
        self.embeddings.set(at, self.search.unit(), self.inserted);
        self.profiles.set(at, &self.codes);
        self.inserted += 1;
        Ok(Inserted { index: at as u32, overwrote })
    }

    /// The conversation most like the newcomer in the buffers; the store is not empty.
    fn most_redundant(&mut self) -> usize {
        let weight = self.embedding_weight;
        let square = profiles::product(&self.codes, &self.codes);
        // Cosines of profiles take long; a bound tells which are needed.
        let of_embeddings = |cosine: f32| weight * f64::from(cosine);
        self.search.find_bounds(&self.embeddings);
        let bounds = self.search.bounds();
        let promising = (0..).zip(bounds).max_by(|a, b| a.1.total_cmp(b.1));
        let mut best: Option<(f64, u64, usize)> = None;
        for (index, &bound) in promising.into_iter().chain((0..).zip(bounds)) {
            // The slack covers cosines that rounding took above 1.
            let most = of_embeddings(bound) + (1.0 - weight) + 1e-9;
            if best.is_some_and(|(score, ..)| most < score) {
                continue;
            }
            let at = index as usize;
            let cosine = self.search.cosine(&self.embeddings, index);
            let profiles = self.profiles.cosine(at, &self.codes, square);
            let score = of_embeddings(cosine) + (1.0 - weight) * profiles;
            let born = self.embeddings.born[at];
            if best.is_none_or(|(most, oldest, _)| score > most || score == most && born < oldest) {
                best = Some((score, born, at));
            }
        }
        best.map_or(0, |(.., at)| at)
    }

    /// Buffers for searching this store.
    ///
    /// # Errors
    /// [`SemanticError::Memory`] where there is no room for them.
    pub fn search(&self) -> Result<Search, SemanticError> {
        Search::with_capacity(self.capacity, self.dimension()).map_err(|_| SemanticError::Memory {
            conversations: self.capacity,
            bytes: Search::BYTES,
        })
    }

    /// The `k` stored conversations (all, if there are fewer) whose embeddings have the highest
    /// cosines with `query`, highest first, ties to the older. Exact: what scoring every stored
    /// embedding gives. Nothing is allocated if `search` came from this store.
    ///
    /// # Errors
    /// [`SemanticError::Length`] or [`SemanticError::Embedding`].
    pub fn nearest<'a>(
        &self,
        query: &[f32],
        k: usize,
        search: &'a mut Search,
    ) -> Result<&'a [Neighbour], SemanticError> {
        search.take(query, self.dimension())?;
        Ok(search.nearest(&self.embeddings, k))
    }

    /// Writes the mean profile of some stored conversations into `out`, `[keys]`, in uses a token;
    /// each weighs as much as its cosine, and nothing where that is below 0. Returns the sum of
    /// the weights: 0 says that no conversation resembles the query, and `out` is all zeros.
    ///
    /// # Errors
    /// [`SemanticError::Length`] where `out` has another length.
    ///
    /// # Panics
    /// Where a neighbour is not of this store.
    pub fn mean_profile(
        &self,
        neighbours: &[Neighbour],
        out: &mut [f32],
    ) -> Result<f64, SemanticError> {
        expect_length("the mean profile", self.keys(), out.len())?;
        out.fill(0.0);
        let weight = |neighbour: &Neighbour| f64::from(neighbour.cosine.max(0.0));
        let total: f64 = neighbours.iter().map(weight).sum();
        if total > 0.0 {
            for one in neighbours {
                self.profiles.add_to(one.index as usize, weight(one) / total, out);
            }
        }
        Ok(total)
    }

    /// Writes the plain mean of all stored profiles into `out`, `[keys]`, in uses a token: the
    /// control that knows nothing of the query. Zeros where nothing is stored.
    ///
    /// # Errors
    /// [`SemanticError::Length`] where `out` has another length.
    pub fn mean_of_all(&self, out: &mut [f32]) -> Result<(), SemanticError> {
        expect_length("the mean profile", self.keys(), out.len())?;
        self.profiles.mean_into(out);
        Ok(())
    }
}
