//! Devices and hosts as reports name them.

use hotset_cost_models::hardware::host::reached;
use hotset_cost_models::hardware::pcie::Slot;
use hotset_cost_models::{Hardware, HostSpec, hardware_of_device, host_of_processor};

use super::super::{SpeedRow, WhyNot};
use crate::engine::speed::{device_class, host_class};

/// The accelerators of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Devices {
    /// How many; at least 1.
    pub count: u32,
    /// Class of their cores.
    pub class: &'static str,
    /// The rate of one's memory, bytes a second; over unequal ones, of layers shared out by memory.
    pub rate: f64,
    /// What large copies from the host reach, bytes a second.
    pub link: Option<f64>,
}

/// A card where a report that computes experts on the host does not name one: it takes little of the time.
const UNNAMED: Devices = Devices { count: 1, class: "new", rate: 900e9, link: None };

/// The accelerators; `host_only` where the host computes the experts, so that an unnamed card may stand in.
pub(super) fn devices(row: &SpeedRow, host_only: bool) -> Result<Devices, WhyNot> {
    let text = if row.gpu.is_empty() { &row.assumed_gpu } else { &row.gpu };
    let count = u32::try_from(row.gpu_count.unwrap_or(1)).unwrap_or(u32::MAX).max(1);
    let memory = row.gpu_mem_gib.map(|gib| (gib * f64::from(1u32 << 30)) as u64);
    let parts: Vec<(f64, Hardware)> = text
        .split(" + ")
        .filter_map(|part| {
            let (many, name) = match part.trim().split_once("x ") {
                Some((many, name)) => (many.parse().unwrap_or(1.0), name),
                None => (1.0, part),
            };
            Some((many, hardware_of_device(name, memory)?))
        })
        .collect();
    let given = row.assumed_gpu_bandwidth_gb_s.map(|gb_s| gb_s * 1e9);
    let Some((_, first)) = parts.first() else {
        return match (given, host_only) {
            (Some(rate), _) => Ok(Devices { count, class: "old", rate, link: link(row, None) }),
            (None, true) => Ok(Devices { count, ..UNNAMED }),
            (None, false) if text.is_empty() => Err(WhyNot::new("the device is not said")),
            (None, false) => Err(WhyNot::new(format!("device '{text}' is not known"))),
        };
    };
    let held: f64 = parts.iter().map(|(many, machine)| many * machine.memory.value as f64).sum();
    let time: f64 = parts
        .iter()
        .map(|(many, m)| many * m.memory.value as f64 / m.memory_rate.value as f64)
        .sum();
    Ok(Devices {
        count,
        class: device_class(first.architecture.as_deref()),
        rate: given.unwrap_or(held / time),
        link: link(row, Some(first)),
    })
}

/// What large copies reach: as measured, or of the slot.
fn link(row: &SpeedRow, machine: Option<&Hardware>) -> Option<f64> {
    if let Some(measured) = number_before(&row.pcie, "GB/s") {
        return Some(measured * 1e9);
    }
    let slot = row.pcie.split([',', '(']).next().unwrap_or_default().trim();
    if let Ok(slot) = slot.parse::<Slot>() {
        return Some(slot.rate());
    }
    let machine = machine?;
    // As the machine's own slot, in a host that may be older.
    let own = machine.link.name.strip_prefix("pcie").map(|slot| slot.replace('-', ""));
    match (own.and_then(|slot| slot.parse::<Slot>().ok()), host_of_processor(&row.cpu)) {
        (Some(slot), Some(host)) => Some(slot.within(host.pcie).rate()),
        _ => Some(machine.link.rate_gib_s(1 << 30) * f64::from(1u32 << 30)),
    }
}

/// The number that stands before a unit.
pub(super) fn number_before(text: &str, unit: &str) -> Option<f64> {
    let before = text[..text.find(unit)?].trim_end();
    let number = before.rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next()?;
    number.parse().ok().filter(|number| *number > 0.0)
}

/// The rate of host memory that programs reach, bytes a second.
pub(super) fn host_rate(row: &SpeedRow) -> Result<f64, WhyNot> {
    if let Some(gb_s) = row.ram_bandwidth_gb_s {
        let nominal = row.ram_bandwidth_basis.contains("nominal");
        return Ok(if nominal { reached(gb_s * 1e9) } else { gb_s * 1e9 });
    }
    if let Some(gb_s) = row.assumed_ram_bandwidth_gb_s {
        return Ok(gb_s * 1e9);
    }
    let host = host_of_processor(&row.cpu);
    let known = host.as_ref().and_then(|host| host.memory.parse::<HostSpec>().ok());
    // As written: `DDR5-4800 ECC`, with channels of its own or those of the processor.
    let channels = row.ram_channels.parse::<u32>().ok();
    let channels = channels.or_else(|| host?.memory.rsplit_once('x')?.1.parse().ok());
    let kind = row.ram_type.split_whitespace().next().unwrap_or_default().to_lowercase();
    let written =
        channels.and_then(|channels| format!("{kind}x{channels}").parse::<HostSpec>().ok());
    let nominal = written.or(known).map(|spec| spec.rate() as f64);
    let why = "the rate of host memory is not said, nor type and channels, nor a known processor";
    nominal.map(reached).ok_or_else(|| WhyNot::new(why))
}

/// The rate of storage, bytes a second: measured, or what single experts reach of a drive's or a phone's flash.
pub(super) fn storage_rate(row: &SpeedRow) -> Result<f64, WhyNot> {
    let text = &row.disk;
    for (unit, bytes) in [
        ("GiB/s reached", 1.073_741_824e9),
        ("GB/s O_DIRECT measured", 1e9),
        ("GB/s measured", 1e9),
    ] {
        if let Some(rate) = number_before(text, unit) {
            return Ok(rate * bytes);
        }
    }
    let lower = text.to_lowercase();
    let nominal = number_before(text, "GB/s")
        .or_else(|| DRIVES.iter().find(|d| lower.contains(d.0)).map(|d| d.1));
    let why = || WhyNot::new("the rate of storage is not said, nor a known kind of drive");
    nominal.map(|gb_s| gb_s * 1e9 * EXPERTS_OF_NOMINAL).ok_or_else(why)
}

/// Reads of single experts reach about half of a drive's nominal rate.
const EXPERTS_OF_NOMINAL: f64 = 0.55;

/// Nominal rates of kinds of storage, GB/s, by data sheet.
const DRIVES: [(&str, f64); 7] = [
    ("ufs 4", 4.2),
    ("ufs 3", 2.1),
    ("sn8100", 14.9),
    ("t700", 12.4),
    ("gen5", 12.0),
    ("gen4", 7.0),
    ("nvme", 3.5),
];

/// Cores or threads that the host computes with: as said, else of a common size.
pub(super) fn cores(row: &SpeedRow, rate: f64) -> f64 {
    let number = |text: &str| {
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<f64>().ok()
    };
    let said = number(&row.cores_threads).filter(|cores| (1.0..=1024.0).contains(cores));
    said.unwrap_or(if host_class(rate) == "server" { 32.0 } else { 12.0 })
}
