//! Where all experts lie: pinned host memory, or an accelerator's.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hotset_traces::Shape;
use rayon::prelude::*;

use crate::LiveError;
use crate::gpu::{DeviceMemory, Gpu, PinnedMemory, Stream};
use crate::weights::{self, Input, ROW_BYTES, Reference};

/// The experts' sizes and keys.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Bytes of an expert of each layer.
    pub expert_bytes: Vec<usize>,
    /// Dense key of each layer's expert 0, and the number of experts.
    pub bases: Vec<u32>,
    /// Bytes from expert to expert, and from slot to slot: the largest, in whole vectors.
    pub stride: usize,
    /// Experts of the widest layer.
    pub widest: u32,
    /// The most experts of a layer that a token uses.
    pub top_k: u32,
}

impl Layout {
    /// # Errors
    /// [`LiveError::TooSmall`].
    pub fn of(shape: &Shape) -> Result<Self, LiveError> {
        let mut bases: Vec<u32> = (0..shape.layers().len()).map(|l| shape.key_base(l)).collect();
        bases.push(shape.total_experts());
        let bytes = shape.layers().iter().enumerate().map(|(layer, of)| {
            let (bytes, least) = (of.expert_bytes, ROW_BYTES as u64);
            let fits = usize::try_from(bytes).ok().filter(|_| bytes >= least);
            fits.ok_or(LiveError::TooSmall { layer, bytes, least })
        });
        let expert_bytes: Vec<usize> = bytes.collect::<Result<_, _>>()?;
        let largest = expert_bytes.iter().copied().max().unwrap_or(ROW_BYTES);
        let stride = largest.next_multiple_of(256);
        let top_k = shape.layers().iter().map(|layer| layer.top_k).max().unwrap_or(1).max(1);
        Ok(Self { expert_bytes, bases, stride, widest: shape.max_experts(), top_k })
    }

    /// Experts over all layers.
    #[must_use]
    pub fn experts(&self) -> u32 {
        self.bases.last().copied().unwrap_or(0)
    }

    /// The layer of a dense key.
    #[must_use]
    pub fn layer_of(&self, key: u32) -> usize {
        self.bases.partition_point(|&base| base <= key).saturating_sub(1)
    }

    /// The dense key of a layer's expert.
    #[must_use]
    pub fn key(&self, layer: usize, expert: u32) -> u32 {
        self.bases[layer] + expert
    }

    /// Rows of a layer's experts.
    #[must_use]
    pub fn rows(&self, layer: usize) -> u32 {
        weights::rows(self.expert_bytes[layer] as u64)
    }

    fn total(&self) -> Result<usize, LiveError> {
        let experts = self.experts() as usize;
        let too_many = LiveError::Memory {
            whose: "pinned host",
            bytes: (self.stride as u64).saturating_mul(experts as u64),
        };
        self.stride
            .checked_mul(experts)
            .filter(|&bytes| bytes < isize::MAX as usize)
            .ok_or(too_many)
    }
}

/// All experts in pinned host memory, and the flags that host cores and accelerator share.
#[derive(Debug)]
pub struct HostPool {
    experts: PinnedMemory,
    flags: PinnedMemory,
    layout: Layout,
}

/// An expert where it lies.
#[derive(Debug, Clone, Copy)]
pub struct HostExpert<'a> {
    /// Its weights, those that are copied and not computed included.
    pub weights: &'a [u16],
    /// Its rows.
    pub rows: u32,
}

impl HostPool {
    /// Allocates and fills the pool; the references are what each expert must give.
    ///
    /// # Errors
    /// [`LiveError::Memory`], [`LiveError::Driver`].
    pub fn new(
        gpu: &Arc<Gpu>,
        layout: &Layout,
        inputs: &[Input],
    ) -> Result<(Self, Vec<Reference>), LiveError> {
        let mut experts = PinnedMemory::new(gpu, layout.total()?)?;
        let stride = layout.stride;
        let bytes = &mut experts.bytes_mut()?[..stride * layout.experts() as usize];
        let fill = |(key, expert): (usize, &mut [u8])| {
            let key = key as u32;
            let layer = layout.layer_of(key);
            let weights: &mut [u16] = bytemuck::cast_slice_mut(expert);
            weights::fill(key, weights);
            let rows = layout.rows(layer) as usize;
            Reference::of(&weights[..rows * ROW_BYTES / 2], &inputs[layer])
        };
        let references = bytes.par_chunks_exact_mut(stride).enumerate().map(fill).collect();
        let flags = PinnedMemory::new(gpu, 256)?;
        Ok((Self { experts, flags, layout: layout.clone() }, references))
    }

