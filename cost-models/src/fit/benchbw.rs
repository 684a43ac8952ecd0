//! FreeToken's calibration file, `benchbw.json` version 4.
//!
//! `ft bench bw` measures, for each expert format, its PCIe gather and its CPU kernel, alone and overlapped. Each format
//! becomes a link with a host kernel and the contention of the pair; the linear copy becomes one more.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::FitError;
use crate::contention::HostContention;
use crate::link::{HostKernel, Link, LinkKind, TransferCost};
use crate::machine::MachineProfile;
use crate::picos::MIB;

const VERSION: u64 = 4;
/// Over this, in GB/s, a rate is a mistake of units.
const FASTEST_GB_S: f64 = 1e4;

/// Reads the text of a `benchbw.json`; `source` says where it came from.
///
/// # Errors
/// [`FitError::Json`], [`FitError::Version`], or [`FitError::BadFigure`] naming the field.
pub fn import_benchbw(text: &str, source: &str) -> Result<MachineProfile, FitError> {
    let version: Version = serde_json::from_str(text)?;
    if version.version != VERSION {
        return Err(FitError::Version(version.version));
    }
    let bench: Bench = serde_json::from_str(text)?;
    let name = bench.host.clone().unwrap_or_else(|| "freetoken".into());
    let template = |link: &str, description: String| {
        let mut made = Link::affine(format!("{name}-{link}"), 0, 0);
        made.kind = LinkKind::Pcie;
        made.description = description;
        made.source = source.into();
        made.date = bench.timestamp.clone().unwrap_or_else(|| "undated".into());
        made
    };
    let mut links = Vec::new();
    if let Some(linear) = bench.ceilings.and_then(|ceilings| ceilings.pcie_linear_h2d_gbs) {
        let mut link = template("linear", "linear pinned host-to-device copy".into());
        link.cost = rate("ceilings.pcie_linear_h2d_gbs", linear)?.into_cost();
        links.push(link);
    }
    let threads = bench.cpu.and_then(|cpu| cpu.threads_used).unwrap_or(0);
    for (format, kernel) in &bench.dtype_kernels {
        let Some(gather) = kernel.pcie_gather_gbs else { continue };
        let field = |figure: &str| format!("dtype_kernels.{format}.{figure}");
        let mut link = template(format, format!("gather of {format} experts from pinned memory"));
        let gather = rate(&field("pcie_gather_gbs"), gather)?;
        link.cost = gather.into_cost();
        if let Some(cpu) = kernel.cpu_moe_gbs {
            let cpu = rate(&field("cpu_moe_gbs"), cpu)?;
            link.host_kernel =
                Some(HostKernel { ps_per_mib: cpu.ps_per_mib(), ..HostKernel::default() });
            if let (Some(gather_beside), Some(cpu_beside)) =
                (kernel.pcie_gather_overlap_gbs, kernel.cpu_moe_overlap_gbs)
            {
                link.contention.host = vec![HostContention {
                    threads,
                    copy_permille: gather
                        .slowdown(rate(&field("pcie_gather_overlap_gbs"), gather_beside)?),
                    host_permille: cpu.slowdown(rate(&field("cpu_moe_overlap_gbs"), cpu_beside)?),
                    host_ps_per_mib: cpu.ps_per_mib(),
                    more_ps_per_mib: 0,
                    handoff_ps: 0,
                }];
            }
        }
        links.push(link);
    }
    if links.is_empty() {
        return Err(FitError::NoLinks);
    }
    Ok(MachineProfile {
        description: format!(
            "FreeToken calibration{}",
            bench.gpu.and_then(|gpu| gpu.name).map_or_else(String::new, |gpu| format!(" of {gpu}"))
        ),
        name,
        source: source.into(),
        date: bench.timestamp.unwrap_or_else(|| "undated".into()),
        hbm: None,
        links,
        other_paths: Vec::new(),
    })
}

/// A rate in GB/s that passed the checks.
#[derive(Clone, Copy)]
struct Rate(f64);

fn rate(field: &str, gb_s: f64) -> Result<Rate, FitError> {
    if gb_s > 0.0 && gb_s <= FASTEST_GB_S {
        return Ok(Rate(gb_s));
    }
    let why = format!("is {gb_s} GB/s, must be over 0 and at most {FASTEST_GB_S}");
    Err(FitError::BadFigure { field: field.into(), why })
}

impl Rate {
    fn ps_per_mib(self) -> u64 {
        (MIB as f64 / self.0 * 1e3).round() as u64
    }

