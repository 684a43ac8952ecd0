//! Bytes of one expert from a model's dimensions.
//!
//! An expert is two or three matrices between the expert's input width and its own width. The formulas are those of
//! checkpoints: weights, their scales, and biases in the formats in which models with biases are published.

mod ggml;
mod slot;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use ggml::GgmlType;
pub use slot::SlotLayout;

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

/// How an expert's weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum WeightFormat {
    /// 2 bytes a weight.
    Bf16,
    /// 1 byte a weight, one f32 scale a matrix.
    Fp8Tensor,
    /// 1 byte a weight, one f32 scale for each block of 128 by 128, edges rounded up.
    Fp8Block128,
    /// 4 bits a weight, one e4m3 scale for 16 weights, two f32 a matrix: 4.5 bits and a little.
    Nvfp4,
    /// 4 bits a weight, one e8m0 scale for 32 weights: 4.25 bits.
    Mxfp4,
    /// 4 bits a weight, one bf16 scale for 32 weights: 4.5 bits.
    Int4Group32,
    /// 4 bits a weight, one bf16 scale for 128 weights: 4.125 bits.
    Int4Group128,
    /// A block format of GGUF files, with what a quantiser falls back to where a row is not whole blocks.
    Gguf(GgmlType),
}

/// No weight format has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "unknown weight format `{0}`; known: {known}, and GGUF's types (q4_k, iq4_xs, mxfp4 as gguf_mxfp4, ...)",
    known = known_names()
)]
pub struct UnknownFormat(pub String);

fn known_names() -> String {
    WeightFormat::ALL.map(WeightFormat::name).join(", ")
}

impl WeightFormat {
    /// Every format of checkpoints; those of GGUF are [`GgmlType::all`].
    pub const ALL: [Self; 7] = [
        Self::Bf16,
        Self::Fp8Tensor,
        Self::Fp8Block128,
        Self::Nvfp4,
        Self::Mxfp4,
        Self::Int4Group32,
        Self::Int4Group128,
    ];

    /// The name on a command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8Tensor => "fp8_tensor",
            Self::Fp8Block128 => "fp8_block128",
            Self::Nvfp4 => "nvfp4",
            Self::Mxfp4 => "mxfp4",
            Self::Int4Group32 => "int4_group32",
            Self::Int4Group128 => "int4_group128",
            // Two names are also those of checkpoints' formats.
            Self::Gguf(GgmlType::Bf16) => "gguf_bf16",
            Self::Gguf(GgmlType::Mxfp4) => "gguf_mxfp4",
            Self::Gguf(GgmlType::Nvfp4) => "gguf_nvfp4",
            Self::Gguf(kind) => kind.name(),
        }
    }

    /// Bytes and the number of weights that they hold, scales included, single scalars of a matrix left out.
    ///
    /// For weights whose matrices are not known one by one; blocks count as full.
    pub fn ratio(self) -> (u64, u64) {
        match self {
            Self::Bf16 => (2, 1),
            Self::Fp8Tensor => (1, 1),
            Self::Fp8Block128 => (128 * 128 + 4, 128 * 128),
            Self::Nvfp4 | Self::Int4Group32 => (9, 16),
            Self::Mxfp4 => (17, 32),
            Self::Int4Group128 => (33, 64),
            Self::Gguf(kind) => (kind.block_bytes(), kind.block()),
        }
    }

    /// Bytes of so many weights at [`ratio`](Self::ratio), rounded up.
    pub fn bytes_of(self, weights: u64) -> u64 {
        let (bytes, held) = self.ratio();
        let exact = (u128::from(weights) * u128::from(bytes)).div_ceil(u128::from(held));
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    /// Weights along a row that share a scale: a slice of a matrix must be whole groups.
    pub fn group(self) -> u32 {
        match self {
            Self::Bf16 | Self::Fp8Tensor => 1,
            Self::Fp8Block128 | Self::Int4Group128 => 128,
            Self::Nvfp4 => 16,
            Self::Mxfp4 | Self::Int4Group32 => 32,
            // Blocks are at most 256.
            Self::Gguf(kind) => kind.block() as u32,
        }
    }
}

impl From<WeightFormat> for &'static str {
    fn from(format: WeightFormat) -> Self {
        format.name()
    }
}

impl TryFrom<String> for WeightFormat {
    type Error = UnknownFormat;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WeightFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_ascii_lowercase();
        if let Some(format) = Self::ALL.into_iter().find(|format| format.name() == lower) {
            return Ok(format);
        }
        match lower.as_str() {
            "fp8" => return Ok(Self::Fp8Block128),
            "int4" => return Ok(Self::Int4Group32),
            _ => {}
        }
        let kind = GgmlType::from_name(lower.strip_prefix("gguf_").unwrap_or(&lower));
        kind.map(Self::Gguf).ok_or_else(|| UnknownFormat(name.into()))
    }
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

    #[test]
    fn groups_and_ratios_agree_with_the_formulas() {
        let shape = ExpertShape::gated(4096, 2048);
        let formats = WeightFormat::ALL.into_iter().chain(GgmlType::all().map(WeightFormat::Gguf));
        for format in formats {
            let scalars = match format {
                WeightFormat::Fp8Tensor => 12,
                WeightFormat::Nvfp4 => 24,
                _ => 0,
            };
            assert_eq!(format.bytes_of(shape.weights()) + scalars, shape.bytes(format), "{format}");
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!("FP8".parse(), Ok(WeightFormat::Fp8Block128));
        assert_eq!("Q4_K".parse(), Ok(WeightFormat::Gguf(GgmlType::Q4K)));
        assert_eq!(WeightFormat::Bf16.bytes_of(u64::MAX), u64::MAX);
    }

    #[test]
    fn names_go_both_ways_and_a_wrong_one_lists_them() {
        for format in WeightFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "fp7".parse::<WeightFormat>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown weight format `fp7`; known: bf16, fp8_tensor, fp8_block128, nvfp4, mxfp4, \
             int4_group32, int4_group128, and GGUF's types (q4_k, iq4_xs, mxfp4 as gguf_mxfp4, ...)"
        );
    }
}
