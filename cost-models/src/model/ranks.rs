//! What one rank of several holds.
//!
//! Tensor parallelism slices matrices and copies what cannot be sliced; expert parallelism gives each rank whole
//! experts. A rank that slices experts holds the same ids as its neighbours in smaller slots; a rank of whole experts
//! has a cache of its own ids.

use super::layer::Experts;
use crate::format::{ExpertShape, SlotLayout, WeightFormat};

/// How a model is spread over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    /// Ranks over which matrices are sliced.
    pub tensor: u32,
    /// Ranks over which whole experts are spread; 1 slices experts over the tensor ranks instead.
    pub expert: u32,
}

impl Parallel {
    /// One accelerator.
    pub const NONE: Self = Self { tensor: 1, expert: 1 };

    /// Ranks over which each expert is sliced.
    pub fn expert_slices(self) -> u32 {
        if self.expert > 1 { 1 } else { self.tensor.max(1) }
    }

    /// Experts of a layer that one rank is home to: the larger share where they do not divide.
    pub fn experts_of(self, count: u32) -> u32 {
        count.div_ceil(self.expert.max(1))
    }
}

/// The larger share of `count` things over `ranks` ranks, at least one each: heads are copied where ranks outnumber
/// them.
pub(super) fn share(count: u64, ranks: u32) -> u64 {
    count.div_ceil(u64::from(ranks.max(1)))
}

impl Experts {
    /// Bytes of one expert's slot on one rank.
    ///
    /// A slice that is not whole groups of the format is padded to them.
    pub fn slot_bytes(&self, format: WeightFormat, layout: SlotLayout, parallel: Parallel) -> u64 {
        layout.bytes(slice(self.shape, format, parallel.expert_slices()), format)
    }
}

fn slice(shape: ExpertShape, format: WeightFormat, slices: u32) -> ExpertShape {
    if slices <= 1 {
        return shape;
    }
    let group = match format {
        // The last matrix contracts the sliced width; what it fell back to has the group that counts.
        WeightFormat::Gguf(kind) => kind.for_columns(u64::from(shape.inner_width)).block() as u32,
        other => other.group(),
    };
    let inner = shape.inner_width.div_ceil(slices);
    let inner_width = inner.checked_next_multiple_of(group).unwrap_or(u32::MAX);
    ExpertShape { inner_width, ..shape }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::GgmlType;

    #[test]
    fn slices_are_whole_groups() {
        let shape = ExpertShape::gated(2048, 768);
        let inner = |format, slices| slice(shape, format, slices).inner_width;
        assert_eq!(inner(WeightFormat::Bf16, 8), 96);
        assert_eq!(inner(WeightFormat::Nvfp4, 8), 96);
        assert_eq!(inner(WeightFormat::Mxfp4, 8), 96);
        assert_eq!(inner(WeightFormat::Fp8Block128, 8), 128, "96 is not a block of 128");
        assert_eq!(inner(WeightFormat::Gguf(GgmlType::Q4K), 4), 256);
        assert_eq!(inner(WeightFormat::Gguf(GgmlType::Q4K), 1), 768);
        // 1,408 columns fell back to blocks of 32.
        let lite = slice(ExpertShape::gated(2048, 1408), WeightFormat::Gguf(GgmlType::Q4K), 4);
        assert_eq!(lite.inner_width, 352);
    }

    #[test]
    fn expert_parallel_ranks_hold_whole_experts() {
        let spread = Parallel { tensor: 4, expert: 4 };
        assert_eq!(spread.expert_slices(), 1);
        assert_eq!(spread.experts_of(130), 33);
        assert_eq!(Parallel { tensor: 4, expert: 1 }.expert_slices(), 4);
        assert_eq!(share(8, 3), 3);
        assert_eq!(share(2, 8), 1, "copied once ranks outnumber heads");
    }
}