    /// A number that the accelerator and the host's cores leave each other.
    #[must_use]
    pub fn flag(&self, index: usize) -> &AtomicU32 {
        self.flags.atomic(index)
    }

    /// The memory of those numbers.
    #[must_use]
    pub fn flags(&self) -> &PinnedMemory {
        &self.flags
    }

    /// Experts over all layers.
    #[must_use]
    pub fn experts(&self) -> u32 {
        self.layout.experts()
    }

    /// The expert of a dense key.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn expert(&self, key: u32) -> HostExpert<'_> {
        let start = self.layout.stride * key as usize;
        let layer = self.layout.layer_of(key);
        let bytes = &self.experts.bytes()[start..start + self.layout.stride];
        HostExpert { weights: bytemuck::cast_slice(bytes), rows: self.layout.rows(layer) }
    }
}

/// Where the experts lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Pinned host memory.
    Host,
    /// Another accelerator's memory.
    Peer,
    /// The accelerator's own memory, outside the slots: the fastest link that a machine with one
    /// accelerator has.
    Device,
}

impl Source {
    /// Its name on the command line and in points.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Peer => "peer",
            Self::Device => "device",
        }
    }

    /// The name of its link in a file of measurements.
    #[must_use]
    pub fn link(self) -> &'static str {
        match self {
            Self::Host => "pcie",
            Self::Peer => "nvlink-peer",
            Self::Device => "device-copy",
        }
    }

    /// The mode in which copies over it are measured.
    #[must_use]
    pub fn mode(self) -> &'static str {
        match self {
            Self::Host => "pinned-h2d",
            Self::Peer | Self::Device => "p2p",
        }
    }
}

/// The memory that copies come from.
#[derive(Debug)]
pub enum Pool {
    /// The host's.
    Host(Arc<HostPool>),
    /// An accelerator's.
    Device(DeviceMemory),
}

impl Pool {
    /// Moves the experts of a host pool to where `source` says; `peer` holds them if they lie there.
    ///
    /// # Errors
    /// [`LiveError::NoPeer`], [`LiveError::Memory`], [`LiveError::Driver`].
    pub fn at(
        source: Source,
        gpu: &Arc<Gpu>,
        peer: Option<&Arc<Gpu>>,
        host: HostPool,
    ) -> Result<Self, LiveError> {
        let owner = match (source, peer) {
            (Source::Host, _) => return Ok(Self::Host(Arc::new(host))),
            (Source::Device, _) => gpu,
            (Source::Peer, Some(peer)) => {
                gpu.reach(peer)?;
                peer
            }
            (Source::Peer, None) => return Err(LiveError::NoPeer),
        };
        let bytes = host.layout.total()?;
        let memory = DeviceMemory::new(owner, bytes)?;
        let stream = Stream::new(owner)?;
        stream.copy_from_host((&memory, 0), (&host.experts, 0), bytes)?;
        stream.synchronize()?;
        gpu.make_current()?;
        Ok(Self::Device(memory))
    }

    /// Queues a copy out of the pool.
    ///
    /// # Errors
    /// [`LiveError::Driver`].
    pub fn copy(
        &self,
        stream: &Stream,
        to: (&DeviceMemory, usize),
        from: usize,
        len: usize,
    ) -> Result<(), LiveError> {
        match self {
            Self::Host(pool) => stream.copy_from_host(to, (&pool.experts, from), len),
            Self::Device(memory) => stream.copy_from_device(to, (memory, from), len),
        }
    }
}
