//! Bytes of one expert from a model's dimensions.
//!
//! An expert is two or three matrices between the expert's input width and its own width. The formulas are those of
//! checkpoints: weights, their scales, and biases in the formats in which models with biases are published.

mod expert;
mod ggml;
mod mix;
mod recipe;
mod slot;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use expert::ExpertShape;
pub use ggml::GgmlType;
pub use mix::{Mix, Named, UnknownMix};
pub use recipe::{Place, Recipe, Role, Shape};
pub use slot::SlotLayout;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_ratios_agree_with_the_formulas() {
        let shape = ExpertShape::gated(4096, 2048);
        let formats = WeightFormat::ALL.into_iter().chain(GgmlType::all().map(WeightFormat::Gguf));
        for format in formats {
            let scalars = match format {
                WeightFormat::Fp8Tensor => 12,
                WeightFormat::Nvfp4 => 24,
                // A scale for each row of gate, up and down.
                WeightFormat::Gguf(kind) => kind.row_scale() * (2 * 2048 + 4096),
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
