//! Link profiles as TOML files.
//!
//! A profile carries what its source measured; rates are calculated from that when it is loaded, so that a published
//! figure is data with a source and never a constant. Every value is checked: a profile that loads can be priced with.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::contention::Contention;
use crate::curve::BurstCurve;
use crate::error::ProfileError;
use crate::link::{HostKernel, Link, LinkKind, Submission, TransferCost, ps_per_mib};
use crate::picos::{MIB, Picos};

/// A link as its file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkFile {
    name: String,
    kind: LinkKind,
    description: String,
    source: String,
    date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    compute_ms_per_token: Option<f64>,
    cost: FileCost,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_kernel: Option<FileHostKernel>,
    #[serde(default, skip_serializing_if = "is_default")]
    contention: Contention,
    #[serde(default, skip_serializing_if = "is_default")]
    submission: Submission,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<BurstCurve>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The forms in which sources give a cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum FileCost {
    /// A run with experts held off the accelerator against one without: the share `top_k / experts` of the offloaded
    /// bytes moves each token, and the token takes so much longer.
    AddedTime { offloaded_gib: f64, top_k: u32, experts: u32, ms_per_token_added: f64 },
    /// A plain bandwidth, in one of the two units.
    Bandwidth { gib_s: Option<f64>, gb_s: Option<f64> },
    /// Fixed cost and rate, as they are.
    Affine { fixed_ps: u64, ps_per_mib: u64 },
    /// A curve, as it is.
    Curve(BurstCurve),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHostKernel {
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ps_per_mib: Option<u64>,
    #[serde(default, skip_serializing_if = "crate::link::is_zero")]
    more_ps_per_mib: u64,
}

impl Link {
    /// From the text of a TOML profile.
    ///
    /// # Errors
    /// [`ProfileError`] when the text is not TOML of these fields or a value is impossible.
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileError> {
        LinkFile::parse(text, "(text)")?.into_link()
    }

    /// From a TOML profile's file.
    ///
    /// # Errors
    /// [`ProfileError`], as [`Link::from_toml_str`], or when the file cannot be read.
    pub fn from_toml_path(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = crate::read_profile(path)?;
        LinkFile::parse(&text, &path.display().to_string())?.into_link()
    }

    /// As a TOML profile, which reads back to an equal link. Rates that a source's figures gave are written as rates.
    ///
    /// # Errors
    /// [`ProfileError::Write`] when a figure does not fit TOML's 63-bit integers.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        LinkFile::from(self).to_toml(&self.name)
    }
}

impl LinkFile {
    pub(crate) fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        toml::from_str(text).map_err(|source| ProfileError::Toml {
            origin: origin.into(),
            source: Box::new(source),
        })
    }

    pub(crate) fn to_toml(&self, origin: &str) -> Result<String, ProfileError> {
        toml::to_string(self).map_err(|source| ProfileError::Write {
            origin: origin.into(),
            source: Box::new(source),
        })
    }

    pub(crate) fn into_link(self) -> Result<Link, ProfileError> {
        let name = self.name;
        for (field, text) in [("source", &self.source), ("date", &self.date), ("name", &name)] {
            if text.trim().is_empty() {
                return Err(ProfileError::invalid(&name, field, "is empty"));
            }
        }
        self.contention.validate(&name)?;
        if let Some(rounds) = &self.rounds {
            rounds.validate(&name, "rounds")?;
        }
        let compute_per_token = self
            .compute_ms_per_token
            .map(|ms| positive(&name, "compute_ms_per_token", ms, 1e7).map(Picos::from_ms_f64))
            .transpose()?;
        let host_kernel =
            self.host_kernel.map(|kernel| kernel.into_host_kernel(&name)).transpose()?;
        Ok(Link {
            cost: self.cost.into_cost(&name)?,
            name,
            kind: self.kind,
            description: self.description,
            source: self.source,
            date: self.date,
            compute_per_token,
            host_kernel,
            contention: self.contention,
            submission: self.submission,
            rounds: self.rounds,
        })
    }
}

