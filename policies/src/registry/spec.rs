//! Policies as people write them, and with an admission in front.

use std::str::FromStr;

use super::{AnyPolicy, Need, PolicyError};
use crate::admission::{AdmissionSpec, Admitted};
use crate::eviction::PolicySpec;
use crate::placement::PlacementSpec;
use crate::policy::PoolShape;
use crate::semantic::GuideConfig;

impl FromStr for PolicySpec {
    type Err = PolicyError;

    /// Reads `name` or `name:key=value,key=value`, either with an admission and with what is placed
    /// before the run behind it: `name+admission:key=value+pin:50%`.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let Some((policy, suffix)) = text.rsplit_once('+') else { return Self::read_plain(text) };
        if !suffix.trim_start().starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Self::read_plain(text);
        }
        let placement = PlacementSpec::read(suffix);
        let policy: Self = policy.parse()?;
        match placement {
            Some(placement) => policy.with_placement(placement?),
            None if policy.admission() == AdmissionSpec::Always => {
                policy.with_admission(suffix.parse()?)
            }
            None => {
                let reason = format!("it has an admission already, so no '{}'", suffix.trim());
                Err(PolicyError::Parameters { policy: policy.info().name, reason })
            }
        }
    }
}

impl PolicySpec {
    /// Who makes the conversation profiles that the policy goes by; `None` for one that goes by
    /// none.
    #[must_use]
    pub fn guide(&self) -> Option<GuideConfig> {
        match self {
            Self::SemanticAge(config) => Some(config.guide()),
            Self::Admitted(policy, _) | Self::Placed(policy, _) => policy.guide(),
            _ => None,
        }
    }

    fn read_plain(text: &str) -> Result<Self, PolicyError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        Self::read(name.trim(), parameters)
    }

    /// Refuses a policy whose state for `pool` would take more than `limit` bytes. Nothing is
    /// allocated: ask before [`build`](Self::build), whose allocation aborts the process where the
    /// memory is not there.
    ///
    /// # Errors
    /// [`PolicyError::TooLarge`], with the size.
    pub fn check_memory(&self, pool: &PoolShape, limit: u64) -> Result<(), PolicyError> {
        let bytes = self.memory(pool);
        if bytes <= limit {
            return Ok(());
        }
        Err(PolicyError::TooLarge { policy: self.info().name, bytes, limit })
    }

    /// This policy behind an admission, in place of the one it has.
    ///
    /// # Errors
    /// The policy needs the future or training: it decides by itself who comes in.
    pub fn with_admission(self, admission: AdmissionSpec) -> Result<Self, PolicyError> {
        let plain = match self {
            Self::Placed(policy, placement) => {
                let policy = policy.with_admission(admission)?;
                return Ok(Self::Placed(Box::new(policy), placement));
            }
            Self::Admitted(policy, _) => *policy,
            policy => policy,
        };
        if admission == AdmissionSpec::Always {
            return Ok(plain);
        }
        if !plain.is_online() {
            let reason = format!("a bound decides by itself who comes in, so no '{admission}'");
            return Err(PolicyError::Parameters { policy: plain.info().name, reason });
        }
        Ok(Self::Admitted(Box::new(plain), admission))
    }

    /// The admission in front of it.
    #[must_use]
    pub fn admission(&self) -> AdmissionSpec {
        match self {
            Self::Admitted(_, admission) => *admission,
            Self::Placed(policy, _) => policy.admission(),
            _ => AdmissionSpec::Always,
        }
    }

    /// This policy with experts that are placed before the run, beside those that it has.
    ///
    /// # Errors
    /// The policy needs the future, or is placed by itself; the same is placed twice.
    pub fn with_placement(self, placement: PlacementSpec) -> Result<Self, PolicyError> {
        let name = self.info().name;
        let wrong = |reason| PolicyError::Parameters { policy: name, reason };
        match self {
            Self::Placed(policy, there) => match there.and(placement) {
                Some(both) => Ok(Self::Placed(policy, both)),
                None => Err(wrong(format!("'{placement}' is given twice"))),
            },
            Self::Static => Err(wrong(format!("it is placed already, so no '{placement}'"))),
            policy if policy.is_online() => Ok(Self::Placed(Box::new(policy), placement)),
            _ => Err(wrong(format!("a bound begins empty, so no '{placement}'"))),
        }
    }

    /// What it needs beside the experts of each event: counts, where something is placed before the
    /// run.
    #[must_use]
    pub fn needs(&self) -> Need {
        match self {
            Self::Placed(..) => Need::Training,
            _ => self.info().needs,
        }
    }

    /// Whether an engine could run it: it needs neither the future nor training.
    #[must_use]
    pub fn is_online(&self) -> bool {
        !matches!(self.needs(), Need::Future | Need::Training)
    }

    /// The policy of one pool behind `admission`.
    pub(crate) fn build_admitted(&self, admission: AdmissionSpec, pool: &PoolShape) -> AnyPolicy {
        let Some(inner) = self.build(pool) else {
            unreachable!("an admission stands only before policies that can be built");
        };
        match admission.build(pool) {
            Some(admission) => AnyPolicy::new(Admitted::new(inner, admission)),
            None => inner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eviction::POLICIES;

    #[test]
    fn every_policy_is_read_by_its_name_and_lists_parameters_that_it_reads() {
        for info in POLICIES {
            let spec: PolicySpec = info.name.parse().unwrap();
            assert_eq!(spec.info(), *info);
            assert!(info.summary.len() <= 60, "{} has too long a summary", info.name);
            for parameter in info.parameters {
                let text = format!("{}:{}={}", info.name, parameter.name, parameter.default);
                assert_eq!(text.parse(), Ok(spec.clone()), "{text}: the default stated is another");
            }
        }
        let mut names: Vec<_> = POLICIES.iter().map(|info| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), POLICIES.len());
    }

    #[test]
    fn unknown_names_and_parameters_are_told() {
        let told = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(told("lrru"), "there is no policy 'lrru'; did you mean 'lru'?");
        assert_eq!(told("oracle"), "there is no policy 'oracle'");
        assert_eq!(
            told("lru+upload-cpa"),
            "there is no admission 'upload-cpa'; did you mean 'upload-cap'?"
        );
        assert!(told("lru:size=3").starts_with("policy 'lru': unknown field `size`"));
    }
}
