//! [`Guide`]: the expert profile that a conversation is expected to have, and where it comes from.
//!
//! A conversation's profile is how often each expert is used a token. At its start the guide looks
//! for earlier conversations like it; at its end it is stored. What the profile is used for
//! (protection, prefetch, both) is the caller's business.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::{
    Clusters, ConversationStore, Conversations, KMeansConfig, Search, SemanticError, StoreConfig,
};
use crate::Config;
use crate::predict::{Opening, Token};

/// Whose profile a conversation is expected to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileFrom {
    /// The mean of the earlier conversations nearest by embedding, weighted by cosine.
    #[default]
    Nearest,
    /// The mean of the conversations of the nearest cluster.
    Clusters,
    /// Control: the plain mean of all earlier conversations.
    Mean,
    /// Control: that of earlier conversations drawn at random, as many as would be nearest.
    Shuffled,
    /// The conversation's own prompt, or its first tokens where the prompt's routes are unknown.
    Prompt,
    /// Ceiling: its own, the future included.
    Own,
}

/// What conversations are alike by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Likeness {
    /// The prompt's mean input embedding.
    #[default]
    In,
    /// The prompt's mean final hidden state.
    Out,
    /// The experts that the prompt used, or the first tokens where the prompt's are unknown.
    Routes,
}

/// Parameters of a [`Guide`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuideConfig {
    /// Whose profile.
    pub from: ProfileFrom,
    /// What conversations are alike by.
    pub by: Likeness,
    /// Earlier conversations that are looked at, at least 1.
    pub k: usize,
    /// Conversations that are stored at most, at least 1.
    pub store: usize,
    /// Clusters; fitted once there are as many conversations, again when they have doubled.
    pub clusters: usize,
    /// Tokens of the run after which routes tell, where those of the prompt are unknown.
    pub after: u32,
    /// Seed of clusters and of the random control.
    pub seed: u64,
}

impl Default for GuideConfig {
    fn default() -> Self {
        Self {
            from: ProfileFrom::Nearest,
            by: Likeness::In,
            k: 8,
            store: 1000,
            clusters: 8,
            after: 32,
            seed: 1,
        }
    }
}

impl Config for GuideConfig {
    fn check(&self) -> Result<(), String> {
        for (name, value) in [("k", self.k), ("store", self.store), ("clusters", self.clusters)] {
            if !(1..=1 << 20).contains(&value) {
                return Err(format!("{name} = {value} is not within 1 to 1048576"));
            }
        }
        if self.after == 0 {
            return Err("after is at least 1 token".to_owned());
        }
        Ok(())
    }
}

impl GuideConfig {
    /// Whether it looks at the prompts' embeddings.
    #[must_use]
    pub fn needs_embeddings(&self) -> bool {
        matches!(self.from, ProfileFrom::Nearest | ProfileFrom::Clusters)
            && self.by != Likeness::Routes
    }

    /// Whether it goes by what it stores of earlier conversations, by vectors of at most
    /// [`MAX_DIMENSION`](super::MAX_DIMENSION) numbers.
    #[must_use]
    pub fn needs_store(&self) -> bool {
        !matches!(self.from, ProfileFrom::Prompt | ProfileFrom::Own)
    }

