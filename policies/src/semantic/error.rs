//! What the store and the clusters refuse.

use thiserror::Error;

/// An embedding, a profile or a size that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SemanticError {
    /// A slice of another length than the store or the clusters were made for.
    #[error("{what} has {found} numbers, expected {expected}")]
    Length {
        /// What was given.
        what: &'static str,
        /// Numbers that it must have.
        expected: usize,
        /// Numbers that it has.
        found: usize,
    },
    /// NaN or an infinity in an embedding.
    #[error("embedding: number {at} is {value}; embeddings must be finite")]
    Embedding {
        /// Its index, from 0.
        at: usize,
        /// The number.
        value: f32,
    },
    /// A use a token that is negative, NaN or infinite.
    #[error(
        "profile: key {at} is used {value} times a token; a finite number of 0 or more is possible"
    )]
    Profile {
        /// The expert key.
        at: usize,
        /// The number.
        value: f32,
    },
    /// A size of 0, or one that is too large.
    #[error("{what} is {found}; 1 to {most} are possible")]
    Size {
        /// Which size.
        what: &'static str,
        /// What was asked.
        found: usize,
        /// The largest possible.
        most: usize,
    },
    /// More than the memory there is.
    #[error(
        "{conversations} conversations of {bytes} bytes each are more than memory can hold; ask for fewer"
    )]
    Memory {
        /// Conversations asked for.
        conversations: usize,
        /// Bytes of each.
        bytes: usize,
    },
    /// A weight of the embeddings that is not a share.
    #[error("embedding_weight is {value}; a share from 0 to 1 is possible")]
    Weight {
        /// What was asked.
        value: f64,
    },
    /// More clusters than there are conversations to put into them.
    #[error(
        "{clusters} clusters of {conversations} conversations; ask for at most as many clusters as conversations"
    )]
    Clusters {
        /// Clusters asked for.
        clusters: usize,
        /// Conversations there are.
        conversations: usize,
    },
}

/// Refuses a slice of the wrong length.
pub(super) fn expect_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), SemanticError> {
    if expected == found {
        return Ok(());
    }
    Err(SemanticError::Length { what, expected, found })
}

/// Refuses 0 and what is above `most`.
pub(super) fn expect_size(
    what: &'static str,
    most: usize,
    found: usize,
) -> Result<(), SemanticError> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(SemanticError::Size { what, found, most })
}
