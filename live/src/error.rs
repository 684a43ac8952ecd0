//! What can go wrong in a live run.

use thiserror::Error;

/// Why a live run failed, or could not begin.
#[derive(Debug, Error)]
pub enum LiveError {
    /// There is no driver to load.
    #[error(
        "no CUDA driver here (libcuda cannot be loaded): a live run needs an NVIDIA GPU and its driver; \
         everything else works without"
    )]
    NoDriver,
    /// There is no such accelerator.
    #[error("there is no GPU {ordinal}: the driver sees {attached}")]
    NoGpu {
        /// Asked for.
        ordinal: usize,
        /// There.
        attached: usize,
    },
    /// The two accelerators cannot read each other's memory.
    #[error("the GPUs cannot read each other's memory: experts can lie in host memory instead")]
    NoPeer,
    /// The driver refused.
    #[error("{what}: the driver says: {said}")]
    Driver {
        /// What was tried.
        what: &'static str,
        /// Its words.
        said: String,
    },
    /// There is not so much memory.
    #[error(
        "{bytes} bytes of {whose} memory cannot be had: take a smaller expert size or fewer slots"
    )]
    Memory {
        /// Whose.
        whose: &'static str,
        /// How many.
        bytes: u64,
    },
    /// Experts too small to compute.
    #[error(
        "layer {layer} has experts of {bytes} bytes: a live run needs {least} at least (give an \
         expert size)"
    )]
    TooSmall {
        /// The layer's index.
        layer: usize,
        /// Its experts' bytes.
        bytes: u64,
        /// The least.
        least: u64,
    },
    /// Experts of which nothing can be timed.
    #[error(
        "experts of {largest} bytes, {pool} in all, cannot be timed: at least two as large are copied between, \
         and kernels read {most} bytes at most: give another expert size"
    )]
    Unmeasurable {
        /// Bytes of the largest.
        largest: u64,
        /// Bytes of all.
        pool: u64,
        /// Bytes that kernels read in turn.
        most: u64,
    },
    /// Experts that the host cannot compute because it does not have them.
    #[error(
        "host cores cannot compute experts that lie in a GPU's memory: take experts in host memory"
    )]
    HostLacksExperts,
    /// A kernel's result is not what its expert gives.
    #[error("{wrong} of {checked} experts gave a wrong sum; the first: {first}")]
    Wrong {
        /// How many.
        wrong: u64,
        /// Of how many.
        checked: u64,
        /// The first, in words.
        first: String,
    },
    /// The replay refused.
    #[error(transparent)]
    Sim(#[from] hotset_sim::SimError),
}
