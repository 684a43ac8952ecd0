//! What a trace says of its tokens beside their routes: phases, and the sequences they belong to.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What an engine was doing when it ran a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Phase {
    /// Reading a prompt.
    Prefill = 0,
    /// Generating, a token at a time.
    Decode = 1,
    /// Checking drafted tokens (speculative decoding).
    Verify = 2,
}

impl Phase {
    /// All phases, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Prefill, Self::Decode, Self::Verify];

    /// The phase of a column's byte; `None` above 2.
    pub fn from_u8(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Its name: `prefill`, `decode` or `verify`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Verify => "verify",
        }
    }
}

/// One sequence (a request, a conversation) and where its tokens lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Its number as recorded.
    pub id: u32,
    /// What kind of text it is; empty where unknown.
    pub label: String,
    /// The document that its prompt was cut from, where recorded.
    pub document: Option<u32>,
    /// Tokens of its (first) prompt, whether or not their routes were recorded; 0 where unknown.
    pub prompt_tokens: u32,
    /// Whether the generated text fell into a loop (which inflates hit rates), where recorded.
    pub has_repetition: Option<bool>,
    /// The rows of its tokens, in the order in which they ran.
    pub rows: Range<usize>,
}
