//! How a model fits: the verdict, what binds, and every byte.

use serde::Serialize;

use crate::memory;
use crate::memory_line::MemoryLine;

/// How a model fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitVerdict {
    /// Every expert has a slot.
    Resident,
    /// Some experts have one, host memory holds them all.
    Cached,
    /// Some experts are neither: they come from disk.
    WithDisk,
    /// Not at all.
    DoesNotFit,
}

impl FitVerdict {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resident => "resident",
            Self::Cached => "cached",
            Self::WithDisk => "with disk",
            Self::DoesNotFit => "does not fit",
        }
    }

    /// Whether memory holds everything, with a disk only for loading.
    #[must_use]
    pub fn in_memory(self) -> bool {
        self <= Self::Cached
    }
}

/// What keeps a model from the next better verdict, or from more slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Nothing: all experts are resident.
    Nothing,
    /// The accelerator's memory.
    AcceleratorMemory,
    /// The host's memory.
    HostMemory,
    /// One memory for both.
    UnifiedMemory,
    /// Host memory while weights are loaded.
    LoadTransient,
}

impl Binding {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::AcceleratorMemory => "accelerator memory",
            Self::HostMemory => "host memory",
            Self::UnifiedMemory => "unified memory",
            Self::LoadTransient => "host memory while weights are loaded",
        }
    }
}

/// How a model fits, in bytes of one accelerator and of one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Resident, cached, with disk, or not.
    pub verdict: FitVerdict,
    /// What binds.
    pub binding: Binding,
    /// Bytes that are short of the next better verdict.
    pub short_bytes: u64,
    /// What an accelerator may hold.
    pub budget: MemoryLine,
    /// What it holds beside slots.
    pub accelerator: Vec<MemoryLine>,
    /// Slots.
    pub slots: u64,
    /// Experts that the accelerator is home to: the most slots that make sense.
    pub experts: u64,
    /// The fewest slots that the engine runs with.
    pub least_slots: u64,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Bytes of all slots.
    pub slots_bytes: u64,
    /// Bytes of the budget that nothing takes.
    pub left_bytes: u64,
    /// What a host may hold.
    pub host_budget: MemoryLine,
    /// What it holds while the engine runs; on a unified machine beside the accelerator's lines.
    pub host: Vec<MemoryLine>,
    /// What loading needs there for a while.
    pub load_transient_bytes: u64,
    /// What the page cache takes if it may.
    pub page_cache_bytes: u64,
    /// Bytes of experts that come from disk, of one host's.
    pub on_disk_bytes: u64,
    /// What the accelerator would need for every expert to have a slot, and on a unified machine
    /// for what its host holds.
    pub needed_for_all_bytes: u64,
}

impl Fit {
    /// Share of the experts that have a slot, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.experts == 0 { 0.0 } else { self.slots as f64 / self.experts as f64 }
    }

    /// Where each line's bytes come from.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let lines = self.accelerator.iter_mut().chain(&mut self.host);
        let lines = lines.chain([&mut self.budget, &mut self.host_budget]);
        lines.map(|line| &mut line.source)
    }

    /// Bytes of one accelerator in use.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        memory::sum(&self.accelerator).saturating_add(self.slots_bytes)
    }

    /// Bytes of one host in use while the engine runs.
    #[must_use]
    pub fn host_used_bytes(&self) -> u64 {
        memory::sum(&self.host)
    }
}
