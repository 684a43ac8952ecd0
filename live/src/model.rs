//! A model on an accelerator: its experts where they lie, its dense weights, its kernels.

use std::sync::Arc;

use hotset_traces::Shape;

use crate::LiveError;
use crate::gpu::{DeviceMemory, Gpu, Kernels};
use crate::pool::{HostPool, Layout, Pool, Source};
use crate::weights::{self, Input, ROW_BYTES, Reference};

/// What live runs of one model share.
pub struct LiveModel {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) kernels: Kernels,
    pub(crate) layout: Layout,
    pub(crate) pool: Pool,
    pub(crate) references: Vec<Reference>,
    pub(crate) inputs: Arc<[Input]>,
    pub(crate) device_inputs: DeviceMemory,
    pub(crate) dense: Dense,
    source: Source,
    /// Where a peer holds the experts; it must outlive them.
    _peer: Option<Arc<Gpu>>,
}

/// The weights that a step reads for each layer beside the experts: one more gated MLP.
pub(crate) struct Dense {
    pub memory: DeviceMemory,
    pub stride: usize,
    pub rows: u32,
    pub bytes: u64,
}

impl LiveModel {
    /// Puts a model of this shape on accelerator 0 (and 1, where a peer holds the experts).
    ///
    /// # Errors
    /// [`LiveError`]: no driver, no accelerator, not enough memory, experts too small.
    pub fn new(shape: &Shape, dense_bytes: u64, source: Source) -> Result<Self, LiveError> {
        let layout = Layout::of(shape)?;
        let gpu = Gpu::open(0)?;
        let peer = match source {
            Source::Peer => Some(Gpu::open(1).map_err(|_| LiveError::NoPeer)?),
            Source::Host | Source::Device => None,
        };
        gpu.make_current()?;
        let kernels = Kernels::new(&gpu)?;
        let inputs: Arc<[Input]> = (0..layout.expert_bytes.len()).map(weights::input).collect();
        let (host, references) = HostPool::new(&gpu, &layout, &inputs)?;
        let pool = Pool::at(source, &gpu, peer.as_ref(), host)?;
        let device_inputs = DeviceMemory::new(&gpu, size_of_val(&inputs[..]))?;
        device_inputs.write(0, bytemuck::cast_slice(inputs.as_flattened()))?;
        let dense = Dense::new(&gpu, layout.expert_bytes.len(), dense_bytes)?;
        Ok(Self {
            gpu,
            kernels,
            layout,
            pool,
            references,
            inputs,
            device_inputs,
            dense,
            source,
            _peer: peer,
        })
    }

    /// The accelerator's name.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.gpu.name
    }

    /// Whether its kernels were compiled for it, and not those that are shipped.
    #[must_use]
    pub fn compiled_here(&self) -> bool {
        self.kernels.compiled
    }

    /// Where the experts lie.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Bytes of the largest expert.
    #[must_use]
    pub fn expert_bytes(&self) -> u64 {
        self.layout.expert_bytes.iter().copied().max().unwrap_or(0) as u64
    }

    /// Bytes that a step reads for each layer beside the experts.
    #[must_use]
    pub fn dense_bytes(&self) -> u64 {
        self.dense.bytes
    }
}

impl Dense {
    fn new(gpu: &Arc<Gpu>, layers: usize, bytes: u64) -> Result<Self, LiveError> {
        let too_much = || LiveError::Memory { whose: "the accelerator's", bytes };
        let length = usize::try_from(bytes).map_err(|_| too_much())?;
        let stride = length.max(ROW_BYTES).next_multiple_of(256);
        let total = stride.checked_mul(layers).ok_or_else(too_much)?;
        let memory = DeviceMemory::new(gpu, total)?;
        Ok(Self { memory, stride, rows: weights::rows(bytes), bytes })
    }
}
