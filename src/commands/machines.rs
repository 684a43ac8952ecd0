//! `hotset machines [NAME | detect]`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use hotset::cost_models::hardware::FigureLine;
use hotset::cost_models::hardware::detect::{Detected, Printed, SMI_QUERY};
use hotset::cost_models::{Hardware, Host, builtin_hardware, builtin_hosts};
use hotset::reports::{Cell, Field, Output, Sheet, one_line};
use serde::Serialize;

use crate::cli::{DetectArgs, MachinesArgs, MachinesCommand};
use crate::commands::{wrap, wrap_to};
use crate::fault::{Ending, Fault};
use crate::{output, parse};

/// Lists machines, shows one, or finds out about this one.
pub fn run(args: &MachinesArgs) -> Result<Ending, Fault> {
    let (output, to) = match (&args.command, &args.name) {
        (Some(MachinesCommand::Detect(detect)), _) => return self::detect(detect),
        (None, Some(name)) => (one(&parse::hardware(name)?)?, &args.output),
        (None, None) => (list()?, &args.output),
    };
    output::give(&output, to)?;
    Ok(Ending::Passed)
}

/// What a listing says of a machine.
#[derive(Serialize)]
struct Entry {
    name: String,
    description: String,
    memory_gib: f64,
    memory_gb_s: f64,
    unified: bool,
    tflops: Option<f64>,
    link_gb_s: f64,
}

impl Entry {
    fn of(machine: &Hardware) -> Self {
        let gib = f64::from(1u32 << 30);
        Self {
            name: machine.name.clone(),
            description: machine.description.clone(),
            memory_gib: machine.memory.value as f64 / gib,
            memory_gb_s: machine.memory_rate.value as f64 / 1e9,
            unified: machine.unified,
            tflops: machine.compute.as_ref().map(|figure| figure.value as f64 / 1e12),
            link_gb_s: machine.link.rate_gib_s(1 << 30) * gib / 1e9,
        }
    }
}

const MACHINES: &[Field<Entry>] = &[
    Field::left("machine", "machine", |entry| one_line(&entry.name).into()),
    Field::right("memory\nGiB", "memory_gib", |entry| Cell::Number(entry.memory_gib, 1)),
    Field::right("its rate\nGB/s", "memory_gb_s", |entry| Cell::Number(entry.memory_gb_s, 0)),
    Field::right("16-bit\nTFLOPS", "tflops", |entry| Cell::number(entry.tflops, 1)),
    Field::right("link\nGB/s", "link_gb_s", |entry| match entry.unified {
        true => Cell::Text("one memory".to_owned()),
        false => Cell::Number(entry.link_gb_s, 1),
    }),
];

const HOSTS: &[Field<Host>] = &[
    Field::left("host", "host", |host| host.name.as_str().into()),
    Field::left("memory", "memory", |host| host.memory.as_str().into()),
    Field::left("what it is", "description", |host| wrap_to(&host.description, 40).into()),
];

fn list() -> Result<Output, Fault> {
    let entries: Vec<Entry> = builtin_hardware().iter().map(Entry::of).collect();
    let hosts = builtin_hosts();
    let mut of_hosts = Sheet::of("", HOSTS, &hosts);
    of_hosts.note =
        "'hotset machines NAME' gives every figure with its source; NxNAME are several;\n\
         --host takes a host with its size, epyc-genoa:768GB, or ddr5-6000x2:96GB; --disk 7GB/s;\n\
         'hotset machines detect' finds out about this machine"
            .to_owned();
    let named: Vec<(&str, &str)> =
        hosts.iter().map(|host| (host.name.as_str(), host.memory.as_str())).collect();
    let all = serde_json::json!({ "machines": entries, "hosts": named });
    let sheet = Sheet::of("", MACHINES, &entries);
    let mut output = Output::new(&all, vec![sheet.clone(), of_hosts])?;
    output.flat = Some(sheet);
    Ok(output)
}

const FIGURES: &[Field<FigureLine>] = &[
    Field::left("", "figure", |line| line.name.into()),
    Field::right("value", "value", |line| line.value.as_str().into()),
    Field::left("basis", "basis", |line| line.basis.to_string().into()),
    Field::left("source", "source", |line| wrap_to(&line.source, 28).into()),
];

