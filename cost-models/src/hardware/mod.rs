//! Machines as a plan sees them: how much memory, how much of it usable, how fast it is read and filled.
//!
//! A [`MachineProfile`](crate::MachineProfile) is what was measured for a timeline; a [`Hardware`] adds what decides
//! whether a model fits. Every number carries its source, so that a plan can say which of its inputs were measured,
//! published, calculated or assumed.

mod builtin;
pub mod detect;
mod family;
mod figures;
mod file;
pub mod host;
pub mod pcie;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::link::Link;

pub use builtin::{builtin_hardware, find_hardware, hardware_of_device};
pub use host::{Host, HostSpec, builtin_hosts, host_of_processor};

/// What sort of number a figure is: how far to trust it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Read off such a machine.
    Measured,
    /// A manufacturer's or engine's own statement.
    Published,
    /// Follows from other figures.
    Calculated,
    /// Nobody's: a stand-in to be replaced by one's own.
    Assumed,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Calculated => "calculated",
            Self::Assumed => "assumed",
        })
    }
}

/// A number, how far to trust it, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure<T> {
    /// The number, in the unit that its field names.
    pub value: T,
    /// How far to trust it.
    pub basis: Basis,
    /// The article, data sheet, measurement or calculation; of an assumption, what was assumed.
    pub source: String,
}

/// A machine: one accelerator or several, and the host memory beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// Short name, as given on a command line.
    pub name: String,
    /// One line for a person.
    pub description: String,
    /// Accelerators in all.
    pub accelerators: u32,
    /// Accelerators that share one host and its memory.
    pub per_host: u32,
    /// Host and accelerator share one memory: a second copy of anything takes from the same pool.
    pub unified: bool,
    /// Memory of one accelerator, in bytes; of a unified machine, the whole pool.
    pub memory: Figure<u64>,
    /// The share of it that an engine may plan with.
    pub usable_share: Figure<f64>,
    /// Memory of one host, in bytes; of a unified machine, the pool again.
    pub host_memory: Figure<u64>,
    /// What the system keeps of host memory for itself, in bytes.
    pub host_reserved: Figure<u64>,
    /// What a process takes of an accelerator before it holds a weight, in bytes: context and libraries.
    pub context: Figure<u64>,
    /// The accelerator's own memory, bytes a second.
    pub memory_rate: Figure<u64>,
    /// Host memory, bytes a second.
    pub host_rate: Figure<u64>,
    /// Storage, bytes a second, where there is one to load from.
    pub disk_rate: Option<Figure<u64>>,
    /// How experts reach the accelerator from host memory. A unified machine has one as well: a copy is a copy.
    pub link: Link,
    /// Between accelerators, bytes a second each way, where there are several.
    pub peer_rate: Option<Figure<u64>>,
    /// Experts computed by host cores, bytes of weights a second, where it was measured.
    pub host_kernel_rate: Option<Figure<u64>>,
    /// Dense operations a second in 16 bits with 32-bit sums, of one accelerator.
    pub compute: Option<Figure<u64>>,
    /// The family of its cores (`ada`, `apple`, `cpu`), by which engines' figures are told apart.
    pub architecture: Option<String>,
    /// The measured profile of this machine for timelines, where there is one.
    pub profile: Option<String>,
}

impl Hardware {
    /// Bytes of one accelerator that an engine may plan with.
    pub fn usable_memory(&self) -> u64 {
        // Below 2^53, so that the product is exact enough to be the same everywhere.
        (self.memory.value as f64 * self.usable_share.value).floor() as u64
    }

    /// Hosts that the accelerators stand in.
    pub fn hosts(&self) -> u32 {
        self.accelerators.div_ceil(self.per_host.max(1))
    }

    /// Bytes of one host's memory that are free for experts and caches.
    pub fn usable_host_memory(&self) -> u64 {
        self.host_memory.value.saturating_sub(self.host_reserved.value)
    }

    /// The same machine with so many accelerators, on more hosts where one does not hold them.
    pub fn with_accelerators(&self, accelerators: u32) -> Self {
        let name = if accelerators == 1 {
            self.name.clone()
        } else {
            format!("{accelerators}x{}", self.name)
        };
        Self { name, accelerators: accelerators.max(1), ..self.clone() }
    }

    /// Every figure for a listing: its name, its value with unit, its basis and its source.
    pub fn figures(&self) -> Vec<FigureLine> {
        let gib = |name, figure: &Figure<u64>| {
            let value = format!("{:.1} GiB", figure.value as f64 / (1u64 << 30) as f64);
            FigureLine::new(name, value, figure)
        };
        let rate = |name, figure: &Figure<u64>| {
            FigureLine::new(name, format!("{:.1} GB/s", figure.value as f64 / 1e9), figure)
        };
        let share = format!("{:.1}%", self.usable_share.value * 100.0);
        let mut lines = vec![
            gib("memory of one accelerator", &self.memory),
            FigureLine::new("usable share", share, &self.usable_share),
            gib("context of a process", &self.context),
            gib("host memory", &self.host_memory),
            gib("kept by the system", &self.host_reserved),
            rate("accelerator memory", &self.memory_rate),
            rate("host memory", &self.host_rate),
        ];
        let optional = [
            ("storage", &self.disk_rate),
            ("between accelerators", &self.peer_rate),
            ("experts on host cores", &self.host_kernel_rate),
        ];
        for (name, figure) in optional {
            lines.extend(figure.as_ref().map(|figure| rate(name, figure)));
        }
        lines.extend(self.compute.as_ref().map(|figure| {
            let value = format!("{:.1} TFLOPS", figure.value as f64 / 1e12);
            FigureLine::new("16-bit operations", value, figure)
        }));
        lines
    }
}

/// One figure of a machine for a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureLine {
    /// What it is.
    pub name: &'static str,
    /// Its value with its unit.
    pub value: String,
    /// How far to trust it.
    pub basis: Basis,
    /// Where it comes from.
    pub source: String,
}

impl FigureLine {
    fn new<T>(name: &'static str, value: String, figure: &Figure<T>) -> Self {
        Self { name, value, basis: figure.basis, source: figure.source.clone() }
    }
}

#[cfg(test)]
mod tests;
