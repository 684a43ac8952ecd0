//! The policies by name: what each is, what it needs, its parameters, and how it is built.

use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::AdmissionSpec;
use crate::semantic::GuideConfig;
use crate::{
    Arc, Car, ClassLru, ClassLruConfig, Clock, Dali, DaliConfig, Fifo, FineMoe, FineMoeConfig,
    HeatLru, HeatLruConfig, LeCar, LeCarConfig, LeastStale, Lfru, LfruConfig, Lfu, LfuDecay,
    LfuDecayConfig, Lirs, LirsConfig, Lru, LruK, LruKConfig, MoeInfinity, Mrs, MrsConfig, Mru,
    Policy, PoolShape, Random, RandomConfig, S3Fifo, S3FifoConfig, SemanticAge, SemanticAgeConfig,
    Sieve, Slru, Slru50, SlruConfig, Static, TdLogistic, TdLogisticConfig, TdTable, TdTableConfig,
    TwoQ, TwoQConfig, WTinyLfu, WTinyLfuConfig, params,
};

/// What a policy needs beside the experts that each event asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Nothing.
    Nothing,
    /// The router's weights.
    Weights,
    /// The prompts' embeddings, for profiles that whoever drives the policy makes.
    Embeddings,
    /// The rest of the trace: a bound, not something that an engine could run.
    Future,
    /// Counts from a part of the trace that it is not tested on.
    Training,
}

/// One parameter of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its key in `name:key=value`.
    pub name: &'static str,
    /// Its value where none is given.
    pub default: &'static str,
    /// What it means, with its unit and range.
    pub meaning: &'static str,
}

/// What people are told of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PolicyInfo {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The rule, exactly enough to be written again from it.
    pub definition: &'static str,
    /// Paper or system.
    pub source: &'static str,
    /// What it needs.
    pub needs: Need,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// The parameters of a policy that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// A policy's parameters.
pub trait Config: Default + for<'de> Deserialize<'de> {
    /// Checks the ranges that the types do not.
    ///
    /// # Errors
    /// Names the parameter, its value and its range.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Config for NoConfig {}

/// Checks that a parameter lies in its range.
pub(crate) fn share(name: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{name} = {value} is not within {} to {}", range.start(), range.end()))
}

/// Why a policy's name and parameters could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no policy '{name}'")]
    Unknown {
        /// The name given.
        name: String,
    },
    /// No admission has this name.
    #[error("there is no admission '{name}'")]
    UnknownAdmission {
        /// The name given.
        name: String,
    },
    /// Its parameters are wrong.
    #[error("policy '{policy}': {reason}")]
    Parameters {
        /// The policy.
        policy: &'static str,
        /// Which parameter and why.
        reason: String,
    },
}

/// Receives a policy's type and how to build it: replays are compiled once for each policy, with
/// no dynamic dispatch inside.
pub trait Visitor {
    /// What the visit gives.
    type Output;

    /// An online policy; `build` makes the policy of one pool.
    fn online<P: Policy + Send + 'static>(self, build: impl Fn(&PoolShape) -> P) -> Self::Output;

    /// A bound that is built from the recorded future.
    fn offline(self, bound: Bound) -> Self::Output;

    /// A policy that is built from the uses of each key of the pool in a training part of the
    /// trace, which the visitor counts.
    fn trained<P: Policy + Send>(self, build: impl Fn(&PoolShape, &[u64]) -> P) -> Self::Output;
}

/// The bounds, which need the future and are built by whoever holds the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Belady's MIN under forced admission.
    Belady,
    /// MIN with bypass, driven event by event through [`BypassBound`](crate::BypassBound).
    BeladyBypass,
}

