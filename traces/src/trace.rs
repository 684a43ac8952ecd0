//! The trace: which experts each token used, in columns, with what else was recorded.
//!
//! A [`Trace`] is immutable and shared by reference count: cloning it costs nothing. It comes from
//! a [`crate::TraceBuilder`], an importer, or an `.hst` file that it may read in place.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::column::{Backing, Column, IdColumn, WeightColumn};
use crate::error::Result;
use crate::parts::Parts;
use crate::sequence::{Phase, Sequence};
use crate::shape::Shape;
use crate::views::{Embeddings, Predictions};
use crate::{check, digest};

/// An immutable router trace; cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Trace {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    digest: String,
    content_digest: String,
    sequence_column: OnceLock<Vec<u32>>,
    /// Set once the digests were computed from the contents, or found to be theirs.
    digests_hold: OnceLock<()>,
    /// What the trace is read from in place, where that is a file which others can change.
    mapped: Option<MappedSections>,
}

/// The sections of a mapped file, to be looked at again.
pub(crate) struct MappedSections {
    pub backing: Arc<Backing>,
    /// Where each lies, and the XXH3-64 of its bytes.
    pub sections: Vec<(Range<usize>, u64)>,
}

impl Trace {
    /// Checks the parts in full and computes their digests.
    pub(crate) fn from_parts(parts: Parts) -> Result<Self> {
        let routing = checked(&parts)?;
        let digest = digest::short(&routing);
        let content_digest = digest::short(&digest::content(&parts, &routing)?);
        let trace = Self::from_checked(parts, digest, content_digest, None);
        trace.inner.digests_hold.get_or_init(|| ());
        Ok(trace)
    }

    /// Takes parts that were checked already, with the digests that their file states, which are
    /// believed only until [`Trace::check_digests`].
    pub(crate) fn from_checked(
        parts: Parts,
        digest: String,
        content_digest: String,
        mapped: Option<MappedSections>,
    ) -> Self {
        let (sequence_column, digests_hold) = (OnceLock::new(), OnceLock::new());
        let inner = Inner { parts, digest, content_digest, sequence_column, digests_hold, mapped };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.inner.parts
    }

    /// The trace's name, for people.
    pub fn name(&self) -> &str {
        &self.parts().name
    }

    /// The model's MoE layers.
    pub fn shape(&self) -> &Shape {
        &self.parts().shape
    }

    /// How many tokens there are: the length of every column, in rows.
    pub fn tokens(&self) -> usize {
        self.parts().tokens()
    }

    /// The sequences, in order; their rows follow each other and cover the trace.
    pub fn sequences(&self) -> &[Sequence] {
        &self.parts().sequences
    }