    fn into_cost(self) -> TransferCost {
        TransferCost::Affine { fixed_ps: 0, ps_per_mib: self.ps_per_mib() }
    }

    fn slowdown(self, beside: Self) -> u32 {
        ((self.0 / beside.0 * 1000.0).round() as u32).max(1000)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

/// The fields that are used; the file has more.
#[derive(Deserialize)]
struct Bench {
    timestamp: Option<String>,
    host: Option<String>,
    gpu: Option<Gpu>,
    cpu: Option<Cpu>,
    ceilings: Option<Ceilings>,
    #[serde(default)]
    dtype_kernels: BTreeMap<String, Kernel>,
}

#[derive(Deserialize)]
struct Gpu {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Cpu {
    threads_used: Option<u32>,
}

#[derive(Deserialize)]
struct Ceilings {
    pcie_linear_h2d_gbs: Option<f64>,
}

#[derive(Deserialize)]
struct Kernel {
    cpu_moe_gbs: Option<f64>,
    pcie_gather_gbs: Option<f64>,
    cpu_moe_overlap_gbs: Option<f64>,
    pcie_gather_overlap_gbs: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the public example (FreeToken issue 436), in the layout of version 4.
    const EXAMPLE: &str = r#"{
        "version": 4, "timestamp": "2026-09-01T00:00:00", "host": "box",
        "gpu": {"index": 0, "name": "GPU"}, "cpu": {"physical_cores": 16, "threads_used": 16},
        "threshold": 2.0, "ceilings": {"pcie_linear_h2d_gbs": 14.2, "cpu_stream_read_gbs": 40.0},
        "dtypes": {"nvfp4": "hybrid"},
        "dtype_kernels": {
            "nvfp4": {"expert_bytes": 1769472, "cpu_moe_gbs": 29.97, "pcie_gather_gbs": 13.09,
                      "cpu_moe_overlap_gbs": 21.89, "pcie_gather_overlap_gbs": 8.41, "note": ""},
            "bf16": {"cpu_moe_gbs": 20.0, "pcie_gather_gbs": 10.0,
                     "cpu_moe_overlap_gbs": null, "pcie_gather_overlap_gbs": null},
            "fp8_block": {"cpu_moe_gbs": null, "pcie_gather_gbs": 13.0}
        }, "workloads": {}
    }"#;

    #[test]
    fn the_public_example() {
        let machine = import_benchbw(EXAMPLE, "issue 436").unwrap();
        let names: Vec<&str> = machine.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["box-linear", "box-bf16", "box-fp8_block", "box-nvfp4"]);
        let nvfp4 = machine.link("box-nvfp4").unwrap();
        // 1 MiB at 13.09 GB/s, and at 29.97 GB/s.
        assert_eq!(nvfp4.transfer_ps(MIB), 80_105_118);
        assert_eq!(nvfp4.host_kernel_ps(MIB), Some(34_987_521));
        let beside = nvfp4.contention.host[0];
        assert_eq!((beside.threads, beside.copy_permille, beside.host_permille), (16, 1556, 1369));
        // 8.41 / (8.41 + 21.89) = 27.8%
        assert!((nvfp4.fetch_share(MIB).unwrap() - 0.278).abs() < 5e-4);
        // Not overlapped: 10 / 20. No CPU kernel: nothing to share.
        assert!((machine.link("box-bf16").unwrap().fetch_share(MIB).unwrap() - 0.5).abs() < 1e-6);
        assert_eq!(machine.link("box-fp8_block").unwrap().fetch_share(MIB), None);
    }

    #[test]
    fn it_survives_toml() {
        let machine = import_benchbw(EXAMPLE, "issue 436").unwrap();
        assert_eq!(MachineProfile::from_toml_str(&machine.to_toml().unwrap()).unwrap(), machine);
    }

    #[test]
    fn nonsense_is_refused() {
        let refusal = |text: &str| import_benchbw(text, "s").unwrap_err();
        assert!(matches!(refusal("{"), FitError::Json(_)));
        let error = refusal(&EXAMPLE.replace("\"version\": 4", "\"version\": 5"));
        assert_eq!(error.to_string(), "calibration version 5 is not known, only 4 is");
        let error = refusal(&EXAMPLE.replace("8.41", "-8.41"));
        assert_eq!(
            error.to_string(),
            "calibration, dtype_kernels.nvfp4.pcie_gather_overlap_gbs: is -8.41 GB/s, must be over \
             0 and at most 10000"
        );
        assert!(matches!(refusal(r#"{"version": 4}"#), FitError::NoLinks));
    }
}
