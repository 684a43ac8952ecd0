//! Timings of this machine's link, kernels and host cores, by the very calls that the loop makes.
//!
//! Rows are those that `hotset link fit` reads (docs/link-model.md defines the modes); the kernels
//! are the gated MLPs of the live loop, and copies go from and to random places of pools as large
//! as all experts.

mod bench;
mod host;

use self::bench::{Bench, READ_POOL};
use crate::LiveError;
use crate::model::LiveModel;
use crate::pool::Source;
use crate::weights::ROW_BYTES;

/// One timing.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// `hbm`, `cpu`, or the link.
    pub link: &'static str,
    /// What was measured.
    pub mode: String,
    /// Bytes of a piece.
    pub bytes: u64,
    /// Copies, pieces or experts.
    pub transfers: u32,
    /// What it took.
    pub ms: f64,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// Bytes of copies, beside the model's own experts.
    pub sizes: Vec<u64>,
    /// Repeats of each timing.
    pub repeats: u32,
    /// Threads of the host that compute experts; 0: they are not measured.
    pub host_threads: u32,
}

const MIB: u64 = 1 << 20;

impl Default for Calibration {
    fn default() -> Self {
        let sizes = [
            MIB / 16,
            MIB / 4,
            MIB / 2,
            3 * MIB / 4,
            MIB,
            2 * MIB,
            3 * MIB,
            4 * MIB,
            6 * MIB,
            8 * MIB,
            12 * MIB,
            16 * MIB,
            32 * MIB,
        ];
        Self { sizes: sizes.to_vec(), repeats: 7, host_threads: 0 }
    }
}

/// Numbers of copies and of pieces.
const BURSTS: [u32; 5] = [1, 2, 4, 8, 16];
const PIECES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The most bytes that one measured kernel reads.
const MOST_READ: u64 = 384 * MIB;
/// Kernels or rounds in a chain.
const CHAIN: u32 = 100;
/// The kernels at both ends of a round.
const ROUND_KERNEL: u64 = 8 * MIB;

/// Measures a model's machine. `measured` hears of each timing as it comes.
///
/// # Errors
/// [`LiveError`].
pub fn calibrate(
    model: &LiveModel,
    what: &Calibration,
    measured: &mut dyn FnMut(&Timing),
) -> Result<(), LiveError> {
    let largest = model.expert_bytes();
    let pool = model.layout.stride as u64 * u64::from(model.layout.experts());
    check_measurable(largest, pool)?;
    let bench = Bench::new(model)?;
    let own = model.layout.expert_bytes.iter().map(|&bytes| bytes as u64);
    let mut sizes: Vec<u64> = what.sizes.iter().copied().chain(own).collect();
    sizes.retain(|&bytes| bytes >= ROW_BYTES as u64 && bytes <= bench.largest());
    sizes.sort_unstable();
    sizes.dedup();
    let mut kernels = sizes.clone();
    kernels.push(model.dense_bytes());
    kernels.retain(|&bytes| bytes >= ROW_BYTES as u64);
    kernels.sort_unstable();
    kernels.dedup();
    bench.warm_up()?;
    let mut grid = Grid { bench, repeats: what.repeats.max(1), measured };
    grid.kernels(&kernels)?;
    grid.link(model.source(), &sizes)?;
    if what.host_threads > 0 && model.source() == Source::Host {
        host::measure(&mut grid, model, what.host_threads, largest)?;
    }
    Ok(())
}

/// Copies go from one place of the experts to another as large, and kernels read an expert out of a fixed pool.
fn check_measurable(largest: u64, pool: u64) -> Result<(), LiveError> {
    if largest > READ_POOL as u64 || largest.saturating_mul(2) > pool {
        return Err(LiveError::Unmeasurable { largest, pool, most: READ_POOL as u64 });
    }
    Ok(())
}

struct Grid<'a> {
    bench: Bench<'a>,
    repeats: u32,
    measured: &'a mut dyn FnMut(&Timing),
}