    /// Expert ids, `[tokens][row_len]`, each layer's best first.
    pub fn ids(&self) -> IdColumn<'_> {
        self.parts().ids.view()
    }

    /// The ids of one token in one layer (its index, from 0), best first.
    pub fn layer_ids(&self, row: usize, layer: usize) -> IdColumn<'_> {
        let shape = self.shape();
        let start = row * shape.row_len() + shape.row_offset(layer);
        self.ids().slice(start..start + shape.layers()[layer].top_k as usize)
    }

    /// The index in [`Trace::sequences`] of the sequence that row `row` belongs to.
    pub fn sequence_of(&self, row: usize) -> usize {
        self.sequences().partition_point(|sequence| sequence.rows.end <= row)
    }

    /// [`Trace::sequence_of`] of every row, `[tokens]`; made at the first call.
    pub fn sequence_column(&self) -> &[u32] {
        self.inner.sequence_column.get_or_init(|| {
            let mut column = Vec::with_capacity(self.tokens());
            for (index, sequence) in self.sequences().iter().enumerate() {
                column.resize(sequence.rows.end, index as u32);
            }
            column
        })
    }

    /// Each token's position in its sequence, `[tokens]`.
    pub fn positions(&self) -> &[u32] {
        self.parts().positions.get()
    }

    /// Each token's phase as a number, `[tokens]`: see [`Phase`].
    pub fn phases(&self) -> &[u8] {
        self.parts().phases.get()
    }

    /// The phase of one token.
    pub fn phase(&self, row: usize) -> Phase {
        // Every byte was checked when the trace was made.
        Phase::from_u8(self.phases()[row]).unwrap_or(Phase::Verify)
    }

    /// The engine's own step of each token, `[tokens]`, where the engine recorded it.
    pub fn steps(&self) -> Option<&[u32]> {
        self.parts().steps.as_ref().map(Column::get)
    }

    /// Vocabulary ids, `[tokens]`, where recorded.
    pub fn token_ids(&self) -> Option<&[u32]> {
        self.parts().token_ids.as_ref().map(Column::get)
    }

    /// Router weights, `[tokens][row_len]`, where recorded.
    pub fn weights(&self) -> Option<WeightColumn<'_>> {
        self.parts().weights.as_ref().map(|weights| weights.view())
    }

    /// The predicted ids, where recorded.
    pub fn predictions(&self) -> Option<Predictions<'_>> {
        self.parts().predictions()
    }

    /// The prompts' embeddings, where recorded.
    pub fn embeddings(&self) -> Option<Embeddings<'_>> {
        self.parts().embeddings()
    }

    /// The routing alone as 32 hexadecimal digits of BLAKE3: the same for the same ids, whatever
    /// their width, the codec, the importer and the labels.
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// Everything that a replay can see (routing, shape, phases, steps, positions, weights,
    /// predictions, embeddings) as 32 hexadecimal digits of BLAKE3.
    pub fn content_digest(&self) -> &str {
        &self.inner.content_digest
    }

    /// How the trace was made, as JSON text.
    pub fn provenance(&self) -> &str {
        &self.parts().provenance
    }

    /// Computes both digests from the contents and compares, unless that was done before: at
    /// building, or at opening a file of up to 64 MiB. Whoever goes by a digest asks this first.
    ///
    /// # Errors
    /// [`crate::Error::Column`] naming `digest` or `content_digest` where it is not that of the
    /// contents.
    pub fn check_digests(&self) -> Result<()> {
        if self.inner.digests_hold.get().is_some() {
            return Ok(());
        }
        let mut routing = digest::Routing::begin(self.parts());
        self.parts().ids.windows(self.shape().row_len(), |_, ids| {
            routing.ids(ids);
            Ok(())
        })?;
        self.compare_digests(&routing.finish())?;
        self.inner.digests_hold.get_or_init(|| ());
        Ok(())
    }

    fn compare_digests(&self, routing: &blake3::Hash) -> Result<()> {
        digest::expect("digest", self.digest(), &digest::short(routing))?;
        let content = digest::short(&digest::content(self.parts(), routing)?);
        digest::expect("content_digest", self.content_digest(), &content)
    }

    /// Whether the trace is read in place from a file that others can change under it: one of more
    /// than 1 GiB.
    pub fn is_mapped(&self) -> bool {
        self.inner.mapped.is_some()
    }

    /// Refuses a mapped file that was changed since it was opened, by its length, its time and the
    /// checksums of its sections: ask before a result of it is kept. Free where nothing is mapped.
    ///
    /// # Errors
    /// [`crate::Error::Changed`].
    pub fn check_unchanged(&self) -> Result<()> {
        let Some(MappedSections { backing, sections }) = &self.inner.mapped else { return Ok(()) };
        let Backing::Map(file) = &**backing else { return Ok(()) };
        file.check_unchanged()?;
        let same = |(range, sum): &(Range<usize>, u64)| {
            xxhash_rust::xxh3::xxh3_64(&file.bytes()[range.clone()]) == *sum
        };
        if sections.iter().all(same) { Ok(()) } else { Err(file.changed()) }
    }

    /// Checks everything again, digests included.
    ///
    /// # Errors
    /// [`crate::Error::Token`] or [`crate::Error::Column`] with the first fault;
    /// [`crate::Error::Column`] naming `digest` where a stated digest is not that of the contents.
    pub fn validate(&self) -> Result<()> {
        let routing = checked(self.parts())?;
        self.compare_digests(&routing)
    }
}

/// All checks, and the digest of the routing.
fn checked(parts: &Parts) -> Result<blake3::Hash> {
    let mut routing = digest::Routing::begin(parts);
    check::all(parts, |ids| routing.ids(ids))?;
    Ok(routing.finish())
}

impl PartialEq for Trace {
    /// Equal in every column, label and digest.
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
            && self.content_digest() == other.content_digest()
            && self.name() == other.name()
            && self.provenance() == other.provenance()
            && self.shape() == other.shape()
            && self.sequences() == other.sequences()
            && self.ids() == other.ids()
            && self.positions() == other.positions()
            && self.phases() == other.phases()
            && self.steps() == other.steps()
            && self.token_ids() == other.token_ids()
            && self.weights() == other.weights()
            && self.predictions() == other.predictions()
            && self.embeddings() == other.embeddings()
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("name", &self.name())
            .field("digest", &self.digest())
            .field("tokens", &self.tokens())
            .field("layers", &self.shape().layers().len())
            .finish_non_exhaustive()
    }
}
