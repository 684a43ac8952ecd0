//! Hosts: memory as people write it, `ddr5-6000x2:96GB`, or a processor's name.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use toml::{Table, Value};

use super::{Basis, Figure, Hardware};
use crate::byte_size::ByteSize;

/// Less is a size whose unit was forgotten.
const LEAST_MEMORY: u64 = 1 << 20;

const HOSTS: &str = include_str!("../../hardware/hosts.toml");

/// A kind of host that comes with the crate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The name that [`HostSpec`] takes.
    pub name: String,
    /// One line for a person.
    pub description: String,
    /// The fastest memory that a socket is specified for, as `ddr5-4800x12`.
    pub memory: String,
    /// Generation of PCI Express that it is specified for.
    pub pcie: u32,
    /// What processors of it are called, `#` for a digit.
    called: Vec<String>,
}

#[derive(Deserialize)]
struct Hosts {
    host: Vec<Host>,
}

/// Every host that comes with the crate.
///
/// # Panics
/// Never: a test loads them all.
#[must_use]
pub fn builtin_hosts() -> Vec<Host> {
    let hosts: Hosts = toml::from_str(HOSTS).expect("built-in hosts are TOML");
    hosts.host
}

/// The host whose processor a text names, as `2x EPYC 9355`; the longest name decides.
#[must_use]
pub fn host_of_processor(text: &str) -> Option<Host> {
    let text = text.to_lowercase().replace("(r)", "").replace("(tm)", "");
    let length =
        |host: &Host| host.called.iter().filter(|p| found(&text, p)).map(String::len).max();
    let known = builtin_hosts().into_iter();
    known.filter_map(|host| Some((length(&host)?, host))).max_by_key(|found| found.0).map(|f| f.1)
}

/// Whether the pattern, `#` for a digit, stands anywhere in the text.
fn found(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let alike = |(have, want): (&u8, &u8)| have == want || (*want == b'#' && have.is_ascii_digit());
    text.windows(pattern.len()).any(|window| window.iter().zip(pattern).all(alike))
}

/// Memory of one socket: type, transfers a second in millions, channels, and how much where it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    what: String,
    bytes_per_second: u64,
    memory: Option<u64>,
}

impl HostSpec {
    /// Bytes a second, nominal.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.bytes_per_second
    }

    /// Bytes of memory, where they were given.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    fn source(&self) -> String {
        format!("calculated: {}, nominal", self.what)
    }

    pub(super) fn rate_value(&self) -> Value {
        let mut table = Table::new();
        table.insert("gb_s".into(), (self.bytes_per_second as f64 / 1e9).into());
        table.insert("basis".into(), "calculated".into());
        table.insert("source".into(), self.source().into());
        Value::Table(table)
    }

    pub(super) fn memory_value(&self) -> Option<Value> {
        let mut table = Table::new();
        table.insert("bytes".into(), i64::try_from(self.memory?).ok()?.into());
        table.insert("basis".into(), "published".into());
        table.insert("source".into(), format!("as given: {self}").into());
        Some(Value::Table(table))
    }
}

impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.what)
    }
}

impl FromStr for HostSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, memory) = match text.trim().split_once(':') {
            Some((what, memory)) => (what.trim(), Some(memory)),
            None => (text.trim(), None),
        };
        let memory = memory.map(|size| size.parse::<ByteSize>()).transpose();
        let memory = memory.map_err(|error| format!("is '{text}': {error}"))?.map(ByteSize::bytes);
        if memory.is_some_and(|bytes| bytes < LEAST_MEMORY) {
            return Err(format!("is '{text}': give the memory with its unit, as in {what}:96GB"));
        }
        if let Some(bytes_per_second) = channels(what) {
            return Ok(Self { what: what.to_owned(), bytes_per_second, memory });
        }
        let hosts = builtin_hosts();
        let Some(host) = hosts.iter().find(|host| host.name.eq_ignore_ascii_case(what)) else {
            let near = hotset_names::nearest(what, hosts.iter().map(|host| host.name.as_str()));
            let near = hotset_names::suggestion(near);
            return Err(format!(
                "is '{text}': give type, speed and channels of its memory and how much there is, as ddr5-6000x2:96GB, \
                 or a processor's family, as epyc-genoa:768GB (see the list of machines){near}"
            ));
        };
        let bytes_per_second = channels(&host.memory).unwrap_or(1);
        let what = format!("{} ({})", host.name, host.memory);
        Ok(Self { what, bytes_per_second, memory })
    }
}

/// Bytes a second of `ddr5-6000x2`: 8 bytes a transfer and channel.
fn channels(text: &str) -> Option<u64> {
    let lower = text.to_lowercase();
    let (kind, rest) = lower.split_once('-')?;
    if !["ddr3", "ddr4", "ddr5", "ddr6", "lpddr4x", "lpddr5", "lpddr5x"].contains(&kind) {
        return None;
    }
    let (speed, channels) = rest.split_once('x').unwrap_or((rest, "1"));
    let (speed, channels): (u64, u64) = (speed.parse().ok()?, channels.parse().ok()?);
    let plausible = (800..=20_000).contains(&speed) && (1..=64).contains(&channels);
    plausible.then(|| speed * 1_000_000 * 8 * channels)
}

