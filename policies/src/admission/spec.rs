//! Admissions by name, as they follow a policy: `lru+upload-cap:n=2`.

use std::fmt;
use std::str::FromStr;

use super::{
    Admission, AdmissionInfo, Bypass, BypassConfig, TinyLfu, TinyLfuConfig, UploadCap,
    UploadCapConfig, bypass, tinylfu, upload_cap,
};
use crate::policy::{Event, Key, PoolShape};
use crate::registry::{Config, NoConfig, NoNeeds, PolicyError, nearest, read_config};

const ALWAYS: AdmissionInfo = AdmissionInfo {
    name: "always",
    summary: "every miss gets a slot (what policies do by themselves)",
    definition: "Every miss is handed to the policy.",
    source: "the default of every cache",
    needs: NoNeeds,
    parameters: &[],
};

/// All admissions.
pub static ADMISSIONS: &[&AdmissionInfo] =
    &[&ALWAYS, &upload_cap::INFO, &tinylfu::INFO, &bypass::INFO];

/// An admission with its parameters.
///
/// ```
/// use hotset_policies::{AdmissionSpec, PolicySpec};
///
/// let admission: AdmissionSpec = "upload-cap:n=3".parse()?;
/// let policy = "lru".parse::<PolicySpec>()?.with_admission(admission)?;
/// assert_eq!(policy, "lru+upload-cap:n=3".parse()?);
/// # Ok::<(), hotset_policies::PolicyError>(())
/// ```
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
            read_config(parameters)
                .map_err(|reason| PolicyError::Parameters { policy: info.name, reason })
        }
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        match name.trim() {
            "always" => read::<NoConfig>(&ALWAYS, parameters).map(|_| Self::Always),
            "upload-cap" => read(&upload_cap::INFO, parameters).map(Self::UploadCap),
            "tinylfu" => read(&tinylfu::INFO, parameters).map(Self::TinyLfu),
            "bypass" => read(&bypass::INFO, parameters).map(Self::Bypass),
            other => {
                let names = ADMISSIONS.iter().chain(crate::PLACEMENTS).map(|info| info.name);
                let near = nearest(other, names);
                Err(PolicyError::UnknownAdmission { name: other.to_owned(), near })
            }
        }
    }
}

impl AdmissionSpec {
    /// Bytes that the admission of such a pool allocates.
    #[must_use]
    pub fn memory(&self, pool: &PoolShape) -> u64 {
        match self {
            Self::Always | Self::Bypass(_) => 0,
            Self::UploadCap(_) => UploadCap::memory(pool),
            Self::TinyLfu(_) => TinyLfu::memory(pool),
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
    use crate::PolicySpec;

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
        assert_eq!(
            told("lru+upload"),
            "there is no admission 'upload'; did you mean 'upload-cap'?"
        );
        assert!(told("lru+upload-cap:n=0").contains("n = 0 admits nothing"));
        assert!(told("lru+tinylfu:sample=0").contains("sample = 0"));
        assert!(told("belady+bypass").contains("a bound decides by itself who comes in"));
        assert!(told("lru+bypass+bypass").contains("it has an admission already, so no 'bypass'"));
    }
}
