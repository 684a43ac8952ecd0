//! This machine, out of what its own tools print.
//!
//! Only texts are read here, those of `/proc`, `nvidia-smi`, `lspci` and `dmidecode`; whoever runs the tools gives what
//! they printed, or nothing where one is absent. What none of them says is taken from the built-in machine or host of the
//! same name, and each line says where it is from.

use std::fmt::Write as _;

use super::{Hardware, hardware_of_device, host_of_processor};

/// What the tools printed; empty where one is absent or not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// `/proc/meminfo`.
    pub meminfo: String,
    /// `/proc/cpuinfo`.
    pub cpuinfo: String,
    /// [`SMI_QUERY`] of nvidia-smi.
    pub nvidia_smi: String,
    /// `lspci`.
    pub lspci: String,
    /// `dmidecode --type 17`.
    pub dmidecode: String,
}

/// What nvidia-smi is asked, as CSV without header and units.
pub const SMI_QUERY: [&str; 2] = [
    "--query-gpu=name,memory.total,pcie.link.gen.max,pcie.link.width.max",
    "--format=csv,noheader,nounits",
];

/// An accelerator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// As its driver names it.
    pub name: String,
    /// Bytes of memory, where it is said.
    pub memory: Option<u64>,
    /// Generation and lanes of its slot, where they are said.
    pub slot: Option<(u32, u32)>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// Accelerators.
    pub devices: Vec<Device>,
    /// The processor's name.
    pub processor: Option<String>,
    /// Sockets.
    pub sockets: u32,
    /// Bytes of host memory.
    pub memory: Option<u64>,
    /// Megatransfers a second and channels of its modules.
    pub modules: Option<(u64, u32)>,
}

impl Detected {
    /// Reads what the tools printed.
    #[must_use]
    pub fn of(printed: &Printed) -> Self {
        let smi = devices_of_smi(&printed.nvidia_smi);
        let devices = if smi.is_empty() { devices_of_lspci(&printed.lspci) } else { smi };
        let (processor, sockets) = processor(&printed.cpuinfo);
        Self {
            devices,
            processor,
            sockets,
            memory: memory(&printed.meminfo),
            modules: modules(&printed.dmidecode),
        }
    }

    /// A machine's file in TOML, with a comment for what was found and what was taken from elsewhere.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text = String::from("# Found on this machine; give it as --machine FILE.toml.\n");
        let first = self.devices.first();
        let known = first.and_then(|device| hardware_of_device(&device.name, device.memory));
        let base = known.as_ref().map_or("cpu", |machine| machine.name.as_str());
        let unified = known.as_ref().is_some_and(|machine| machine.unified);
        match (first, &known) {
            (Some(device), None) => {
                let _ =
                    writeln!(text, "# device '{}' is not known: planned without it", device.name);
            }
            (Some(device), Some(_)) => {
                let _ = writeln!(text, "# device: {} x {}", self.devices.len(), device.name);
            }
            (None, _) => text.push_str("# no accelerator was found\n"),
        }
        let _ = writeln!(text, "base = \"{base}\"\nname = \"this-machine\"");
        let same = first
            .map_or(0, |one| self.devices.iter().filter(|device| device.name == one.name).count());
        if known.is_some() && same > 1 {
            let _ = writeln!(text, "accelerators = {same}\naccelerators_per_host = {same}");
        }
        if let (Some(memory), true) =
            (first.and_then(|device| device.memory), known.is_some() && !unified)
        {
            let _ = writeln!(
                text,
                "memory = {{ bytes = {memory}, basis = \"measured\", source = \"as the driver reports it\" }}"
            );
        }
        if let (Some((generation, lanes)), false) = (first.and_then(|device| device.slot), unified)
        {
            let _ = writeln!(text, "pcie = \"{generation}.0x{lanes}\"");
        }
        if unified {
            return text;
        }
        self.host(&mut text, known.as_ref());
        text
    }

    fn host(&self, text: &mut String, known: Option<&Hardware>) {
        let host = self.processor.as_deref().and_then(host_of_processor);
        let named = self.processor.as_deref().unwrap_or("not found");
        let _ = writeln!(text, "# processor: {} x {named}", self.sockets.max(1));
        let sockets = f64::from(self.sockets.max(1));
        // With an accelerator beside it the host is a memory of its own; without, the machine's only one.
        let (size, rate) =
            if known.is_some() { ("host_memory", "host_rate") } else { ("memory", "memory_rate") };
        if let Some(memory) = self.memory {
            let _ = writeln!(
                text,
                "{size} = {{ bytes = {memory}, basis = \"measured\", source = \"/proc/meminfo\" }}"
            );
        }
        let modules = self.modules.map(|(speed, channels)| {
            let source = format!("dmidecode: {channels} channels at {speed} MT/s, nominal");
            (speed as f64 * 8e6 * f64::from(channels), "calculated", source)
        });
        let of_host = || {
            let host = host?;
            let spec: super::HostSpec = host.memory.parse().ok()?;
            let source = format!(
                "assumption: {} for each of {} sockets, as {} may have, nominal",
                host.memory,
                self.sockets.max(1),
                host.name
            );
            Some((spec.rate() as f64 * sockets, "assumed", source))
        };
        if let Some((value, basis, source)) = modules.or_else(of_host) {
            let _ = writeln!(
                text,
                "{rate} = {{ gb_s = {}, basis = \"{basis}\", source = \"{source}\" }}",
                value / 1e9
            );
        }
    }
}

