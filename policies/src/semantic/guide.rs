//! [`Guide`]: the expert profile that a conversation is expected to have, and where it comes from.
//!
//! A conversation's profile is how often each expert is used a token. At its start the guide looks
//! for earlier conversations like it; at its end it is stored. What the profile is used for
//! (protection, prefetch, both) is the caller's business.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::error::SemanticError;
use super::guide_config::{GuideConfig, Likeness, ProfileFrom};
use super::kmeans::{Clusters, Conversations, KMeansConfig};
use super::search::Search;
use super::store::{ConversationStore, StoreConfig};
use crate::predict::layers::Token;
use crate::predict::predictor::Opening;

/// A conversation that runs.
#[derive(Debug, Clone, Default)]
struct Lane {
    runs: bool,
    /// What it is alike by; empty until known.
    key: Vec<f32>,
    profile: Vec<f32>,
    /// Whether the profile waits for the first tokens' routes.
    waits: bool,
    uses: Vec<u32>,
    tokens: u32,
}

/// Profiles of the conversations that run, from those that ran before.
#[derive(Debug, Clone)]
pub struct Guide {
    config: GuideConfig,
    keys: usize,
    /// Made when the first key, and with it its dimension, is known.
    store: Option<(ConversationStore, Search)>,
    clusters: Option<Clusters>,
    lanes: Vec<Lane>,
    rng: Pcg64Mcg,
    learning: bool,
    changed: bool,
    finished: u64,
    scratch: Vec<f32>,
    /// Conversations that could not be looked up or stored, and the first reason.
    refused: Option<SemanticError>,
}

impl Guide {
    /// A guide over dense keys `0..keys` that knows no conversation.
    #[must_use]
    pub fn new(keys: usize, config: &GuideConfig) -> Self {
        Self {
            config: *config,
            keys,
            store: None,
            clusters: None,
            lanes: Vec::new(),
            rng: Pcg64Mcg::seed_from_u64(config.seed),
            learning: true,
            changed: false,
            finished: 0,
            scratch: vec![0.0; keys],
            refused: None,
        }
    }

    /// The expected profile of the conversation in a lane, uses a token by dense key; empty where
    /// no conversation runs, zeros where nothing is known yet.
    #[must_use]
    pub fn profile(&self, lane: u32) -> &[f32] {
        match self.lanes.get(lane as usize) {
            Some(lane) if lane.runs => &lane.profile,
            _ => &[],
        }
    }

    /// Whether a profile changed since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The mean of the profiles of the conversations that run, into `out` (one number a key).
    pub fn mean_profile(&self, out: &mut [f32]) {
        out.fill(0.0);
        let running = self.lanes.iter().filter(|lane| lane.runs);
        let share = 1.0 / running.clone().count().max(1) as f32;
        for lane in running {
            out.iter_mut().zip(&lane.profile).for_each(|(sum, uses)| *sum += uses * share);
        }
    }

    /// Conversations stored.
    #[must_use]
    pub fn stored(&self) -> usize {
        self.store.as_ref().map_or(0, |(store, _)| store.len())
    }

    /// The first embedding or profile that could not be used.
    #[must_use]
    pub fn refused(&self) -> Option<&SemanticError> {
        self.refused.as_ref()
    }

    /// Stops storing conversations, or goes on.
    pub fn set_learning(&mut self, learning: bool) {
        self.learning = learning;
    }

