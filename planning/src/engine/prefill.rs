//! How fast an engine reads a prompt: chunks of tokens through every layer.
//!
//! A chunk takes the accelerator's arithmetic, what it reads of its memory once, and what lies on the host: experts
//! copied over the link for the chunk, or computed where they are, whichever is less. Larger chunks copy less often.

use super::SpeedFigures;
use super::speed::host_class;

/// One chunk of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Class of the accelerator.
    pub device: &'static str,
    /// Tokens.
    pub tokens: f64,
    /// Operations a second in 16 bits of all accelerators that work at once.
    pub compute: f64,
    /// Their memory's rate, bytes a second.
    pub memory: f64,
    /// Parameters that every token uses outside the routed experts, embedding left out.
    pub dense: f64,
    /// Parameters of routed experts that a token uses.
    pub routed: f64,
    /// Bytes of all routed experts that the chunk touches.
    pub routed_bytes: f64,
    /// Bytes outside them.
    pub dense_bytes: f64,
    /// Of the routed experts, the share on the host.
    pub on_host: f64,
    /// The rate of host memory that programs reach, bytes a second.
    pub host: f64,
    /// Cores of the host that compute.
    pub cores: f64,
    /// Experts on the host are always copied, never computed there.
    pub always_copied: bool,
    /// What large copies from the host reach, bytes a second.
    pub link: Option<f64>,
    /// Layers.
    pub layers: f64,
    /// Bytes of keys and values that stand before the chunk's middle.
    pub past: f64,
}

impl SpeedFigures {
    /// What a chunk takes with an engine of this kind, seconds.
    #[must_use]
    pub fn chunk(&self, kind: &str, chunk: &Chunk) -> f64 {
        let get = |name: &str, otherwise| self.value(kind, name, otherwise);
        let reached = self.of_device(kind, "compute_share", chunk.device, 0.25);
        let here = chunk.dense + chunk.routed * (1.0 - chunk.on_host);
        // Few tokens fill no tile of a matrix.
        let full = 1.0 + get("half_full_tokens", 100.0) / chunk.tokens;
        let compute = 2.0 * here * chunk.tokens * full / (reached * chunk.compute);
        let resident = chunk.dense_bytes + chunk.routed_bytes * (1.0 - chunk.on_host);
        let read = resident / (get("gpu_share", 0.85) * chunk.memory);
        let past = chunk.past * chunk.tokens / (get("past_tokens", 20.0) * chunk.memory);
        let mut host = 0.0;
        if chunk.on_host > 0.0 {
            let class = host_class(chunk.host);
            let rate = get(&format!("core_gflops.{class}"), 150.0) * 1e9 * chunk.cores;
            let computed = 2.0 * chunk.routed * chunk.on_host * chunk.tokens / rate;
            let copied = chunk.link.map_or(f64::INFINITY, |link| {
                chunk.routed_bytes * chunk.on_host / (get("copy_share", 0.5) * link)
            });
            host = match chunk.always_copied && copied.is_finite() {
                true => copied,
                false => computed.min(copied),
            };
        }
        compute + read + past + host
    }
}