/// Accelerators as nvidia-smi lists them.
fn devices_of_smi(text: &str) -> Vec<Device> {
    let device = |line: &str| {
        let mut cells = line.split(',').map(str::trim);
        let name = cells.next().filter(|name| !name.is_empty())?;
        let mib = cells.next().and_then(|cell| cell.parse::<u64>().ok());
        let generation = cells.next().and_then(|cell| cell.parse().ok());
        let lanes = cells.next().and_then(|cell| cell.parse().ok());
        let slot = generation
            .zip(lanes)
            .filter(|(g, l)| (3..=7).contains(g) && [1, 2, 4, 8, 16].contains(l));
        // A failure is a sentence, not a row.
        mib.map(|_| ()).or(slot.map(|_| ()))?;
        let memory = mib.filter(|mib| *mib < 1 << 30).map(|mib| mib << 20);
        Some(Device { name: name.to_owned(), memory, slot })
    };
    text.lines().take(1024).filter_map(device).collect()
}

/// Display and compute devices as lspci lists them, where no driver says more.
fn devices_of_lspci(text: &str) -> Vec<Device> {
    let kinds = [
        "VGA compatible controller:",
        "3D controller:",
        "Processing accelerators:",
        "Display controller:",
    ];
    let device = |line: &str| {
        let at = kinds.iter().find_map(|kind| Some(line.find(kind)? + kind.len()))?;
        let name = line[at..].trim();
        // Of `GA102 [GeForce RTX 3090]` the brackets say what people call it.
        let called = name
            .rsplit_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map(|(inside, _)| inside);
        let name = called.unwrap_or(name);
        hardware_of_device(name, None)?;
        Some(Device { name: name.to_owned(), memory: None, slot: None })
    };
    text.lines().take(10_000).filter_map(device).collect()
}

/// The processor's name and the number of sockets.
fn processor(cpuinfo: &str) -> (Option<String>, u32) {
    let value = |line: &str, key: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    let names = cpuinfo.lines().find_map(|line| value(line, "model name"));
    let ids: std::collections::BTreeSet<String> =
        cpuinfo.lines().filter_map(|line| value(line, "physical id")).collect();
    (names, u32::try_from(ids.len()).unwrap_or(1).max(1))
}

/// Bytes of memory.
fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Megatransfers a second and channels, from the modules that are there.
fn modules(dmidecode: &str) -> Option<(u64, u32)> {
    let mut slowest: Option<u64> = None;
    let mut channels = std::collections::BTreeSet::new();
    for block in dmidecode.split("Memory Device").skip(1).take(4096) {
        let value = |key: &str| {
            let of =
                |line: &str| line.trim().strip_prefix(key).map(|value| value.trim().to_owned());
            block.lines().find_map(of)
        };
        let there = value("Size:").is_some_and(|size| size.contains('B'));
        let speed = value("Configured Memory Speed:").or_else(|| value("Speed:"));
        let speed = speed.and_then(|speed| speed.split_whitespace().next()?.parse::<u64>().ok());
        let (true, Some(speed)) = (there, speed) else { continue };
        slowest = Some(slowest.map_or(speed, |other| other.min(speed)));
        // `P0 CHANNEL A`, `ChannelB-DIMM0`, `DIMM_C1`: the channel's letter; else each module is one.
        let bank = format!(
            "{} {}",
            value("Bank Locator:").unwrap_or_default(),
            value("Locator:").unwrap_or_default()
        );
        channels.insert(channel(&bank));
    }
    let count = u32::try_from(channels.len()).ok()?;
    Some((slowest.filter(|speed| (400..=20_000).contains(speed))?, count))
}

