//! A machine: the links into an accelerator and what reading its own memory costs.
//!
//! This is what a timeline needs: kernels on a compute stream from [`HbmModel`], copies from each [`Link`]. A machine
//! is written to TOML and read back without losing a digit.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::curve::BurstCurve;
use crate::error::ProfileError;
use crate::link::Link;
use crate::picos::mul_div_round;
use crate::profile::LinkFile;

/// Kernels of a `kernel-chain` measurement, by its definition.
const CHAIN_KERNELS: u32 = 100;

/// What a kernel that reads the accelerator's memory costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HbmModel {
    /// What an event pair around one kernel adds to its time and back-to-back kernels do not pay, in picoseconds.
    pub event_pair_ps: u64,
    /// Time of one kernel of many back to back on one stream that reads `transfers` pieces of `bytes` each. Small ones
    /// cost what launching a kernel costs.
    pub chain: BurstCurve,
    /// What a step that the host waits for takes beside its kernels, where steps were measured; else it is derived from
    /// the event pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepOverhead>,
}

/// What a step takes beside its kernels' times in chains, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepOverhead {
    /// Beginning and ending it.
    pub fixed_ps: u64,
    /// Each of its kernels: they differ from one to the next, and their data is wherever the engine has it.
    pub kernel_ps: u64,
}

impl HbmModel {
    /// Kernels whose steps were not measured.
    pub fn new(event_pair_ps: u64, chain: BurstCurve) -> Self {
        Self { event_pair_ps, chain, step: None }
    }

    /// One kernel in a chain that reads `pieces` pieces of `bytes` each, in picoseconds.
    pub fn kernel_ps(&self, bytes: u64, pieces: u32) -> u64 {
        self.chain.burst_ps(bytes, pieces)
    }

    /// What a step of `kernels` kernels takes beside them, in picoseconds: the host waits for it as for a pair of events
    /// around it. The kernels of a chain share the pair between which they were timed, so each one's time has its part
    /// of a pair already. As it was measured, where steps were.
    pub fn step_ps(&self, kernels: u32) -> u64 {
        if let Some(StepOverhead { fixed_ps, kernel_ps }) = self.step {
            return kernel_ps.saturating_mul(u64::from(kernels)).saturating_add(fixed_ps);
        }
        let rest = CHAIN_KERNELS.saturating_sub(kernels);
        mul_div_round(self.event_pair_ps, u64::from(rest), u64::from(CHAIN_KERNELS))
    }

    /// The rate at saturation in GB/s: what the last MiB of the largest measured kernel cost.
    pub fn saturated_gb_s(&self) -> f64 {
        let last = self.chain.bytes.len() - 1;
        let pieces = self.chain.transfers.last().copied().unwrap_or(1);
        let (large, small) = (self.chain.bytes[last], self.chain.bytes[last - 1]);
        let ps = self.kernel_ps(large, pieces).saturating_sub(self.kernel_ps(small, pieces)).max(1);
        (large - small) as f64 * f64::from(pieces) / (ps as f64 * 1e-12) / 1e9
    }
}

/// A machine and everything that was measured on it.
///
/// ```
/// use hotset_cost_models::find_machine;
///
/// let machine = find_machine("h200")?;
/// let memory = machine.hbm.as_ref().expect("it was measured");
/// assert_eq!(memory.saturated_gb_s().round(), 4453.0);
/// assert!(machine.link("h200-nvlink").is_some());
/// # Ok::<(), hotset_cost_models::UnknownMachine>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineProfile {
    /// Short name; the names of its links start with it.
    pub name: String,
    /// One line for a person.
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    /// When they were measured.
    pub date: String,
    /// Its own memory, where it was measured.
    pub hbm: Option<HbmModel>,
    /// Links that carry experts at full speed.
    pub links: Vec<Link>,
    /// Other ways of moving bytes that were measured: pageable memory, device to host, kernels that read over a link.
    pub other_paths: Vec<Link>,
}

impl MachineProfile {
    /// The link or other path of this name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().chain(&self.other_paths).find(|link| link.name == name)
    }

    /// From the text of a TOML profile.
    ///
    /// # Errors
    /// [`ProfileError`] when the text is not TOML of these fields or a value is impossible.
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileError> {
        Self::parse(text, "(text)")
    }

    /// From a TOML profile's file.
    ///
    /// # Errors
    /// [`ProfileError`], as [`MachineProfile::from_toml_str`], or when the file cannot be read.
    pub fn from_toml_path(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = crate::read_profile(path)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// As TOML, which reads back to an equal profile.
    ///
    /// # Errors
    /// [`ProfileError::Write`] when a figure does not fit TOML's 63-bit integers.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        let file = MachineFile {
            name: self.name.clone(),
            description: self.description.clone(),
            source: self.source.clone(),
            date: self.date.clone(),
            hbm: self.hbm.clone(),
            links: self.links.iter().map(LinkFile::from).collect(),
            other_paths: self.other_paths.iter().map(LinkFile::from).collect(),
        };
        let text = toml::to_string(&file).map_err(|source| ProfileError::Write {
            origin: self.name.clone(),
            source: Box::new(source),
        })?;
        Ok(text.lines().map(one_row_a_line).collect())
    }

    fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let file: MachineFile = toml::from_str(text).map_err(|source| ProfileError::Toml {
            origin: origin.into(),
            source: Box::new(source),
        })?;
        file.into_machine()
    }
}

