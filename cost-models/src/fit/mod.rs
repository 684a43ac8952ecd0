//! Profiles fitted to measurements.
//!
//! [`fit_links`] reads raw timings of a machine's links, its memory and its host, and gives a [`MachineProfile`] with
//! residuals; [`benchbw`] reads the calibration that FreeToken writes. `docs/link-model.md` has the model and how well
//! it fits. Nothing here is chosen: every figure is a median, a line through medians, or a ratio of both.

pub mod benchbw;
mod contention;
mod disk;
mod error;
mod grid;
mod line;
mod residuals;
mod steps;
mod submission;
mod table;

use std::fmt;
use std::io::Read;

pub use disk::{FittedDisk, fit_disk};
pub use error::FitError;
pub use residuals::{Errors, Residual};

use self::table::{Points, Table, bytes_per_second, show_rate};
use crate::link::{Link, LinkKind, TransferCost};
use crate::machine::{HbmModel, MachineProfile};

/// Modes that carry experts at a link's full speed, the first that was measured being the link itself.
const COPY_MODES: [&str; 2] = ["pinned-h2d", "p2p"];
/// A copy outside these rates, in bytes a second, is a mistake of units rather than a link.
const PLAUSIBLE_LINK: std::ops::Range<f64> = 1e8..1e13;
/// The same for an accelerator's own memory.
const PLAUSIBLE_MEMORY: std::ops::Range<f64> = 2e10..1e14;

/// What the measurements do not say about themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitLabel {
    /// The machine's name; the device of the first row, in lower case, where it is `None`.
    pub name: Option<String>,
    /// Who measured, where and how.
    pub source: String,
    /// When.
    pub date: String,
}

/// A profile, how well it fits, and what looked odd.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedProfile {
    /// The profile.
    pub profile: MachineProfile,
    /// One for each link and mode that was fitted.
    pub residuals: Vec<Residual>,
    /// For a person to read before believing the profile.
    pub warnings: Vec<String>,
}

impl fmt::Display for FittedProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for residual in &self.residuals {
            writeln!(f, "{residual}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

/// Fits a machine's profile to raw timings: CSV with columns `device,link,mode,bytes,transfers,ms`.
///
/// # Errors
/// [`FitError`] when a column is missing, a value is impossible, or a link has too few points for a curve.
pub fn fit_links(reader: impl Read, label: &FitLabel) -> Result<FittedProfile, FitError> {
    let table = Table::read(reader)?;
    let mut fit = Fit { table: &table, residuals: Vec::new(), warnings: Vec::new() };
    let name = label.name.clone().unwrap_or_else(|| table.device.to_lowercase());
    let hbm = fit.memory()?;
    let (mut links, mut other_paths) = (Vec::new(), Vec::new());
    for measured in table.links() {
        let Some(main) = main_mode(&table, measured) else { continue };
        for (mode, points) in table.modes(measured).filter(|(mode, _)| is_path(mode)) {
            let mut link = fit.link(&name, measured, mode, points)?;
            (link.source, link.date) = (label.source.clone(), label.date.clone());
            if mode == main {
                fit.surroundings(&mut link, measured, mode, hbm.as_ref());
                links.push(link);
            } else {
                link.name = format!("{}-{mode}", link.name);
                other_paths.push(link);
            }
        }
    }
    if links.is_empty() {
        return Err(FitError::NoLinks);
    }
    let profile = MachineProfile {
        description: format!("{}: links, memory and contention as measured", table.device),
        name,
        source: label.source.clone(),
        date: label.date.clone(),
        hbm,
        links,
        other_paths,
    };
    Ok(FittedProfile { profile, residuals: fit.residuals, warnings: fit.warnings })
}

struct Fit<'a> {
    table: &'a Table,
    residuals: Vec<Residual>,
    warnings: Vec<String>,
}

impl Fit<'_> {
    fn curve(
        &mut self,
        link: &str,
        mode: &str,
        points: &Points,
    ) -> Result<crate::BurstCurve, FitError> {
        let curve = grid::fit_curve(points, link, mode)?;
        let at_points = grid::at_points(&curve, points);
        self.warnings.extend(at_points.doubt(&format!("{link}, {mode},")));
        self.residuals.push(Residual {
            link: link.into(),
            mode: mode.into(),
            points: points.len(),
            at_points,
            left_out: grid::left_out(&curve, points),
        });
        let plausible = if link == "hbm" { PLAUSIBLE_MEMORY } else { PLAUSIBLE_LINK };
        if let Some((&(bytes, transfers), &ps)) = points.iter().next_back() {
            let rate = bytes_per_second(bytes, transfers, ps);
            if !plausible.contains(&rate) {
                self.warnings.push(format!(
                    "{link}, {mode}: {} at {bytes} bytes is not plausible; are the times in \
                     milliseconds and the sizes in bytes?",
                    show_rate(rate)
                ));
            }
        }
        Ok(curve)
    }

