//! Admissions by name, as they follow a policy: `lru+upload-cap:n=2`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::{
    Admission, Admitted, Bypass, BypassConfig, TinyLfu, TinyLfuConfig, UploadCap, UploadCapConfig,
    bypass, tinylfu, upload_cap,
};
use crate::{
    AnyPolicy, Config, Event, Key, Need, Parameter, PolicyError, PolicySpec, PoolShape, params,
};

/// What people are told of an admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AdmissionInfo {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The rule, exactly enough to be written again from it.
    pub definition: &'static str,
    /// Paper or system.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

const ALWAYS: AdmissionInfo = AdmissionInfo {
    name: "always",
    summary: "every miss gets a slot (what policies do by themselves)",
    definition: "Every miss is handed to the policy.",
    source: "the default of every cache",
    parameters: &[],
};

/// All admissions.
pub static ADMISSIONS: &[&AdmissionInfo] =
    &[&ALWAYS, &upload_cap::INFO, &tinylfu::INFO, &bypass::INFO];

/// An admission with its parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdmissionSpec {
    /// Every miss gets a slot.
    #[default]
    Always,
    /// At most so many a layer a step.
    UploadCap(UploadCapConfig),
    /// Only in place of somebody asked for less often.
    TinyLfu(TinyLfuConfig),
    /// Once full, only every n-th.
    Bypass(BypassConfig),
}

impl AdmissionSpec {
    /// What people are told of it.
    #[must_use]
    pub fn info(&self) -> &'static AdmissionInfo {
        match self {
            Self::Always => &ALWAYS,
            Self::UploadCap(_) => &upload_cap::INFO,
            Self::TinyLfu(_) => &tinylfu::INFO,
            Self::Bypass(_) => &bypass::INFO,
        }
    }

    /// The admission of one pool; `None` for `always`, which needs none.
    #[must_use]
    pub fn build(&self, pool: &PoolShape) -> Option<AnyAdmission> {
        Some(match self {
            Self::Always => return None,
            Self::UploadCap(config) => AnyAdmission::UploadCap(UploadCap::new(pool, config)),
            Self::TinyLfu(config) => AnyAdmission::TinyLfu(TinyLfu::new(pool, config)),
            Self::Bypass(config) => AnyAdmission::Bypass(Bypass::new(config)),
        })
    }
}

impl AdmissionSpec {
    /// The policy of one pool behind this admission.
    pub(crate) fn guard(self, pool: &PoolShape, policy: &PolicySpec) -> AnyPolicy {
        let Some(inner) = policy.build(pool) else {
            unreachable!("an admission stands only before policies that can be built");
        };
        match self.build(pool) {
            Some(admission) => AnyPolicy::new(Admitted::new(pool, inner, admission)),
            None => inner,
        }
    }
}

impl PolicySpec {
    /// This policy behind an admission, in place of the one it has.
    ///
    /// # Errors
    /// The policy needs the future or training: it decides by itself who comes in.
    pub fn with_admission(self, admission: AdmissionSpec) -> Result<Self, PolicyError> {
        let plain = match self {
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
            _ => AdmissionSpec::Always,
        }
    }

    /// Whether an engine could run it: it needs neither the future nor training.
    #[must_use]
    pub fn is_online(&self) -> bool {
        !matches!(self.info().needs, Need::Future | Need::Training)
    }
}

impl fmt::Display for AdmissionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => write!(f, "always"),
            Self::UploadCap(config) => write!(f, "upload-cap:n={}", config.n),
            Self::TinyLfu(config) => write!(f, "tinylfu:sample={}", config.sample),
            Self::Bypass(config) => write!(f, "bypass:every={}", config.every),
        }
    }
}

impl FromStr for AdmissionSpec {
    type Err = PolicyError;

    /// Reads `name` or `name:key=value`.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        fn read<C: Config>(info: &AdmissionInfo, parameters: &str) -> Result<C, PolicyError> {
            params::parse::<C>(parameters)
                .and_then(|config| config.check().map(|()| config))
                .map_err(|reason| PolicyError::Parameters { policy: info.name, reason })
        }
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        match name.trim() {
            "always" => read::<crate::NoConfig>(&ALWAYS, parameters).map(|_| Self::Always),
            "upload-cap" => read(&upload_cap::INFO, parameters).map(Self::UploadCap),
            "tinylfu" => read(&tinylfu::INFO, parameters).map(Self::TinyLfu),
            "bypass" => read(&bypass::INFO, parameters).map(Self::Bypass),
            other => Err(PolicyError::UnknownAdmission { name: other.to_owned() }),
        }
    }
}

/// Any admission behind one type.
#[derive(Debug, Clone)]
pub enum AnyAdmission {
    /// See [`UploadCap`].
    UploadCap(UploadCap),
    /// See [`TinyLfu`].
    TinyLfu(TinyLfu),
    /// See [`Bypass`].
    Bypass(Bypass),
}

macro_rules! each {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::UploadCap($inner) => $call,
            Self::TinyLfu($inner) => $call,
            Self::Bypass($inner) => $call,
        }
    };
}

impl Admission for AnyAdmission {
    fn begin_step(&mut self) {
        each!(self, inner => inner.begin_step());
    }
    fn begin_event(&mut self, event: &Event<'_>) {
        each!(self, inner => inner.begin_event(event));
    }
    fn wants(&mut self, key: Key, full: bool) -> bool {
        each!(self, inner => inner.wants(key, full))
    }
    fn may_displace(&self, key: Key, victim: Key) -> bool {
        each!(self, inner => inner.may_displace(key, victim))
    }
    fn entered(&mut self, key: Key) {
        each!(self, inner => inner.entered(key));
    }
    fn left(&mut self, key: Key) {
        each!(self, inner => inner.left(key));
    }
    fn set_capacity(&mut self, capacity: u32) {
        each!(self, inner => inner.set_capacity(capacity));
    }
    fn validate(&self, resident: impl Fn(Key) -> bool) -> Result<(), String> {
        each!(self, inner => inner.validate(resident))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_admission_is_read_by_its_name_with_the_defaults_stated() {
        for info in ADMISSIONS {
            let spec: AdmissionSpec = info.name.parse().unwrap();
            assert_eq!(spec.info(), *info);
            assert_eq!(spec.to_string().parse(), Ok(spec));
            assert!(info.summary.len() <= 60, "{} has too long a summary", info.name);
            for parameter in info.parameters {
                let text = format!("{}:{}={}", info.name, parameter.name, parameter.default);
                assert_eq!(text.parse(), Ok(spec), "{text}: the default stated is another");
            }
        }
    }

    #[test]
    fn an_admission_follows_a_policy() {
        let spec: PolicySpec = "lru+upload-cap:n=3".parse().unwrap();
        assert_eq!(spec.info().name, "lru");
        assert_eq!(spec.admission(), AdmissionSpec::UploadCap(UploadCapConfig { n: 3 }));
        assert_eq!("lru+always".parse(), Ok("lru".parse::<PolicySpec>().unwrap()));
        let told = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(told("lru+upload"), "there is no admission 'upload'");
        assert!(told("lru+upload-cap:n=0").contains("n = 0 admits nothing"));
        assert!(told("lru+tinylfu:sample=0").contains("sample = 0"));
        assert!(told("belady+bypass").contains("a bound decides by itself who comes in"));
        assert!(told("lru+bypass+bypass").contains("no policy 'lru+bypass'"));
    }
}