impl Grid<'_> {
    fn row(&mut self, link: &'static str, mode: &str, (bytes, transfers): (u64, u32), ms: f64) {
        (self.measured)(&Timing { link, mode: mode.to_owned(), bytes, transfers, ms });
    }

    fn kernels(&mut self, sizes: &[u64]) -> Result<(), LiveError> {
        let chain = f64::from(CHAIN);
        for &bytes in sizes {
            for pieces in PIECES {
                if bytes * u64::from(pieces) > MOST_READ {
                    continue;
                }
                for _ in 0..self.repeats {
                    let ms = self.bench.timed_kernels(CHAIN, bytes, pieces)? / chain;
                    self.row("hbm", "kernel-chain", (bytes, pieces), ms);
                    if pieces <= 8 {
                        let ms = self.bench.timed_kernels(1, bytes, pieces)?;
                        self.row("hbm", "kernel-read", (bytes, pieces), ms);
                    }
                }
            }
        }
        for _ in 0..self.repeats {
            let ms = self.bench.timed_rounds(CHAIN, ROUND_KERNEL, 0)? / chain;
            self.row("hbm", "chain", (ROUND_KERNEL, 0), ms);
        }
        let (bytes, top_k) = self.bench.own_experts();
        let layers = self.bench.model.layout.expert_bytes.len() as u32;
        let mode = format!("step-{}+{top_k}", self.bench.model.dense_bytes());
        for layers in [layers.div_ceil(2), layers, 2 * layers] {
            // The first ones find the host's caches cold, as no step of a run does.
            for repeat in 0..8 * self.repeats + 8 {
                let ms = self.bench.timed_step(layers)?;
                if repeat >= 8 {
                    self.row("hbm", &mode, (bytes, layers), ms);
                }
            }
        }
        Ok(())
    }

    fn link(&mut self, source: Source, sizes: &[u64]) -> Result<(), LiveError> {
        let (link, mode) = (source.link(), source.mode());
        let chain = f64::from(CHAIN);
        for &bytes in sizes {
            for copies in BURSTS {
                for _ in 0..self.repeats {
                    let ms = self.bench.timed_copies(bytes, copies)?;
                    self.row(link, mode, (bytes, copies), ms);
                }
                if copies > 8 && bytes > 4 * MIB || bytes > 16 * MIB {
                    continue;
                }
                for _ in 0..self.repeats.div_ceil(2) {
                    let ms = self.bench.timed_rounds(CHAIN, bytes, copies)? / chain;
                    self.row(link, "scattered-chain", (bytes, copies), ms);
                }
            }
        }
        let largest = sizes.last().copied().unwrap_or(ROUND_KERNEL);
        for bytes in [8 * MIB, 12 * MIB, 16 * MIB, 32 * MIB] {
            for pieces in [1, 8] {
                let piece = bytes / u64::from(pieces);
                for _ in 0..self.repeats {
                    let ms =
                        self.bench.kernels_beside_copies(piece, pieces, largest.min(2 * MIB))?;
                    self.row(link, "kernel-while-copy", (piece, pieces), ms);
                }
            }
        }
        for bytes in [MIB, 4 * MIB, 16 * MIB] {
            for copies in [4, 8, 16] {
                if bytes > largest {
                    continue;
                }
                for _ in 0..self.repeats {
                    let ms = self.bench.copies_beside_kernels(bytes, copies)?;
                    self.row(link, "copy-while-hbm-read", (bytes, copies), ms);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_that_leave_nothing_to_measure_are_refused() {
        assert!(check_measurable(MIB, 2 * MIB).is_ok());
        assert!(check_measurable(2048 * MIB, 8192 * MIB).is_ok());
        // One expert alone; an expert larger than what kernels read in turn; no number at all.
        for (largest, pool) in [(MIB, MIB), (2049 * MIB, 8192 * MIB), (u64::MAX, u64::MAX)] {
            let told = check_measurable(largest, pool).unwrap_err().to_string();
            assert!(told.contains(&largest.to_string()) && told.contains("2147483648"), "{told}");
        }
    }
}