    /// A conversation takes a lane.
    pub fn begin(&mut self, lane: u32, opening: &Opening<'_>) {
        let index = lane as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, Lane::default);
        }
        let (by, from, keys) = (self.config.by, self.config.from, self.keys);
        let lane = &mut self.lanes[index];
        (lane.runs, lane.tokens, self.changed) = (true, 0, true);
        lane.uses.clear();
        lane.uses.resize(keys, 0);
        lane.profile.clear();
        lane.profile.resize(keys, 0.0);
        lane.key.clear();
        let prompt = UsesOf { uses: opening.prompt_uses, tokens: opening.prompt_tokens };
        match by {
            Likeness::In => lane.key.extend_from_slice(opening.embedding),
            Likeness::Out => lane.key.extend_from_slice(opening.embedding_out),
            Likeness::Routes => prompt.shares(&mut lane.key),
        }
        let of_routes = from == ProfileFrom::Prompt
            || by == Likeness::Routes
                && matches!(from, ProfileFrom::Nearest | ProfileFrom::Clusters);
        lane.waits = of_routes && opening.prompt_tokens == 0;
        match from {
            ProfileFrom::Prompt if !lane.waits => prompt.shares(&mut lane.profile),
            ProfileFrom::Own => UsesOf { uses: opening.own_uses, tokens: opening.own_tokens }
                .shares(&mut lane.profile),
            _ if !lane.waits => self.look_up(index),
            _ => {}
        }
        self.lanes[index].profile.resize(keys, 0.0);
    }

    /// A layer's experts of a token of a conversation.
    #[inline]
    pub fn observe(&mut self, token: &Token<'_>) {
        let index = token.lane as usize;
        let layer = token.layer as usize;
        let lane = &mut self.lanes[index];
        if layer == 0 {
            if lane.waits && lane.tokens == self.config.after {
                self.look_up_by_routes(index);
            }
            self.lanes[index].tokens += 1;
        }
        let base = token.layers().keys(layer).start;
        let uses = &mut self.lanes[index].uses;
        token.experts(layer).iter().for_each(|&expert| uses[base + expert as usize] += 1);
    }

    /// The first tokens have run and their routes are known.
    #[cold]
    fn look_up_by_routes(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        lane.waits = false;
        let told = UsesOf { uses: &lane.uses, tokens: lane.tokens };
        if self.config.from == ProfileFrom::Prompt {
            told.shares(&mut lane.profile);
        } else {
            told.shares(&mut lane.key);
            self.look_up(index);
        }
        self.changed = true;
    }

    /// The conversation of a lane is over, and is stored.
    pub fn end(&mut self, lane: u32) {
        let lane = &mut self.lanes[lane as usize];
        lane.runs = false;
        if !self.learning || lane.tokens == 0 {
            return;
        }
        // (The controls need no key, but they store what the guide that they control would.)
        if lane.key.is_empty() {
            lane.key.push(0.0);
        }
        UsesOf { uses: &lane.uses, tokens: lane.tokens }.shares(&mut self.scratch);
        // What an event of a batch used twice counts twice: more than once a token is once.
        self.scratch.iter_mut().for_each(|uses| *uses = uses.min(1.0));
        self.finished += 1;
        let stored = store_for(&mut self.store, &self.config, self.keys, lane.key.len())
            .and_then(|store| store.insert(&lane.key, &self.scratch, self.finished));
        if let Err(refused) = stored {
            self.refused.get_or_insert(refused);
        }
    }

    fn look_up(&mut self, index: usize) {
        if let Err(refused) = self.try_look_up(index) {
            self.refused.get_or_insert(refused);
        }
    }

    fn try_look_up(&mut self, index: usize) -> Result<(), SemanticError> {
        let Some((store, search)) = &mut self.store else { return Ok(()) };
        let lane = &mut self.lanes[index];
        let k = self.config.k;
        match self.config.from {
            ProfileFrom::Nearest => {
                let nearest = store.nearest(&lane.key, k, search)?;
                store.mean_profile(nearest, &mut lane.profile)?;
            }
            ProfileFrom::Shuffled => {
                let share = 1.0 / k.min(store.len()) as f32;
                let mut others: Vec<u32> = (0..store.len() as u32).collect();
                for drawn in 0..k.min(others.len()) {
                    let pick = self.rng.random_range(drawn..others.len());
                    others.swap(drawn, pick);
                    let profile = store.profile(others[drawn]);
                    lane.profile.iter_mut().zip(profile).for_each(|(sum, p)| *sum += p * share);
                }
            }
            ProfileFrom::Clusters => {
                let clusters = self.config.clusters;
                let fitted = self.clusters.as_ref().map_or(0, |fit| fit.labels().len());
                if store.len() >= clusters && (fitted == 0 || store.len() >= 2 * fitted) {
                    self.clusters = Some(fit(store, clusters, self.config.seed)?);
                }
                match &self.clusters {
                    Some(clusters) => {
                        let cluster = clusters.assign(&lane.key)?;
                        lane.profile.copy_from_slice(clusters.profile(cluster));
                    }
                    None => store.mean_of_all(&mut lane.profile)?,
                }
            }
            ProfileFrom::Mean => store.mean_of_all(&mut lane.profile)?,
            ProfileFrom::Prompt | ProfileFrom::Own => {}
        }
        Ok(())
    }
}

/// The store, made for keys of this dimension if there is none yet.
fn store_for<'s>(
    store: &'s mut Option<(ConversationStore, Search)>,
    config: &GuideConfig,
    keys: usize,
    dimension: usize,
) -> Result<&'s mut ConversationStore, SemanticError> {
    if store.is_none() {
        let made = ConversationStore::new(&StoreConfig::new(config.store, dimension, keys))?;
        let search = made.search()?;
        *store = Some((made, search));
    }
    match store {
        Some((store, _)) => Ok(store),
        None => unreachable!("it was made just now"),
    }
}

/// How often so many tokens used each key.
#[derive(Clone, Copy)]
struct UsesOf<'a> {
    uses: &'a [u32],
    tokens: u32,
}

impl UsesOf<'_> {
    /// Uses a token, one number a key; nothing where no token is known.
    fn shares(self, out: &mut Vec<f32>) {
        let tokens = self.tokens.max(1) as f32;
        out.clear();
        out.extend(self.uses.iter().map(|&uses| uses as f32 / tokens));
    }
}

/// Clusters of everything that is stored.
fn fit(store: &ConversationStore, clusters: usize, seed: u64) -> Result<Clusters, SemanticError> {
    let all = 0..store.len() as u32;
    let embeddings: Vec<f32> =
        all.clone().flat_map(|index| store.embedding(index).to_vec()).collect();
    let profiles: Vec<f32> = all.flat_map(|index| store.profile(index)).collect();
    let conversations = Conversations {
        dimension: store.dimension(),
        embeddings: &embeddings,
        keys: store.keys(),
        profiles: &profiles,
    };
    Clusters::fit(&conversations, &KMeansConfig::new(clusters, seed))
}