/// Breaks the table of a curve after each size, so that a person can read it and a diff shows what moved.
fn one_row_a_line(line: &str) -> String {
    match line.strip_prefix("ps = [[").and_then(|rows| rows.strip_suffix("]]")) {
        Some(rows) => format!("ps = [\n  [{}],\n]\n", rows.replace("], [", "],\n  [")),
        None => format!("{line}\n"),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    name: String,
    description: String,
    source: String,
    date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hbm: Option<HbmModel>,
    links: Vec<LinkFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    other_paths: Vec<LinkFile>,
}

impl MachineFile {
    fn into_machine(self) -> Result<MachineProfile, ProfileError> {
        for (field, text) in [("name", &self.name), ("source", &self.source), ("date", &self.date)]
        {
            if text.trim().is_empty() {
                return Err(ProfileError::invalid(&self.name, field, "is empty"));
            }
        }
        if self.links.is_empty() {
            return Err(ProfileError::invalid(&self.name, "links", "is empty"));
        }
        if let Some(hbm) = &self.hbm {
            hbm.chain.validate(&self.name, "hbm.chain")?;
        }
        let load = |files: Vec<LinkFile>| -> Result<Vec<Link>, ProfileError> {
            files.into_iter().map(LinkFile::into_link).collect()
        };
        let machine = MachineProfile {
            links: load(self.links)?,
            other_paths: load(self.other_paths)?,
            name: self.name,
            description: self.description,
            source: self.source,
            date: self.date,
            hbm: self.hbm,
        };
        machine.refuse_duplicates()?;
        Ok(machine)
    }
}

impl MachineProfile {
    fn refuse_duplicates(&self) -> Result<(), ProfileError> {
        let mut names: Vec<&str> =
            self.links.iter().chain(&self.other_paths).map(|link| link.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let why = format!("has two links named `{}`", pair[0]);
                Err(ProfileError::invalid(&self.name, "links", why))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picos::MIB;

    fn machine() -> MachineProfile {
        let mut link = Link::affine("m-pcie", 5, 7);
        (link.source, link.date) = ("s".into(), "2026-11-29".into());
        let chain = BurstCurve {
            bytes: vec![MIB, 2 * MIB],
            transfers: vec![1, 2],
            ps: vec![vec![5_000_000, 6_000_000], vec![6_000_000, 8_000_000]],
        };
        MachineProfile {
            name: "m".into(),
            description: "d".into(),
            source: "s".into(),
            date: "2026-11-29".into(),
            hbm: Some(HbmModel::new(4_000_000, chain)),
            links: vec![link],
            other_paths: Vec::new(),
        }
    }

    #[test]
    fn toml_reads_back_equal() {
        let machine = machine();
        let text = machine.to_toml().unwrap();
        assert_eq!(MachineProfile::from_toml_str(&text).unwrap(), machine);
        assert!(
            text.contains("ps = [\n  [5000000, 6000000],\n  [6000000, 8000000],\n]\n"),
            "{text}"
        );
    }

    #[test]
    fn kernels_by_hand() {
        let hbm = machine().hbm.unwrap();
        assert_eq!(hbm.kernel_ps(MIB, 2), 6_000_000);
        assert_eq!(hbm.kernel_ps(3 * MIB / 2, 1), 5_500_000);
        // Two pieces grow by 1 MiB each, 2 MiB in 2 us.
        assert!((hbm.saturated_gb_s() - 2.0 * MIB as f64 / 2e-6 / 1e9).abs() < 1e-9);
    }

    #[test]
    fn a_step_pays_what_its_kernels_do_not_have_yet() {
        let hbm = machine().hbm.unwrap();
        // A pair of 4 us, 0.04 of it in each kernel.
        assert_eq!(
            [0, 48, 100, 200].map(|kernels| hbm.step_ps(kernels)),
            [4_000_000, 2_080_000, 0, 0]
        );
    }

    #[test]
    fn impossible_machines_are_refused() {
        let good = machine().to_toml().unwrap();
        let broken = |from: &str, to: &str| {
            assert!(good.contains(from), "{good}");
            MachineProfile::from_toml_str(&good.replace(from, to)).unwrap_err().to_string()
        };
        assert!(
            broken("[5000000, 6000000]", "[9000000, 9000000]").contains("hbm.chain times fall")
        );
        assert!(broken("event_pair_ps", "event_pear_ps").contains("unknown field"));
        let mut twice = machine();
        twice.other_paths = twice.links.clone();
        let error = MachineProfile::from_toml_str(&twice.to_toml().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "profile m: links has two links named `m-pcie`");
        let mut none = machine();
        none.links.clear();
        let error = MachineProfile::from_toml_str(&none.to_toml().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "profile m: links is empty");
    }
}
