//! One expert's dimensions, and its bytes in each format.

use serde::{Deserialize, Serialize};

use super::{GgmlType, WeightFormat};

/// One expert's dimensions, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertShape {
    /// Matrices: 3 with a gate (gate, up, down), 2 without (up, down).
    pub matrices: u32,
    /// Width of the expert's input and output: the hidden size, or a latent size.
    pub io_width: u32,
    /// The expert's own (intermediate) width.
    pub inner_width: u32,
    /// Whether each matrix has a bias, stored as bf16 (gpt-oss).
    pub biases: bool,
}

impl ExpertShape {
    /// A gated expert (three matrices) without biases.
    pub const fn gated(io_width: u32, inner_width: u32) -> Self {
        Self { matrices: 3, io_width, inner_width, biases: false }
    }

    /// Weights in the matrices.
    pub fn weights(&self) -> u64 {
        (u64::from(self.io_width) * u64::from(self.inner_width))
            .saturating_mul(u64::from(self.matrices))
    }

    /// Bias elements: every matrix but the last writes the inner width, the last the outer one.
    pub fn bias_elements(&self) -> u64 {
        if !self.biases {
            return 0;
        }
        u64::from(self.matrices.saturating_sub(1)) * u64::from(self.inner_width)
            + u64::from(self.io_width)
    }

    /// Bytes of the matrices and their scales, without biases. Partial groups count as whole ones.
    pub fn matrix_bytes(&self, format: WeightFormat) -> u64 {
        let weights = self.weights();
        let matrices = u64::from(self.matrices);
        let blocks =
            u64::from(self.io_width.div_ceil(128)) * u64::from(self.inner_width.div_ceil(128));
        let (stored, scales) = match format {
            WeightFormat::Bf16 => (weights.saturating_mul(2), 0),
            WeightFormat::Fp8Tensor => (weights, 4 * matrices),
            WeightFormat::Fp8Block128 => (weights, blocks.saturating_mul(4 * matrices)),
            WeightFormat::Nvfp4 => (weights.div_ceil(2), weights.div_ceil(16) + 8 * matrices),
            WeightFormat::Mxfp4 => (weights.div_ceil(2), weights.div_ceil(32)),
            WeightFormat::Int4Group32 => (weights.div_ceil(2), 2 * weights.div_ceil(32)),
            WeightFormat::Int4Group128 => (weights.div_ceil(2), 2 * weights.div_ceil(128)),
            WeightFormat::Gguf(kind) => (self.gguf_bytes(kind), 0),
        };
        stored.saturating_add(scales)
    }

    /// The last matrix contracts the inner width, the others the outer one.
    fn gguf_bytes(&self, kind: GgmlType) -> u64 {
        let (outer, inner) = (u64::from(self.io_width), u64::from(self.inner_width));
        let into = u64::from(self.matrices.saturating_sub(1));
        let out = u64::from(self.matrices.min(1));
        kind.tensor_bytes(inner, outer)
            .saturating_mul(into)
            .saturating_add(kind.tensor_bytes(outer, inner).saturating_mul(out))
    }

    /// Bytes of one expert as a checkpoint in this format holds it.
    ///
    /// Biases are counted in the formats in which models with biases are published (bf16, MXFP4). In the others they
    /// are about 0.1% of an expert and stay with the dense weights.
    pub fn bytes(&self, format: WeightFormat) -> u64 {
        let with_biases = matches!(format, WeightFormat::Bf16 | WeightFormat::Mxfp4);
        self.matrix_bytes(format).saturating_add(if with_biases {
            self.bias_elements().saturating_mul(2)
        } else {
            0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picos::MIB;

    /// The 35B-A3B class of the articles: hidden 2048, experts 512 wide.
    const A3B: ExpertShape = ExpertShape::gated(2048, 512);

    #[test]
    fn nvfp4_is_four_and_a_half_bits_and_two_scalars_a_matrix() {
        // 3*2048*512 weights at 4.5 bit = 1.6875 MiB, and 3 * 8 bytes.
        let nominal = 27 * MIB / 16;
        assert_eq!(A3B.bytes(WeightFormat::Nvfp4), nominal + 24);
        assert_eq!(A3B.bytes(WeightFormat::Int4Group32), nominal);
    }

    #[test]
    fn the_other_formats_by_hand() {
        assert_eq!(A3B.weights(), 3_145_728);
        assert_eq!(A3B.bytes(WeightFormat::Bf16), 6 * MIB);
        assert_eq!(A3B.bytes(WeightFormat::Fp8Tensor), 3 * MIB + 12);
        // 16 x 4 blocks a matrix, three matrices, 4 bytes each.
        assert_eq!(A3B.bytes(WeightFormat::Fp8Block128), 3 * MIB + 768);
        assert_eq!(A3B.bytes(WeightFormat::Mxfp4), 3 * MIB / 2 + 98_304);
        assert_eq!(A3B.bytes(WeightFormat::Int4Group128), 3 * MIB / 2 + 49_152);
    }

    #[test]
    fn edges_of_blocks_round_up() {
        // 130 = 2 blocks, 129 = 2 blocks: 4 scales a matrix.
        let odd = ExpertShape { matrices: 2, io_width: 130, inner_width: 129, biases: false };
        assert_eq!(odd.bytes(WeightFormat::Fp8Block128), 2 * 130 * 129 + 4 * 2 * 4);
    }

    #[test]
    fn gpt_oss_carries_biases_where_it_is_published() {
        let expert = ExpertShape { matrices: 3, io_width: 2880, inner_width: 2880, biases: true };
        assert_eq!(expert.bias_elements(), 8640);
        assert_eq!(expert.bytes(WeightFormat::Mxfp4), 13_236_480);
        assert_eq!(expert.bytes(WeightFormat::Bf16), 49_783_680);
        assert_eq!(expert.bytes(WeightFormat::Nvfp4), 13_996_824);
    }

    #[test]
    fn absurd_dimensions_saturate() {
        let wide = u32::MAX;
        let absurd =
            ExpertShape { matrices: wide, io_width: wide, inner_width: wide, biases: true };
        for format in WeightFormat::ALL {
            assert!(absurd.bytes(format) >= u64::MAX / 2, "{format}");
        }
    }

    #[test]
    fn gguf_types_fall_back_where_the_inner_width_is_not_whole_blocks() {
        // Gate and up contract 2,048, down contracts 1,408: Q4_K, Q4_K and Q5_0.
        let lite = ExpertShape::gated(2048, 1408);
        let kind = |kind| lite.bytes(WeightFormat::Gguf(kind));
        assert_eq!(kind(GgmlType::Q4K), 2 * 1408 * 8 * 144 + 2048 * 44 * 22);
        assert_eq!(kind(GgmlType::Q4K), 5_226_496);
        assert_eq!(kind(GgmlType::Iq1S), 2_748_416);
        let two = ExpertShape { matrices: 2, io_width: 2688, inner_width: 1856, biases: false };
        assert_eq!(two.bytes(WeightFormat::Gguf(GgmlType::Q4K)), 6_859_776);
    }
}
