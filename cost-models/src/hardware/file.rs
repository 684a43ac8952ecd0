//! Machines as TOML files.
//!
//! Each figure is a table with its value in a unit of its own choosing, its basis and its source; the link is a
//! built-in one by name, or a bandwidth. Whatever is left out is an error that says so, or a labelled assumption.

use std::path::Path;

use serde::Deserialize;

use super::{Basis, Figure, Hardware};
use crate::builtin::find_link;
use crate::error::ProfileError;
use crate::link::{Link, LinkKind};
use crate::picos::MIB;

/// No memory of one machine is larger, and floats hold every size below it.
const MAX_BYTES: f64 = (1u64 << 53) as f64;
/// No memory or wire is faster.
const MAX_RATE: f64 = 1e15;
const MAX_ACCELERATORS: u32 = 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareFile {
    name: String,
    description: String,
    #[serde(default = "one")]
    accelerators: u32,
    #[serde(default = "one")]
    accelerators_per_host: u32,
    #[serde(default)]
    unified: bool,
    memory: SizeFile,
    usable_share: ShareFile,
    host_memory: Option<SizeFile>,
    host_reserved: Option<SizeFile>,
    context: Option<SizeFile>,
    memory_rate: RateFile,
    host_rate: Option<RateFile>,
    disk_rate: Option<RateFile>,
    peer_rate: Option<RateFile>,
    host_kernel_rate: Option<RateFile>,
    link: LinkChoice,
    profile: Option<String>,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeFile {
    gib: Option<f64>,
    gb: Option<f64>,
    mib: Option<f64>,
    bytes: Option<u64>,
    basis: Basis,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShareFile {
    value: f64,
    basis: Basis,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateFile {
    gib_s: Option<f64>,
    gb_s: Option<f64>,
    basis: Basis,
    source: String,
}

/// A built-in link, or a bandwidth.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkChoice {
    name: String,
    kind: Option<LinkKind>,
    gib_s: Option<f64>,
    gb_s: Option<f64>,
    source: Option<String>,
}

impl Hardware {
    /// From the text of a TOML file.
    ///
    /// # Errors
    /// [`ProfileError`] when the text is not TOML of these fields or a value is impossible.
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileError> {
        parse(text, "(text)")
    }

    /// From a TOML file.
    ///
    /// # Errors
    /// [`ProfileError`], as [`Hardware::from_toml_str`], or when the file cannot be read.
    pub fn from_toml_path(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProfileError::Io { path: path.into(), source })?;
        parse(&text, &path.display().to_string())
    }
}

fn parse(text: &str, origin: &str) -> Result<Hardware, ProfileError> {
    let file: HardwareFile = toml::from_str(text)
        .map_err(|source| ProfileError::Toml { origin: origin.into(), source: Box::new(source) })?;
    file.into_hardware()
}

impl HardwareFile {
    fn into_hardware(self) -> Result<Hardware, ProfileError> {
        let name = self.name.as_str();
        if name.trim().is_empty() {
            return Err(ProfileError::invalid(name, "name", "is empty"));
        }
        for (field, count) in [
            ("accelerators", self.accelerators),
            ("accelerators_per_host", self.accelerators_per_host),
        ] {
            if !(1..=MAX_ACCELERATORS).contains(&count) {
                let why = format!("is {count}, must be 1 to {MAX_ACCELERATORS}");
                return Err(ProfileError::invalid(name, field, why));
            }
        }
        let memory = self.memory.into_figure(name, "memory")?;
        let memory_rate = self.memory_rate.into_figure(name, "memory_rate")?;
        let assumed =
            |value, why: &str| Figure { value, basis: Basis::Assumed, source: why.to_owned() };
        let (host_memory, host_rate) = match (self.host_memory, self.host_rate, self.unified) {
            (None, None, true) => (memory.clone(), memory_rate.clone()),
            (Some(_), _, true) | (_, Some(_), true) => {
                let why = "belongs to a machine that is not unified: there is one memory";
                return Err(ProfileError::invalid(name, "host_memory or host_rate", why));
            }
            (Some(size), Some(rate), false) => {
                (size.into_figure(name, "host_memory")?, rate.into_figure(name, "host_rate")?)
            }
            (_, _, false) => {
                let why = "are both needed where the machine is not unified";
                return Err(ProfileError::invalid(name, "host_memory and host_rate", why));
            }
        };
        let size = |size: Option<SizeFile>, field, otherwise: u64, why| match size {
            Some(size) => size.into_figure(name, field),
            None => Ok(assumed(otherwise, why)),
        };
        let host_reserved = size(
            self.host_reserved,
            "host_reserved",
            8_000_000_000,
            "assumption: 8 GB for the system, as capacity planners leave",
        )?;
        let context = size(
            self.context,
            "context",
            552_402_944,
            "assumption: as measured on an H200 (CUDA context alone)",
        )?;
        let rate = |rate: Option<RateFile>, field| {
            rate.map(|rate| rate.into_figure(name, field)).transpose()
        };
        Ok(Hardware {
            accelerators: self.accelerators,
            per_host: self.accelerators_per_host,
            unified: self.unified,
            usable_share: self.usable_share.into_figure(name)?,
            host_memory,
            host_reserved,
            context,
            host_rate,
            disk_rate: rate(self.disk_rate, "disk_rate")?,
            peer_rate: rate(self.peer_rate, "peer_rate")?,
            host_kernel_rate: rate(self.host_kernel_rate, "host_kernel_rate")?,
            link: self.link.into_link(name)?,
            profile: self.profile,
            memory,
            memory_rate,
            description: self.description,
            name: self.name,
        })
    }
}

fn sourced(name: &str, field: &str, source: String) -> Result<String, ProfileError> {
    if source.trim().is_empty() {
        return Err(ProfileError::invalid(name, &format!("{field}.source"), "is empty"));
    }
    Ok(source)
}

fn bounded(name: &str, field: &str, value: f64, most: f64) -> Result<u64, ProfileError> {
    if value.is_finite() && value >= 1.0 && value <= most {
        Ok(value.round() as u64)
    } else {
        let why = format!("is {value}, must be 1 to {most}");
        Err(ProfileError::invalid(name, field, why))
    }
}

impl SizeFile {
    fn into_figure(self, name: &str, field: &str) -> Result<Figure<u64>, ProfileError> {
        let given = [
            self.gib.map(|gib| gib * (MIB * 1024) as f64),
            self.gb.map(|gb| gb * 1e9),
            self.mib.map(|mib| mib * MIB as f64),
            self.bytes.map(|bytes| bytes as f64),
        ];
        let mut given = given.into_iter().flatten();
        let (Some(bytes), None) = (given.next(), given.next()) else {
            let why = "needs exactly one of gib, gb, mib and bytes";
            return Err(ProfileError::invalid(name, field, why));
        };
        let value = bounded(name, field, bytes, MAX_BYTES)?;
        Ok(Figure { value, basis: self.basis, source: sourced(name, field, self.source)? })
    }
}

impl ShareFile {
    fn into_figure(self, name: &str) -> Result<Figure<f64>, ProfileError> {
        if !(self.value > 0.0 && self.value <= 1.0) {
            let why = format!("is {}, must be over 0 and at most 1", self.value);
            return Err(ProfileError::invalid(name, "usable_share", why));
        }
        let source = sourced(name, "usable_share", self.source)?;
        Ok(Figure { value: self.value, basis: self.basis, source })
    }
}

fn bytes_a_second(
    name: &str,
    field: &str,
    gib_s: Option<f64>,
    gb_s: Option<f64>,
) -> Result<u64, ProfileError> {
    match (gib_s, gb_s) {
        (Some(gib), None) => bounded(name, field, gib * (MIB * 1024) as f64, MAX_RATE),
        (None, Some(gb)) => bounded(name, field, gb * 1e9, MAX_RATE),
        _ => Err(ProfileError::invalid(name, field, "needs exactly one of gib_s and gb_s")),
    }
}

impl RateFile {
    fn into_figure(self, name: &str, field: &str) -> Result<Figure<u64>, ProfileError> {
        let value = bytes_a_second(name, field, self.gib_s, self.gb_s)?;
        Ok(Figure { value, basis: self.basis, source: sourced(name, field, self.source)? })
    }
}

impl LinkChoice {
    fn into_link(self, name: &str) -> Result<Link, ProfileError> {
        if self.gib_s.is_none() && self.gb_s.is_none() {
            return find_link(&self.name).map_err(|error| {
                ProfileError::invalid(name, "link.name", format!("is an {error}"))
            });
        }
        let rate = bytes_a_second(name, "link", self.gib_s, self.gb_s)?;
        let ps_per_mib = (MIB as f64 / rate as f64 * 1e12).round() as u64;
        let mut link = Link::affine(self.name, 0, ps_per_mib.max(1));
        link.kind = self.kind.unwrap_or(LinkKind::Other);
        link.source = sourced(name, "link", self.source.unwrap_or_default())?;
        Ok(link)
    }
}
