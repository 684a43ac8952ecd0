//! What the accelerator itself takes: kernels that read its memory.
//!
//! Decoding is bound by memory: a kernel costs what it reads. Where the machine was measured its
//! own curve says how much; elsewhere the data sheet's rate, a share of it that kernels reach, and
//! a fixed cost for each.

use hotset_cost_models::hardware::Basis;
use hotset_cost_models::model::layer::LatentAttention;
use hotset_cost_models::model::{KvFormat, Mixer, WeightBytes};
use hotset_cost_models::{HbmModel, Model, find_machine};

use crate::Request;
use crate::coefficient::Coefficient;

/// NVIDIA's aiconfigurator: kernels reach so much of the memory's rate, and cost so much each.
const EFFICIENCY: f64 = 0.8;
const LAUNCH_PS: f64 = 3e6;

/// What kernels cost on one accelerator.
pub(crate) enum Kernels {
    /// Measured over bytes and pieces.
    Measured(Box<HbmModel>),
    /// A rate and a fixed cost.
    Rate {
        /// Picoseconds a byte.
        ps_per_byte: f64,
        /// Picoseconds a kernel.
        launch_ps: f64,
    },
}

impl Kernels {
    /// The machine's, and what they rest on.
    pub fn of(request: &Request) -> (Self, Vec<Coefficient>) {
        let machine = &request.machine;
        let profile = machine.profile.as_ref().and_then(|name| find_machine(name).ok());
        if let (None, Some(hbm)) =
            (request.pace.efficiency, profile.as_ref().and_then(|profile| profile.hbm.clone()))
        {
            let curve = Coefficient {
                name: "kernels".to_owned(),
                value: format!("curve, {:.0} GB/s at most", hbm.saturated_gb_s()),
                basis: Basis::Measured,
                source: profile.map(|profile| profile.source).unwrap_or_default(),
            };
            return (Self::Measured(Box::new(hbm)), vec![curve]);
        }
        let rate = &machine.memory_rate;
        let (efficiency, basis, source) = match request.pace.efficiency {
            Some(given) => (given, Basis::Assumed, "`Pace::efficiency`"),
            None => (EFFICIENCY, Basis::Published, "aiconfigurator's default"),
        };
        let coefficients = vec![
            Coefficient {
                name: "accelerator memory".to_owned(),
                value: format!("{:.0} GB/s", rate.value as f64 / 1e9),
                basis: rate.basis,
                source: rate.source.clone(),
            },
            Coefficient {
                name: "share that kernels reach".to_owned(),
                value: match request.pace.efficiency {
                    Some(_) => format!("{:.0}%", efficiency * 100.0),
                    None => format!("{:.0}%, all where everything overlaps", efficiency * 100.0),
                },
                basis,
                source: source.to_owned(),
            },
            Coefficient {
                name: "a kernel's fixed cost".to_owned(),
                value: "3 us".to_owned(),
                basis: Basis::Published,
                source: "aiconfigurator's default".to_owned(),
            },
        ];
        let ps_per_byte = 1e12 / (rate.value as f64 * efficiency);
        (Self::Rate { ps_per_byte, launch_ps: LAUNCH_PS }, coefficients)
    }

    /// The same at the most that can be: where only a data sheet gives the rate, all of it, and
    /// kernels that cost nothing to launch.
    pub fn fastest(&self, request: &Request) -> Self {
        match self {
            Self::Measured(hbm) => Self::Measured(hbm.clone()),
            Self::Rate { ps_per_byte, .. } => Self::Rate {
                ps_per_byte: match request.pace.efficiency {
                    Some(_) => *ps_per_byte,
                    None => 1e12 / request.machine.memory_rate.value as f64,
                },
                launch_ps: 0.0,
            },
        }
    }

    /// A kernel that reads `bytes` in one piece, in picoseconds.
    pub fn read(&self, bytes: f64) -> f64 {
        match self {
            Self::Measured(hbm) => hbm.kernel_ps(bytes as u64, 1) as f64,
            Self::Rate { ps_per_byte, launch_ps } if bytes > 0.0 => bytes * ps_per_byte + launch_ps,
            Self::Rate { .. } => 0.0,
        }
    }