    fn memory(&mut self) -> Result<Option<HbmModel>, FitError> {
        let reads = self.table.points("hbm", "kernel-read");
        let Some(chain) = self.table.points("hbm", "kernel-chain") else {
            let Some(reads) = reads else {
                self.warnings.push("no hbm rows: kernels cannot be timed on this machine".into());
                return Ok(None);
            };
            self.warnings.push(
                "no hbm,kernel-chain rows: kernel times include what an event pair costs".into(),
            );
            let chain = self.curve("hbm", "kernel-read", reads)?;
            return Ok(Some(HbmModel::new(0, chain)));
        };
        let chain = self.curve("hbm", "kernel-chain", chain)?;
        let mut beyond: Vec<f64> = reads
            .into_iter()
            .flatten()
            .map(|(&(bytes, pieces), &ps)| ps as f64 - chain.burst_ps(bytes, pieces) as f64)
            .collect();
        let event_pair = line::median(&mut beyond).unwrap_or(0.0).max(0.0);
        let mut hbm = HbmModel::new(event_pair.round() as u64, chain);
        hbm.step = steps::overhead(self.table, &hbm);
        Ok(Some(hbm))
    }

    fn link(
        &mut self,
        machine: &str,
        measured: &str,
        mode: &str,
        points: &Points,
    ) -> Result<Link, FitError> {
        let curve = self.curve(measured, mode, points)?;
        let mut link = Link::affine(format!("{machine}-{}", short(self.table, measured)), 0, 0);
        link.cost = TransferCost::Curve(curve);
        link.kind = kind(measured);
        link.description = format!("{measured}, {mode}");
        Ok(link)
    }

    fn surroundings(
        &mut self,
        link: &mut Link,
        measured: &str,
        mode: &str,
        hbm: Option<&HbmModel>,
    ) {
        if let Some(permille) = contention::copy_beside_kernel(self.table, measured, link) {
            link.contention.copy_beside_kernel_permille = permille;
        }
        if let Some(hbm) = hbm {
            link.contention.kernel_beside_copy_permille =
                contention::kernel_beside_copy(self.table, measured, link, hbm);
        }
        link.contention.host = contention::beside_host(self.table, measured, mode, link, hbm);
        if link.contention.host.is_empty() {
            link.host_kernel = contention::host_alone(self.table);
        }
        match hbm.and_then(|hbm| submission::fit_rounds(self.table, measured, link, hbm)) {
            Some(rounds) => {
                if rounds.drift.abs() > 0.05 {
                    self.warnings.push(format!(
                        "{measured}: copies in chain rounds took {:+.1}% of their time in bursts",
                        100.0 * rounds.drift
                    ));
                }
                self.residuals.push(rounds.residual);
            }
            None => self.warnings.push(format!(
                "{measured}: no chain rows (or none without copies): submitting copies counts as free"
            )),
        }
    }
}

/// Whether a mode moves bytes over the link alone; the others measure surroundings.
fn is_path(mode: &str) -> bool {
    !submission::ROUND_MODES.contains(&mode) && !mode.contains("-while-")
}

fn main_mode<'a>(table: &'a Table, measured: &str) -> Option<&'a str> {
    let paths = || table_modes(table, measured).filter(|mode| is_path(mode));
    COPY_MODES
        .iter()
        .find_map(|copy| paths().find(|mode| mode == copy))
        .or_else(|| paths().find(|mode| *mode != "kernel-read"))
        .or_else(|| paths().next())
}

fn table_modes<'a>(table: &'a Table, measured: &str) -> impl Iterator<Item = &'a str> {
    table.modes(measured).map(|(mode, _)| mode)
}

/// `nvlink-peer` is `nvlink`, unless another link would be called the same.
fn short<'a>(table: &Table, measured: &'a str) -> &'a str {
    let head = |name: &'a str| name.split('-').next().unwrap_or(name);
    let same = table.links().filter(|other| other.split('-').next() == Some(head(measured)));
    if same.count() > 1 { measured } else { head(measured) }
}

fn kind(measured: &str) -> LinkKind {
    const KINDS: [(&str, LinkKind); 6] = [
        ("pcie", LinkKind::Pcie),
        ("nvlink-c2c", LinkKind::NvlinkC2c),
        ("nvlink", LinkKind::NvlinkPeer),
        ("unified", LinkKind::Unified),
        ("nvme", LinkKind::Disk),
        ("disk", LinkKind::Disk),
    ];
    let known = KINDS.into_iter().find(|(prefix, _)| measured.starts_with(prefix));
    known.map_or(LinkKind::Other, |(_, kind)| kind)
}

#[cfg(test)]
mod tests;