fn one(machine: &Hardware) -> Result<Output, Fault> {
    let figures = machine.figures();
    let mut sheet = Sheet::of(one_line(&machine.name), FIGURES, &figures);
    sheet.title = format!("{}: {}", one_line(&machine.name), wrap(&machine.description));
    sheet.note = format!("link {}: {}", machine.link.name, wrap(&machine.link.source));
    let lines: Vec<_> = figures
        .iter()
        .map(|f| serde_json::json!({"figure": f.name, "value": f.value, "basis": f.basis, "source": f.source}))
        .collect();
    let all = serde_json::json!({ "name": machine.name, "description": machine.description,
        "accelerators": machine.accelerators, "unified": machine.unified, "figures": lines });
    Ok(Output::new(&all, vec![sheet])?)
}

/// Runs the tools that are there; what is absent or forbidden is left out.
fn detect(args: &DetectArgs) -> Result<Ending, Fault> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let printed = Printed {
        meminfo: file("/proc/meminfo"),
        cpuinfo: file("/proc/cpuinfo"),
        nvidia_smi: tool("nvidia-smi", &SMI_QUERY),
        lspci: tool("lspci", &[]),
        dmidecode: tool("dmidecode", &["--type", "17"]),
    };
    let mut text = Detected::of(&printed).toml();
    if args.measure {
        let memory = memory_rate();
        text = measured(&text, memory, disk_rate(&args.scratch));
    }
    Hardware::from_toml_str(&text)?;
    output::give_text(&text, args.output.as_deref())?;
    Ok(Ending::Passed)
}

fn tool(name: &str, arguments: &[&str]) -> String {
    let ran = Command::new(name).args(arguments).output();
    ran.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The same file with measured rates in place of nominal ones.
fn measured(text: &str, memory: f64, disk: Option<f64>) -> String {
    let cpu = text.contains("base = \"cpu\"");
    let key = if cpu { "memory_rate" } else { "host_rate" };
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with(key)).map(str::to_owned).collect();
    let line = |key: &str, rate: f64, what: &str| {
        format!(
            "{key} = {{ gb_s = {:.1}, basis = \"measured\", source = \"hotset machines detect --measure: {what}\" }}",
            rate / 1e9
        )
    };
    lines.push(line(key, memory, "all threads read 64 MiB each, best of five"));
    lines.extend(disk.map(|rate| {
        line("disk_rate", rate, "a file of 512 MiB written, then read past the page cache")
    }));
    lines.join("\n") + "\n"
}

/// Words that a thread reads: more than its cache holds.
const WORDS: usize = (64 << 20) / 8;

/// Bytes a second that all threads together read.
fn memory_rate() -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |words: &[u64]| words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    let best = (0..5).map(|_| {
        let buffers: Vec<Vec<u64>> = (0..threads).map(|seed| vec![seed as u64; WORDS]).collect();
        let start = Instant::now();
        std::thread::scope(|scope| {
            for buffer in &buffers {
                scope.spawn(|| std::hint::black_box(read(buffer)));
            }
        });
        (threads * WORDS * 8) as f64 / start.elapsed().as_secs_f64()
    });
    best.fold(0.0, f64::max)
}

/// Bytes of the file that is read.
const FILE: usize = 512 << 20;

/// Bytes a second of reads past the page cache; nothing where a folder or system does not allow it.
fn disk_rate(folder: &Path) -> Option<f64> {
    let path = folder.join(format!("hotset-measure-{}", std::process::id()));
    let rate = written(&path).and_then(|()| read_directly(&path)).ok();
    // Whether it was made or not, nothing of it stays.
    let _ = std::fs::remove_file(&path);
    rate
}

fn written(path: &Path) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    let block: Vec<u8> =
        (0..1usize << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    for _ in 0..FILE >> 20 {
        file.write_all(&block)?;
    }
    file.sync_all()
}

#[cfg(target_os = "linux")]
fn read_directly(path: &Path) -> std::io::Result<f64> {
    use std::os::unix::fs::OpenOptionsExt;
    /// Reads go past the page cache, into memory on whole pages.
    const O_DIRECT: i32 =
        if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { 0x1_0000 } else { 0x4000 };
    const PAGE: usize = 4096;
    const BLOCK: usize = 4 << 20;
    let mut file = std::fs::OpenOptions::new().read(true).custom_flags(O_DIRECT).open(path)?;
    let mut buffer = vec![0u8; BLOCK + PAGE];
    let start = buffer.as_ptr().align_offset(PAGE);
    let aligned = buffer.get_mut(start..start + BLOCK).ok_or(std::io::ErrorKind::Unsupported)?;
    let (began, mut bytes) = (Instant::now(), 0usize);
    loop {
        match file.read(aligned)? {
            0 => break,
            read => bytes += read,
        }
    }
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}

#[cfg(not(target_os = "linux"))]
fn read_directly(_: &Path) -> std::io::Result<f64> {
    Err(std::io::ErrorKind::Unsupported.into())
}