    /// A kernel that reads a mean of `pieces` pieces of `bytes` each, in picoseconds.
    pub fn read_pieces(&self, bytes: u64, pieces: f64) -> f64 {
        match self {
            Self::Measured(hbm) => between(pieces, |pieces| hbm.kernel_ps(bytes, pieces)),
            Self::Rate { .. } => self.read(bytes as f64 * pieces),
        }
    }
}

/// The cost of a mean number of things: on the line between the whole numbers around it.
pub(crate) fn between(count: f64, cost: impl Fn(u32) -> u64) -> f64 {
    let whole = count.floor();
    let low = cost(whole as u32) as f64;
    if count == whole {
        return low;
    }
    low + (cost(whole as u32 + 1) as f64 - low) * (count - whole)
}

/// Bytes of keys, values and states that one decode step reads for one sequence: sparse attention
/// reads the keys of its index and the tokens that it chose.
pub(crate) fn kv_read(request: &Request, context: u64) -> u64 {
    past_read(&request.model, request.storage.kv, request.parallel.tensor, context)
}

/// The same of a model alone.
pub(crate) fn past_read(model: &Model, format: KvFormat, tensor: u32, context: u64) -> u64 {
    let chosen = model.layers.iter().find_map(|layer| match &layer.mixer {
        Mixer::Latent(latent) => latent.indexer.map(|indexer| indexer.top_k),
        _ => None,
    });
    let of_layer = |mixer: &Mixer| match (mixer, chosen) {
        (Mixer::Latent(latent), Some(chosen)) => {
            let plain = LatentAttention { indexer: None, ..*latent };
            let row = plain.row_bytes(format);
            let index = latent.row_bytes(format).saturating_sub(row);
            let read = row.saturating_mul(context.min(chosen));
            read.saturating_add(index.saturating_mul(context))
        }
        _ => {
            let kept = mixer.kv(context, format, tensor);
            // A state is read and written.
            kept.tokens.saturating_add(kept.state.saturating_mul(2))
        }
    };
    model.layers.iter().map(|layer| of_layer(&layer.mixer)).fold(0, u64::saturating_add)
}

/// Bytes of weights that every step reads: the embedding only where it is the output head too.
pub(crate) fn always_read(model: &Model, bytes: &WeightBytes) -> (u64, u64) {
    let head = if model.tied { bytes.embed } else { bytes.lm_head };
    (bytes.dense.saturating_add(bytes.shared), head)
}

#[cfg(test)]
mod tests {
    use hotset_cost_models::find_hardware;

    use super::*;

    fn request(model: &str, machine: &str) -> Request {
        Request::new(Model::builtin(model).unwrap(), find_hardware(machine).unwrap())
    }

    #[test]
    fn a_mean_lies_on_the_line_between_whole_numbers() {
        let square = |n: u32| u64::from(n * n);
        assert_eq!(between(2.0, square), 4.0);
        assert_eq!(between(2.5, square), 6.5);
        assert_eq!(between(0.0, square), 0.0);
    }

    #[test]
    fn a_measured_machine_uses_its_curve_and_others_a_rate() {
        let (measured, coefficients) = Kernels::of(&request("gpt-oss-20b", "h200"));
        assert!(matches!(measured, Kernels::Measured(_)));
        assert_eq!(coefficients.len(), 1);
        let (rate, coefficients) = Kernels::of(&request("gpt-oss-20b", "rtx-4090"));
        assert_eq!(coefficients.len(), 3);
        // 1,008 GB/s at 80%, and 3 us.
        let expected = 1e6 / (1008e9 * 0.8) * 1e12 + 3e6;
        assert!((rate.read(1e6) - expected).abs() < 1.0, "{}", rate.read(1e6));
        assert_eq!(rate.read(0.0), 0.0);
    }

    #[test]
    fn sparse_attention_reads_what_it_chose() {
        let sparse = request("GLM-5.2", "h200");
        let (short, long) = (kv_read(&sparse, 1024), kv_read(&sparse, 131_072));
        let kept = sparse.model.kv(131_072, sparse.storage.kv, 1).tokens;
        assert_eq!(
            short,
            sparse.model.kv(1024, sparse.storage.kv, 1).tokens,
            "fewer than it chooses"
        );
        assert!(long < kept / 10, "{long} of {kept}");
        let full = request("DeepSeek-V3", "h200");
        assert_eq!(kv_read(&full, 4096), full.model.kv(4096, full.storage.kv, 1).tokens);
    }
}