/// Hosts above this nominal rate have many channels.
const FEW_CHANNELS: f64 = 115e9;

/// What programs reach of a nominal rate, bytes a second: of two channels 95% up to 80 GB/s and half of what is above
/// (88 of 102 GB/s were measured on a Ryzen 9 9950X), of many channels three quarters (225 of 307 on a Threadripper PRO).
#[must_use]
pub fn reached(nominal: f64) -> f64 {
    match nominal {
        many if many > FEW_CHANNELS => 0.75 * many,
        few if few > 80e9 => 76e9 + 0.5 * (few - 80e9),
        slow => 0.95 * slow,
    }
}

impl Hardware {
    /// The rate of host memory that programs reach: as measured, or a share of the nominal one.
    #[must_use]
    pub fn reached_host_rate(&self) -> f64 {
        let rate = self.host_rate.value as f64;
        if self.host_rate.basis == Basis::Measured { rate } else { reached(rate) }
    }

    /// The same machine with other host memory.
    ///
    /// # Errors
    /// What a unified machine has instead: one whose only memory is the host's (`cpu`) takes it.
    pub fn with_host(mut self, host: &HostSpec) -> Result<Self, String> {
        let published = Basis::Published;
        let size = |value| Figure { value, basis: published, source: format!("as given: {host}") };
        let rate = Figure { value: host.rate(), basis: Basis::Calculated, source: host.source() };
        if self.unified && self.architecture.as_deref() != Some("cpu") {
            return Err(format!(
                "is for a machine whose host has memory of its own: {} has one memory of {:.0} GB",
                self.name,
                self.memory.value as f64 / 1e9
            ));
        }
        if let Some(memory) = host.memory() {
            self.host_memory = size(memory);
        }
        self.host_rate = rate;
        if self.unified {
            (self.memory, self.memory_rate) = (self.host_memory.clone(), self.host_rate.clone());
        }
        Ok(self)
    }

    /// The same machine with storage that gives so many bytes a second.
    #[must_use]
    pub fn with_disk(mut self, bytes_per_second: u64) -> Self {
        let source = "as given".to_owned();
        let figure = Figure { value: bytes_per_second, basis: Basis::Published, source };
        self.disk_rate = Some(figure);
        self
    }
}

/// Bytes a second of a text as `7GB/s`.
///
/// # Errors
/// What such a text looks like.
pub fn rate(text: &str) -> Result<u64, String> {
    super::figures::rate_of(text, "it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_as_people_do() {
        let host: HostSpec = "ddr5-6000x2:96GB".parse().unwrap();
        assert_eq!((host.rate(), host.memory()), (96_000_000_000, Some(96_000_000_000)));
        let epyc: HostSpec = "epyc-genoa:768GiB".parse().unwrap();
        assert_eq!((epyc.rate(), epyc.memory()), (460_800_000_000, Some(768 << 30)));
        assert_eq!("DDR4-3200x8".parse::<HostSpec>().unwrap().memory(), None);
        for (wrong, why) in [
            ("ddr5", "as ddr5-6000x2:96GB"),
            ("ddr5-6000x2:96", "as in ddr5-6000x2:96GB"),
            ("ddr5-6000x2:many", "is not a size"),
            ("ddr5-60000x2", "as ddr5-6000x2:96GB"),
            ("epic-genoa", "did you mean 'epyc-genoa'"),
        ] {
            let told = wrong.parse::<HostSpec>().unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn processors_are_recognised() {
        let name = |text| host_of_processor(text).map(|host| host.name);
        assert_eq!(name("2x EPYC 9355").as_deref(), Some("epyc-turin"));
        assert_eq!(name("AMD EPYC 9654P 96-Core Processor").as_deref(), Some("epyc-genoa"));
        assert_eq!(name("AMD Ryzen 9 7950X 16-Core Processor").as_deref(), Some("ryzen-am5"));
        assert_eq!(name("Threadripper PRO 7965WX").as_deref(), Some("threadripper-pro-7000"));
        assert_eq!(name("Intel(R) Xeon(R) Gold 6454S").as_deref(), Some("xeon-sapphire-rapids"));
        assert_eq!(name("Core i9-10900X").as_deref(), Some("core-x"));
        assert_eq!(name("phone"), None);
    }

    #[test]
    fn every_host_has_memory_that_is_read() {
        for host in builtin_hosts() {
            assert!(channels(&host.memory).is_some(), "{host:?}");
            assert!(!host.called.is_empty() && !host.description.is_empty());
        }
    }
}