/// What of a module's place names its channel.
fn channel(place: &str) -> String {
    let upper = place.to_uppercase();
    match upper.find("CHANNEL") {
        Some(at) => {
            let end = upper[at..].trim_start_matches("CHANNEL").trim_start();
            let socket = upper
                .split_whitespace()
                .next()
                .filter(|word| word.starts_with('P') && word.len() <= 3);
            format!("{}{}", socket.unwrap_or_default(), end.chars().next().unwrap_or(' '))
        }
        None => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESKTOP: &str = "\
Handle 0x1, DMI type 17
Memory Device
\tSize: 32 GB
\tLocator: DIMM 0
\tBank Locator: P0 CHANNEL A
\tSpeed: 5600 MT/s
\tConfigured Memory Speed: 4800 MT/s
Memory Device
\tSize: No Module Installed
\tBank Locator: P0 CHANNEL A
Memory Device
\tSize: 32 GB
\tLocator: DIMM 1
\tBank Locator: P0 CHANNEL B
\tConfigured Memory Speed: 4800 MT/s
";

    #[test]
    fn tools_are_read() {
        let printed = Printed {
            meminfo: "MemTotal:       65536000 kB\nMemFree: 1 kB\n".to_owned(),
            cpuinfo: "physical id\t: 0\nmodel name\t: AMD Ryzen 9 7950X 16-Core Processor\nphysical id : 0\n".to_owned(),
            nvidia_smi: "NVIDIA GeForce RTX 4090, 24564, 4, 16\nNVIDIA GeForce RTX 4090, 24564, 4, 8\n".to_owned(),
            lspci: String::new(),
            dmidecode: DESKTOP.to_owned(),
        };
        let found = Detected::of(&printed);
        assert_eq!(found.modules, Some((4800, 2)));
        assert_eq!((found.devices.len(), found.memory), (2, Some(67_108_864_000)));
        let machine = Hardware::from_toml_str(&found.toml()).unwrap();
        assert_eq!((machine.accelerators, machine.name.as_str()), (2, "this-machine"));
        assert_eq!(
            (machine.host_memory.value, machine.host_rate.value),
            (67_108_864_000, 76_800_000_000)
        );
        assert_eq!(machine.memory_rate.value, 1_008_000_000_000);
    }

    #[test]
    fn nothing_is_a_machine_without_accelerator() {
        let machine = Hardware::from_toml_str(&Detected::of(&Printed::default()).toml()).unwrap();
        assert_eq!(machine.architecture.as_deref(), Some("cpu"));
        let garbled = Printed {
            meminfo: "MemTotal: many kB".to_owned(),
            nvidia_smi: "NVIDIA-SMI has failed because it couldn't communicate with the driver"
                .to_owned(),
            dmidecode: "Permission denied".to_owned(),
            ..Printed::default()
        };
        assert_eq!(Detected::of(&garbled), Detected { sockets: 1, ..Detected::default() });
    }

    #[test]
    fn a_card_without_driver_and_a_server_without_rights() {
        let printed = Printed {
            lspci: "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n\
                    02:00.0 VGA compatible controller: ASPEED Technology, Inc. Graphics Family\n"
                .to_owned(),
            cpuinfo: "model name : AMD EPYC 9354 32-Core Processor\nphysical id : 0\nphysical id : 1\n".to_owned(),
            ..Printed::default()
        };
        let found = Detected::of(&printed);
        assert_eq!(found.devices.len(), 1);
        let machine = Hardware::from_toml_str(&found.toml()).unwrap();
        assert_eq!(machine.memory_rate.value, 936_000_000_000);
        assert_eq!(machine.host_rate.value, 921_600_000_000);
    }
}