    /// Whether it looks at what a conversation is going to use: a ceiling, no policy.
    #[must_use]
    pub fn needs_future(&self) -> bool {
        self.from == ProfileFrom::Own
    }
}

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
        let prompt = (opening.prompt_uses, opening.prompt_tokens);
        match by {
            Likeness::In => lane.key.extend_from_slice(opening.embedding),
            Likeness::Out => lane.key.extend_from_slice(opening.embedding_out),
            Likeness::Routes => shares(prompt, &mut lane.key),
        }
        let of_routes = from == ProfileFrom::Prompt
            || by == Likeness::Routes
                && matches!(from, ProfileFrom::Nearest | ProfileFrom::Clusters);
        lane.waits = of_routes && opening.prompt_tokens == 0;
        match from {
            ProfileFrom::Prompt if !lane.waits => shares(prompt, &mut lane.profile),
            ProfileFrom::Own => shares((opening.own_uses, opening.own_tokens), &mut lane.profile),
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
                self.tell_by_routes(index);
            }
            self.lanes[index].tokens += 1;
        }
        let base = token.layers().keys(layer).start;
        let uses = &mut self.lanes[index].uses;
        token.experts(layer).iter().for_each(|&expert| uses[base + expert as usize] += 1);
    }

    /// The first tokens have run and their routes are known.
    #[cold]
    fn tell_by_routes(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        lane.waits = false;
        let told = (&lane.uses[..], lane.tokens);
        if self.config.from == ProfileFrom::Prompt {
            shares(told, &mut lane.profile);
        } else {
            shares(told, &mut lane.key);
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
        shares((&lane.uses, lane.tokens), &mut self.scratch);
        // What an event of a batch used twice counts twice: more than once a token is once.
        self.scratch.iter_mut().for_each(|uses| *uses = uses.min(1.0));
        self.finished += 1;
        let stored = store_for(&mut self.store, (&self.config, self.keys), lane.key.len())
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
    (config, keys): (&GuideConfig, usize),
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

/// Uses a token, one number a key; nothing where no token is known.
fn shares((uses, tokens): (&[u32], u32), out: &mut Vec<f32>) {
    out.clear();
    out.extend(uses.iter().map(|&uses| uses as f32 / tokens.max(1) as f32));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Layers;

    fn layers() -> Layers {
        Layers::new(&[4], &[1])
    }

    /// A conversation with this embedding that uses these experts.
    fn converse(guide: &mut Guide, embedding: &[f32], experts: &[u32]) -> Vec<f32> {
        guide.begin(0, &Opening { embedding, ..Opening::default() });
        let profile = guide.profile(0).to_vec();
        for expert in experts {
            guide.observe(&Token::new((0, 0, 0), &layers(), &[*expert], &[]));
        }
        guide.end(0);
        profile
    }

    fn near(found: &[f32], expected: [f32; 4]) {
        let close = found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-4);
        assert!(close, "{found:?} is not {expected:?}");
    }

    #[test]
    fn the_nearest_by_hand() {
        let mut guide = Guide::new(4, &GuideConfig { k: 1, ..GuideConfig::default() });
        near(&converse(&mut guide, &[1.0, 0.0], &[0, 0, 0, 1]), [0.0; 4]);
        near(&converse(&mut guide, &[0.0, 2.0], &[2, 3]), [0.75, 0.25, 0.0, 0.0].map(|_| 0.0));
        near(&converse(&mut guide, &[3.0, 0.1], &[0]), [0.75, 0.25, 0.0, 0.0]);
        near(&converse(&mut guide, &[0.1, 1.0], &[1]), [0.0, 0.0, 0.5, 0.5]);
        assert_eq!((guide.stored(), guide.profile(0).len(), guide.refused()), (4, 0, None));
        guide.set_learning(false);
        converse(&mut guide, &[1.0, 1.0], &[1]);
        assert_eq!(guide.stored(), 4);
    }

    #[test]
    fn controls_and_ceiling_by_hand() {
        let of =
            |from| Guide::new(4, &GuideConfig { from, k: 9, after: 2, ..GuideConfig::default() });
        let mut mean = of(ProfileFrom::Mean);
        let mut random = of(ProfileFrom::Shuffled);
        for guide in [&mut mean, &mut random] {
            converse(guide, &[1.0, 0.0], &[0]);
            converse(guide, &[0.0, 1.0], &[2, 3]);
            // Nine drawn of two are both.
            near(&converse(guide, &[0.0, 1.0], &[0]), [0.5, 0.0, 0.25, 0.25]);
        }
        let mut own = of(ProfileFrom::Own);
        own.begin(0, &Opening { own_uses: &[3, 1, 0, 0], own_tokens: 4, ..Opening::default() });
        near(own.profile(0), [0.75, 0.25, 0.0, 0.0]);
        let mut prompt = of(ProfileFrom::Prompt);
        let opening =
            Opening { prompt_uses: &[0, 1, 0, 1], prompt_tokens: 2, ..Opening::default() };
        prompt.begin(0, &opening);
        near(prompt.profile(0), [0.0, 0.5, 0.0, 0.5]);
        // Without the prompt's routes, the first two tokens tell.
        prompt.begin(0, &Opening::default());
        assert!(prompt.take_changed());
        for (expert, expected) in [(1, [0.0; 4]), (1, [0.0; 4]), (2, [0.0, 1.0, 0.0, 0.0])] {
            prompt.observe(&Token::new((0, 0, 0), &layers(), &[expert], &[]));
            near(prompt.profile(0), expected);
        }
        assert!(prompt.take_changed() && !prompt.take_changed());
        let mut both = [9.0; 4];
        prompt.begin(1, &opening);
        prompt.mean_profile(&mut both);
        near(&both, [0.0, 0.75, 0.0, 0.25]);
    }

    #[test]
    fn clusters_have_a_profile_each_and_routes_can_stand_for_embeddings() {
        let config =
            GuideConfig { from: ProfileFrom::Clusters, clusters: 2, ..GuideConfig::default() };
        let mut guide = Guide::new(4, &config);
        for embedding in [[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]] {
            converse(&mut guide, &embedding, if embedding[0] > 0.5 { &[0] } else { &[3] });
        }
        near(&converse(&mut guide, &[1.0, 0.2], &[0]), [1.0, 0.0, 0.0, 0.0]);
        near(&converse(&mut guide, &[0.2, 1.0], &[3]), [0.0, 0.0, 0.0, 1.0]);
        let config = GuideConfig { by: Likeness::Routes, k: 1, after: 1, ..GuideConfig::default() };
        let mut guide = Guide::new(4, &config);
        for experts in [[0, 1, 1], [2, 3, 3]] {
            converse(&mut guide, &[], &experts);
        }
        guide.begin(0, &Opening::default());
        for expert in [2, 0] {
            guide.observe(&Token::new((0, 0, 0), &layers(), &[expert], &[]));
        }
        near(guide.profile(0), [0.0, 0.0, 1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(guide.refused(), None);
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let mut guide = Guide::new(4, &GuideConfig::default());
        converse(&mut guide, &[1.0, 0.0], &[0]);
        converse(&mut guide, &[f32::NAN, 0.0], &[0]);
        assert!(guide.refused().is_some_and(|refused| refused.to_string().contains("NaN")));
        for wrong in [
            GuideConfig { k: 0, ..GuideConfig::default() },
            GuideConfig { store: 0, ..GuideConfig::default() },
            GuideConfig { clusters: usize::MAX, ..GuideConfig::default() },
            GuideConfig { after: 0, ..GuideConfig::default() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
