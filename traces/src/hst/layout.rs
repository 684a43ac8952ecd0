//! The parts of an `.hst` file that reader and writer share: preamble, header, section table.
//!
//! What a section must hold follows from the header alone: see [`Header::expected_bytes`].

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::shape::LayerShape;

pub(super) const MAGIC: [u8; 8] = *b"\x89HST\r\n\x1a\n";
pub(super) const PREAMBLE: usize = 64;
/// Sections begin at multiples of this, so that any element type can be read in place.
pub(super) const ALIGN: u64 = 64;
/// The most that a header may take: a million sequences take a twentieth of it.
pub(super) const MAX_HEADER: usize = 1 << 30;

/// What a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Kind {
    Ids,
    Positions,
    Phases,
    Steps,
    TokenIds,
    Weights,
    Predictions,
    EmbeddingsIn,
    EmbeddingsOut,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Positions => "positions",
            Self::Phases => "phases",
            Self::Steps => "steps",
            Self::TokenIds => "token_ids",
            Self::Weights => "weights",
            Self::Predictions => "predictions",
            Self::EmbeddingsIn => "embeddings in",
            Self::EmbeddingsOut => "embeddings out",
        }
    }
}

/// How a section's bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stored {
    Raw,
    Zstd,
}

/// The type of a section's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Element {
    U8,
    U16,
    U32,
    F16,
    Bf16,
    F32,
}

impl Element {
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::F32 => 4,
        }
    }
}

/// One row of the section table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) kind: Kind,
    pub(super) codec: Stored,
    pub(super) element: Element,
    /// From the file's first byte.
    pub(super) offset: u64,
    /// Bytes in the file.
    pub(super) stored: u64,
    /// Bytes once decompressed.
    pub(super) raw: u64,
    /// XXH3-64 of the stored bytes.
    pub(super) checksum: u64,
}

/// A sequence, its rows following those of the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSequence {
    pub(super) id: u32,
    pub(super) label: String,
    pub(super) document: Option<u32>,
    pub(super) prompt_tokens: u32,
    pub(super) has_repetition: Option<bool>,
    pub(super) tokens: u64,
}

/// Everything but the columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) layers: Vec<LayerShape>,
    pub(super) sequences: Vec<StoredSequence>,
    pub(super) digest: String,
    pub(super) content_digest: String,
    pub(super) provenance: String,
    /// Of the predictions; 0 without them.
    pub(super) lookaheads: u64,
    /// Ids in a prediction; 0 without them.
    pub(super) prediction_width: u64,
    /// Numbers in an embedding; 0 without them.
    pub(super) embedding_dim: u64,
    pub(super) sections: Vec<Section>,
}

impl Header {
    /// The bytes that a section of `kind` must have, or `None` where that overflows 64 bits.
    pub(super) fn expected_bytes(
        &self,
        kind: Kind,
        element: Element,
        tokens: u64,
        row_len: u64,
    ) -> Option<u64> {
        let sequences = self.sequences.len() as u64;
        let values = match kind {
            Kind::Ids | Kind::Weights => tokens.checked_mul(row_len),
            Kind::Positions | Kind::Phases | Kind::Steps | Kind::TokenIds => Some(tokens),
            Kind::Predictions => tokens
                .checked_mul(self.lookaheads)
                .and_then(|n| n.checked_mul(self.layers.len() as u64))
                .and_then(|n| n.checked_mul(self.prediction_width)),
            Kind::EmbeddingsIn | Kind::EmbeddingsOut => sequences.checked_mul(self.embedding_dim),
        };
        values?.checked_mul(element.bytes())
    }
}

/// The fixed first bytes, for a header and a whole file of these lengths.
pub(super) fn preamble(version: u32, header: &[u8], file_len: u64) -> [u8; PREAMBLE] {
    let mut bytes = [0u8; PREAMBLE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[16..24].copy_from_slice(&(header.len() as u64).to_le_bytes());
    bytes[24..32].copy_from_slice(&xxh3_64(header).to_le_bytes());
    bytes[32..40].copy_from_slice(&file_len.to_le_bytes());
    let checksum = xxh3_64(&bytes[..56]);
    bytes[56..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The next offset at which a section may begin; `None` past 64 bits.
pub(super) fn align(offset: u64) -> Option<u64> {
    offset.checked_next_multiple_of(ALIGN)
}
