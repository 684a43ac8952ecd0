//! One way to run a cache: an eviction policy and a prefetch source.

use std::str::FromStr;

use hotset_policies::predict::PredictorSpec;
use hotset_policies::semantic::{GuideConfig, Likeness, ProfileFrom};
use hotset_policies::{Need, PolicySpec};
use hotset_sim::{Prefetch, PrefetchSource};
use serde::Serialize;

use crate::ExperimentError;

/// A way to run a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// As it was given: `POLICY` or `POLICY/PREFETCH`.
    pub name: String,
    /// The eviction policy.
    pub policy: PolicySpec,
    /// The prefetch source.
    pub prefetch: Prefetch,
}

/// What an arm is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What an engine could run.
    Candidate,
    /// What a candidate has to beat for its idea to be what helps.
    Control,
    /// What knows the future: how much there is to gain.
    Ceiling,
}

impl Arm {
    /// The baseline that every arm is compared with.
    #[must_use]
    pub fn lru() -> Self {
        let policy = PolicySpec::Lru(hotset_policies::NoConfig {});
        Self { name: "lru".to_owned(), policy, prefetch: Prefetch::None }
    }

    /// The guides of its policy and its predictor.
    fn guides(&self) -> impl Iterator<Item = GuideConfig> {
        let of_predictor = match &self.prefetch {
            Prefetch::By(forecast) => match &forecast.source {
                PrefetchSource::Learned(spec) => spec.guide(),
                PrefetchSource::Recorded | PrefetchSource::Oracle(_) => None,
            },
            Prefetch::None => None,
        };
        self.policy.guide().into_iter().chain(of_predictor)
    }

    /// Whether it goes by the routes of the prompt.
    #[must_use]
    pub fn reads_prompt_routes(&self) -> bool {
        self.guides().any(|guide| {
            guide.from == ProfileFrom::Prompt
                || guide.by == Likeness::Routes
                    && matches!(guide.from, ProfileFrom::Nearest | ProfileFrom::Clusters)
        })
    }

    /// What it is there for.
    #[must_use]
    pub fn role(&self) -> Role {
        let oracle = matches!(&self.prefetch, Prefetch::By(f) if matches!(f.source, PrefetchSource::Oracle(_)));
        let popularity = matches!(
            &self.prefetch,
            Prefetch::By(f) if matches!(f.source, PrefetchSource::Learned(PredictorSpec::Popularity(_)))
        );
        let from = |wanted: ProfileFrom| self.guides().any(|guide| guide.from == wanted);
        if oracle || self.policy.info().needs == Need::Future || from(ProfileFrom::Own) {
            Role::Ceiling
        } else if popularity || from(ProfileFrom::Mean) || from(ProfileFrom::Shuffled) {
            Role::Control
        } else {
            Role::Candidate
        }
    }
}

impl FromStr for Arm {
    type Err = ExperimentError;

    fn from_str(text: &str) -> Result<Self, ExperimentError> {
        let text = text.trim();
        let wrong = |reason: String| ExperimentError::Arm { text: text.to_owned(), reason };
        let (policy, prefetch) = text.split_once('/').unwrap_or((text, "none"));
        Ok(Self {
            name: text.to_owned(),
            policy: policy
                .parse()
                .map_err(|e: hotset_policies::PolicyError| wrong(e.to_string()))?,
            prefetch: prefetch.parse().map_err(|e: hotset_sim::SimError| wrong(e.to_string()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_read_and_know_what_they_are_for() {
        let role = |text: &str| text.parse::<Arm>().unwrap().role();
        assert_eq!("lru".parse::<Arm>().unwrap(), Arm::lru());
        assert_eq!(role("semantic:k=4/cross-layer:width=8"), Role::Candidate);
        assert_eq!(role("semantic:from=mean"), Role::Control);
        assert_eq!(role("lru/semantic:from=shuffled"), Role::Control);
        assert_eq!(role("lru/popularity"), Role::Control);
        assert_eq!(role("semantic:from=own"), Role::Ceiling);
        assert_eq!(role("lru/oracle:precision=0.5"), Role::Ceiling);
        assert_eq!(role("belady"), Role::Ceiling);
        let told = |text: &str| text.parse::<Arm>().unwrap_err().to_string();
        assert!(told("lruu").contains("there is no policy 'lruu'"));
        assert!(told("lru/magic").contains("there are none, ahead"));
    }
}
