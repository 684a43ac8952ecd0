//! Conversation profiles for policies that go by them: a guide follows a replay's conversations.

use hotset_policies::PolicySpec;
use hotset_policies::predict::{Guess, Opening, Predictor, Token};
use hotset_policies::semantic::{Guide, GuideConfig, Likeness, MAX_DIMENSION};
use hotset_traces::Trace;

use super::feed::{Feed, Reads, train};
use crate::{PhaseFilter, SimError, Steps};

/// A guide that follows a replay.
pub(crate) struct ProfileFollower<'a> {
    feed: Feed<'a>,
    guide: Listener,
    profile: Vec<f32>,
}

impl<'a> ProfileFollower<'a> {
    /// Follows a replay of the steps that `phase` picks. `trained`: the guide as training left it; `None`:
    /// it begins knowing no conversation.
    ///
    /// # Errors
    /// The trace lacks embeddings, and `policy` looks for likeness in them.
    pub fn of(
        trace: &'a Trace,
        steps: &'a Steps,
        phase: PhaseFilter,
        policy: &GuidedPolicy<'_>,
        trained: Option<&Guide>,
    ) -> Result<Self, SimError> {
        let config = &policy.config;
        check(trace, Asker::policy(policy.name), Some(config))?;
        let keys = trace.shape().total_experts() as usize;
        Ok(Self {
            feed: Feed::new(trace, steps, phase, reads(config)),
            guide: Listener(match trained {
                Some(trained) => trained.clone(),
                None => Guide::new(keys, config),
            }),
            profile: vec![0.0; keys],
        })
    }

    /// A step begins.
    pub fn begin_step(&mut self, step: usize) {
        self.feed.begin_step(step, &mut self.guide);
    }

    /// The router has decided a layer for all tokens of the step.
    pub fn observe(&mut self, layer: usize) {
        self.feed.observe(layer, &mut self.guide);
    }

    /// What the running conversations are expected to use, if that has changed.
    pub fn changed(&mut self) -> Option<&[f32]> {
        if !self.guide.0.take_changed() {
            return None;
        }
        self.guide.0.mean_profile(&mut self.profile);
        Some(&self.profile)
    }
}

/// A policy that goes by conversation profiles, and how its guide finds them.
#[derive(Debug, Clone)]
pub struct GuidedPolicy<'a> {
    /// The policy's name, for errors.
    pub name: &'a str,
    /// Its guide.
    pub config: GuideConfig,
}

impl GuidedPolicy<'static> {
    /// A policy's guide; `None` for one that goes by no profiles.
    #[must_use]
    pub fn of(policy: &PolicySpec) -> Option<Self> {
        policy.guide().map(|config| Self { name: policy.info().name, config })
    }
}

/// What needs a column: a policy or a prefetcher, by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker<'a> {
    what: &'static str,
    name: &'a str,
}

impl<'a> Asker<'a> {
    pub fn policy(name: &'a str) -> Self {
        Self { what: "policy", name }
    }

    pub fn prefetcher(name: &'a str) -> Self {
        Self { what: "prefetcher", name }
    }
}

/// A guide that has seen a part of a trace.
///
/// # Errors
/// The trace lacks embeddings, and `policy` looks for likeness in them.
pub fn trained_guide(
    policy: &GuidedPolicy<'_>,
    trace: &Trace,
    steps: &Steps,
    phase: PhaseFilter,
) -> Result<Guide, SimError> {
    let config = &policy.config;
    check(trace, Asker::policy(policy.name), Some(config))?;
    let mut guide = Listener(Guide::new(trace.shape().total_experts() as usize, config));
    train(&mut guide, trace, steps, phase, reads(config));
    Ok(guide.0)
}

fn reads(config: &GuideConfig) -> Reads {
    Reads { weights: false, future: config.needs_future() }
}

/// Refuses a guide that looks for likeness in embeddings where there are none, or in vectors
/// longer than a store takes.
pub(super) fn check(
    trace: &Trace,
    asker: Asker<'_>,
    guide: Option<&GuideConfig>,
) -> Result<(), SimError> {
    let Asker { what, name } = asker;
    let Some(guide) = guide.filter(|guide| guide.needs_store()) else { return Ok(()) };
    let dimension = match (guide.by, trace.embeddings()) {
        (Likeness::Routes, _) => trace.shape().total_experts() as usize,
        (_, Some(embeddings)) => embeddings.dim,
        (by, None) if guide.needs_embeddings() => {
            let by = if by == Likeness::Out { "out" } else { "in" };
            let name = format!("{name}:by={by}");
            return Err(SimError::missing_column(trace, what, &name, "embeddings"));
        }
        (_, None) => return Ok(()),
    };
    if dimension > MAX_DIMENSION {
        let name = name.to_owned();
        return Err(SimError::TooWide { what, name, dimension, most: MAX_DIMENSION });
    }
    Ok(())
}

/// A guide listens as a predictor does; nobody asks it for guesses.
struct Listener(Guide);

impl Predictor for Listener {
    fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
        self.0.begin(lane, opening);
    }
    fn end_sequence(&mut self, lane: u32) {
        self.0.end(lane);
    }
    fn observe(&mut self, token: &Token<'_>) {
        self.0.observe(token);
    }
    fn predict(&mut self, _: &Token<'_>, _: u32, _: usize, _: &mut Vec<Guess>) {}
    fn set_learning(&mut self, learning: bool) {
        self.0.set_learning(learning);
    }
}

#[cfg(test)]
mod tests {
    use hotset_policies::semantic::ProfileFrom;
    use hotset_traces::{Ids, Shape, TraceBuilder};

    use super::*;

    #[test]
    fn vectors_that_no_store_takes_are_refused_before_the_replay() {
        let shape = Shape::uniform(2, 40_000, 1).unwrap();
        let trace = TraceBuilder::new("wide", shape, Ids::U16(vec![0, 1])).build().unwrap();
        let routes = GuideConfig { by: Likeness::Routes, ..GuideConfig::default() };
        let refused = check(&trace, Asker::policy("semantic"), Some(&routes)).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains("'semantic' compares conversations by 80000 numbers"),
            "{refused}"
        );
        let none = GuideConfig { from: ProfileFrom::Prompt, ..routes };
        assert!(check(&trace, Asker::policy("semantic"), Some(&none)).is_ok());
    }
}