impl From<&Link> for LinkFile {
    fn from(link: &Link) -> Self {
        Self {
            name: link.name.clone(),
            kind: link.kind,
            description: link.description.clone(),
            source: link.source.clone(),
            date: link.date.clone(),
            compute_ms_per_token: link.compute_per_token.map(Picos::as_ms_f64),
            cost: match &link.cost {
                TransferCost::Affine { fixed_ps, ps_per_mib } => {
                    FileCost::Affine { fixed_ps: *fixed_ps, ps_per_mib: *ps_per_mib }
                }
                TransferCost::Curve(curve) => FileCost::Curve(curve.clone()),
            },
            host_kernel: link.host_kernel.map(|kernel| FileHostKernel {
                gb_s: None,
                ps_per_mib: Some(kernel.ps_per_mib),
                more_ps_per_mib: kernel.more_ps_per_mib,
            }),
            contention: link.contention.clone(),
            submission: link.submission,
            rounds: link.rounds.clone(),
        }
    }
}

impl FileCost {
    fn into_cost(self, name: &str) -> Result<TransferCost, ProfileError> {
        match self {
            Self::AddedTime { offloaded_gib, top_k, experts, ms_per_token_added } => {
                let gib = positive(name, "cost.added_time.offloaded_gib", offloaded_gib, 1e6)?;
                let added =
                    positive(name, "cost.added_time.ms_per_token_added", ms_per_token_added, 1e7)?;
                if top_k == 0 || top_k > experts {
                    return Err(ProfileError::invalid(
                        name,
                        "cost.added_time.top_k",
                        format!("is {top_k} of {experts} experts, must be 1 to {experts}"),
                    ));
                }
                let moved_mib = gib * 1024.0 * f64::from(top_k) / f64::from(experts);
                let ps_per_mib = Picos::from_ms_f64(added / moved_mib).0;
                Ok(TransferCost::Affine { fixed_ps: 0, ps_per_mib })
            }
            Self::Bandwidth { gib_s, gb_s } => {
                let bytes_s = bytes_per_second(name, "cost.bandwidth", gib_s, gb_s)?;
                Ok(TransferCost::Affine { fixed_ps: 0, ps_per_mib: ps_per_mib(bytes_s) })
            }
            Self::Affine { fixed_ps, ps_per_mib } => {
                if ps_per_mib == 0 {
                    return Err(ProfileError::invalid(name, "cost.affine.ps_per_mib", "is zero"));
                }
                Ok(TransferCost::Affine { fixed_ps, ps_per_mib })
            }
            Self::Curve(curve) => {
                curve.validate(name, "cost.curve")?;
                Ok(TransferCost::Curve(curve))
            }
        }
    }
}

impl FileHostKernel {
    fn into_host_kernel(self, name: &str) -> Result<HostKernel, ProfileError> {
        let more_ps_per_mib = self.more_ps_per_mib;
        match (self.gb_s, self.ps_per_mib) {
            (Some(_), None) => {
                let bytes_s = bytes_per_second(name, "host_kernel", None, self.gb_s)?;
                Ok(HostKernel { ps_per_mib: ps_per_mib(bytes_s), more_ps_per_mib })
            }
            (None, Some(ps_per_mib)) if ps_per_mib > 0 => {
                Ok(HostKernel { ps_per_mib, more_ps_per_mib })
            }
            _ => Err(ProfileError::invalid(
                name,
                "host_kernel",
                "needs either gb_s or a positive ps_per_mib",
            )),
        }
    }
}

/// Exactly one of the two units, positive and under 1 PB/s, in bytes a second.
fn bytes_per_second(
    name: &str,
    field: &str,
    gib_s: Option<f64>,
    gb_s: Option<f64>,
) -> Result<f64, ProfileError> {
    match (gib_s, gb_s) {
        (Some(gib), None) => {
            Ok(positive(name, &format!("{field}.gib_s"), gib, 1e6)? * (MIB as f64 * 1024.0))
        }
        (None, Some(gb)) => Ok(positive(name, &format!("{field}.gb_s"), gb, 1e6)? * 1e9),
        _ => Err(ProfileError::invalid(name, field, "needs exactly one of gib_s and gb_s")),
    }
}

fn positive(name: &str, field: &str, value: f64, limit: f64) -> Result<f64, ProfileError> {
    if value.is_finite() && value > 0.0 && value <= limit {
        Ok(value)
    } else {
        let why = format!("is {value}, must be over 0 and at most {limit}");
        Err(ProfileError::invalid(name, field, why))
    }
}

#[cfg(test)]
mod tests;