macro_rules! registry {
    ($($variant:ident: $module:ident::$policy:ident($config:ty)),* $(,)?;
     $($trained:ident: $trained_info:path),* $(,)?;
     $($bound:ident: $bound_info:path),* $(,)?) => {
        /// A policy with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is described by its module's INFO")]
        pub enum PolicySpec {
            $($variant($config),)*
            $($trained,)*
            $($bound,)*
            /// An online policy behind an admission.
            Admitted(Box<PolicySpec>, AdmissionSpec),
        }

        impl PolicySpec {
            /// What people are told of this policy.
            #[must_use]
            pub fn info(&self) -> &'static PolicyInfo {
                match self {
                    $(Self::$variant(_) => &crate::$module::INFO,)*
                    $(Self::$trained => &$trained_info,)*
                    $(Self::$bound => &$bound_info,)*
                    Self::Admitted(policy, _) => policy.info(),
                }
            }

            /// Hands the policy's type to `visitor`.
            pub fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant(config) =>
                        visitor.online(|pool| $policy::configured(pool, config)),)*
                    $(Self::$trained => visitor.trained($trained::new),)*
                    $(Self::$bound => visitor.offline(Bound::$bound),)*
                    Self::Admitted(policy, admission) =>
                        visitor.online(|pool| admission.guard(pool, policy)),
                }
            }

            fn read(name: &str, parameters: &str) -> Result<Self, PolicyError> {
                $(if name == crate::$module::INFO.name {
                    return config(&crate::$module::INFO, parameters).map(Self::$variant);
                })*
                $(if name == $trained_info.name {
                    return config::<NoConfig>(&$trained_info, parameters).map(|_| Self::$trained);
                })*
                $(if name == $bound_info.name {
                    return config::<NoConfig>(&$bound_info, parameters).map(|_| Self::$bound);
                })*
                Err(PolicyError::Unknown { name: name.to_owned() })
            }
        }

        /// All policies, in the order in which they are listed.
        pub static POLICIES: &[&PolicyInfo] =
            &[$(&crate::$module::INFO,)* $(&$trained_info,)* $(&$bound_info,)*];
    };
}

registry! {
    Lru: lru::Lru(NoConfig),
    Mru: mru::Mru(NoConfig),
    Fifo: fifo::Fifo(NoConfig),
    Clock: clock::Clock(NoConfig),
    Random: random::Random(RandomConfig),
    Lfu: lfu::Lfu(NoConfig),
    LfuDecay: lfu_decay::LfuDecay(LfuDecayConfig),
    LruK: lru_k::LruK(LruKConfig),
    Slru: slru::Slru(SlruConfig),
    Slru50: slru_50::Slru50(NoConfig),
    TwoQ: two_q::TwoQ(TwoQConfig),
    Arc: arc::Arc(NoConfig),
    Car: car::Car(NoConfig),
    Lirs: lirs::Lirs(LirsConfig),
    S3Fifo: s3_fifo::S3Fifo(S3FifoConfig),
    Sieve: sieve::Sieve(NoConfig),
    WTinyLfu: w_tinylfu::WTinyLfu(WTinyLfuConfig),
    LeCar: lecar::LeCar(LeCarConfig),
    ClassLru: class_lru::ClassLru(ClassLruConfig),
    Lfru: lfru::Lfru(LfruConfig),
    LeastStale: least_stale::LeastStale(NoConfig),
    Dali: dali::Dali(DaliConfig),
    HeatLru: heat_lru::HeatLru(HeatLruConfig),
    MoeInfinity: moe_infinity::MoeInfinity(NoConfig),
    Mrs: mrs::Mrs(MrsConfig),
    FineMoe: finemoe::FineMoe(FineMoeConfig),
    SemanticAge: semantic_age::SemanticAge(SemanticAgeConfig),
    TdTable: td_table::TdTable(TdTableConfig),
    TdLogistic: td_logistic::TdLogistic(TdLogisticConfig);
    Static: crate::static_top::INFO;
    Belady: crate::belady::INFO,
    BeladyBypass: crate::belady_bypass::INFO,
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    /// Reads `name` or `name:key=value,key=value`, either with an admission behind it:
    /// `name+admission:key=value`.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        if let Some((policy, admission)) = text.rsplit_once('+')
            && admission.trim_start().starts_with(|first: char| first.is_ascii_alphabetic())
        {
            return Self::read_plain(policy)?.with_admission(admission.parse()?);
        }
        Self::read_plain(text)
    }
}

impl PolicySpec {
    /// Who makes the profiles that the policy goes by; `None` for one that goes by none.
    #[must_use]
    pub fn guide(&self) -> Option<GuideConfig> {
        match self {
            Self::SemanticAge(config) => Some(config.guide()),
            Self::Admitted(policy, _) => policy.guide(),
            _ => None,
        }
    }

    fn read_plain(text: &str) -> Result<Self, PolicyError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        Self::read(name.trim(), parameters)
    }
}

fn config<C: Config>(info: &'static PolicyInfo, parameters: &str) -> Result<C, PolicyError> {
    params::parse::<C>(parameters)
        .and_then(|config| config.check().map(|()| config))
        .map_err(|reason| PolicyError::Parameters { policy: info.name, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(told("lrru"), "there is no policy 'lrru'");
        assert!(told("lru:size=3").starts_with("policy 'lru': unknown field `size`"));
    }
}
