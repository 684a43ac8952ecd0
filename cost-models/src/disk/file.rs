//! A disk's profile as a file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{DEPTH, Disk, PLAUSIBLE, RequestTime};
use crate::error::ProfileError;
use crate::profile_file::read_profile;

impl Disk {
    /// Reads a profile.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML of these fields, or holds what no disk has.
    pub fn from_toml_path(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        Self::from_toml(&read_profile(path)?, &path.display().to_string())
    }

    /// Reads a profile's text; `origin` names it in errors.
    ///
    /// # Errors
    /// The text is not TOML of these fields, or holds what no disk has: all faults at once.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let file: DiskFile = toml::from_str(text).map_err(|source| ProfileError::Toml {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        file.disk(origin)
    }

    /// The profile as TOML.
    ///
    /// # Errors
    /// [`ProfileError::Write`].
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        let rate = |of: &RequestTime| RateFile {
            request_bytes: of.bytes,
            mb_per_s: of.bytes as f64 / 1e6 / (of.ps as f64 * 1e-12),
        };
        let file = DiskFile {
            name: self.name.clone(),
            source: self.source.clone(),
            latency_us: self.latency_ps as f64 / 1e6,
            queue_depth: self.queue_depth,
            request_bytes: self.request_bytes,
            through: self.through,
            rates: self.transfers.iter().map(rate).collect(),
        };
        toml::to_string(&file).map_err(|source| ProfileError::Write {
            origin: self.name.clone(),
            source: Box::new(source),
        })
    }
}

/// A profile as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskFile {
    name: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    latency_us: f64,
    #[serde(default = "depth")]
    queue_depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_bytes: Option<u64>,
    #[serde(default)]
    through: bool,
    rates: Vec<RateFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateFile {
    request_bytes: u64,
    mb_per_s: f64,
}

fn depth() -> u32 {
    DEPTH
}

impl DiskFile {
    fn disk(self, origin: &str) -> Result<Disk, ProfileError> {
        let mut faults = Vec::new();
        if !(0.0..=1e7).contains(&self.latency_us) {
            faults.push(format!("latency_us is {}, must be 0 to 10,000,000", self.latency_us));
        }
        if !(1..=65_536).contains(&self.queue_depth) {
            faults.push(format!("queue_depth is {}, must be 1 to 65536", self.queue_depth));
        }
        if self.request_bytes == Some(0) {
            faults.push("request_bytes is 0: leave it out where an expert is one request".into());
        }
        if self.rates.is_empty() {
            faults.push("rates is empty, must have a request_bytes and mb_per_s at least".into());
        }
        let mut transfers = Vec::new();
        for (index, rate) in self.rates.iter().enumerate() {
            if !(1..=1 << 40).contains(&rate.request_bytes) {
                let told = format!("rates[{index}].request_bytes is {}", rate.request_bytes);
                faults.push(format!("{told}, must be 1 to 2^40"));
            }
            if !PLAUSIBLE.contains(&(rate.mb_per_s * 1e6)) {
                let told = format!("rates[{index}].mb_per_s is {}", rate.mb_per_s);
                faults.push(format!("{told}, must be 0.1 to 10,000,000"));
            }
            let ps = (rate.request_bytes as f64 / rate.mb_per_s * 1e6).round();
            transfers.push(RequestTime { bytes: rate.request_bytes, ps: (ps as u64).max(1) });
        }
        let falls =
            |pair: &[RequestTime]| pair[0].bytes >= pair[1].bytes || pair[0].ps > pair[1].ps;
        if transfers.windows(2).any(falls) {
            let told = "rates must ascend in request_bytes, and a larger request take no less time";
            faults.push(told.to_owned());
        }
        if !faults.is_empty() {
            return Err(ProfileError::faults(origin, faults));
        }
        Ok(Disk {
            name: self.name,
            source: self.source,
            latency_ps: (self.latency_us * 1e6).round() as u64,
            queue_depth: self.queue_depth,
            request_bytes: self.request_bytes,
            transfers,
            through: self.through,
        })
    }
}
