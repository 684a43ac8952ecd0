//! Digests: what makes two traces the same.
//!
//! `digest` covers the routing alone, `content_digest` everything that a replay can see. Both are
//! independent of how the trace is stored: ids are widened to 16 bits before they are hashed.

use crate::column::{ByteColumn, IdColumn};
use crate::error::{Error, Result};
use crate::parts::Parts;

/// Ids widened and hashed at a time: large enough for BLAKE3 to use all its lanes.
const CHUNK: usize = 1 << 16;

/// BLAKE3 of the routing: the number of layers, each layer's top-k, each sequence's tokens (all
/// as little-endian integers, the counts first), then all ids as little-endian `u16`.
pub(crate) struct Routing(blake3::Hasher);

impl Routing {
    /// Everything before the ids.
    pub(crate) fn begin(parts: &Parts) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"hotset routing/1");
        hasher.update(&(parts.shape.layers().len() as u32).to_le_bytes());
        for layer in parts.shape.layers() {
            hasher.update(&layer.top_k.to_le_bytes());
        }
        hasher.update(&(parts.sequences.len() as u64).to_le_bytes());
        for sequence in &parts.sequences {
            hasher.update(&(sequence.rows.len() as u64).to_le_bytes());
        }
        Self(hasher)
    }

    /// The next ids.
    pub(crate) fn ids(&mut self, ids: IdColumn<'_>) {
        hash_ids(&mut self.0, ids);
    }

    /// The digest, once all ids were given.
    pub(crate) fn finish(self) -> blake3::Hash {
        self.0.finalize()
    }
}

/// BLAKE3 of the routing's digest and of everything else that a replay can see.
///
/// # Errors
/// A spooled column that cannot be read.
pub(crate) fn content(parts: &Parts, routing: &blake3::Hash) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"hotset content/1");
    hasher.update(routing.as_bytes());
    for layer in parts.shape.layers() {
        hasher.update(&layer.number.to_le_bytes());
        hasher.update(&layer.experts.to_le_bytes());
        hasher.update(&layer.expert_bytes.to_le_bytes());
    }
    for sequence in &parts.sequences {
        hasher.update(&sequence.id.to_le_bytes());
        hasher.update(&sequence.prompt_tokens.to_le_bytes());
    }
    hash_bytes(&mut hasher, &parts.positions)?;
    hash_bytes(&mut hasher, &parts.phases)?;
    // Each optional column begins with a tag that no other has, so that none can pass for another.
    if let Some(steps) = &parts.steps {
        hasher.update(b"steps");
        hash_bytes(&mut hasher, steps)?;
    }
    if let Some(token_ids) = &parts.token_ids {
        hasher.update(b"token_ids");
        hash_bytes(&mut hasher, token_ids)?;
    }
    if let Some(weights) = &parts.weights {
        hasher.update(b"weights ");
        hasher.update(weights.view().precision().as_bytes());
        hash_bytes(&mut hasher, weights.bytes())?;
    }
    if let Some(predictions) = &parts.predictions {
        hasher.update(b"predictions");
        hasher.update(&(predictions.lookaheads as u64).to_le_bytes());
        hasher.update(&(predictions.width as u64).to_le_bytes());
        predictions.ids.windows(1, |_, ids| {
            hash_predicted(&mut hasher, ids);
            Ok(())
        })?;
    }
    if let Some(embeddings) = &parts.embeddings {
        hasher.update(b"embeddings");
        hasher.update(&(embeddings.dim as u64).to_le_bytes());
        hasher.update(bytemuck::cast_slice(embeddings.prompt_in.get()));
        hasher.update(bytemuck::cast_slice(embeddings.prompt_out.get()));
    }
    Ok(hasher.finalize())
}

fn hash_bytes(hasher: &mut blake3::Hasher, column: &dyn ByteColumn) -> Result<()> {
    column.byte_windows(&mut |bytes| {
        hasher.update(bytes);
        Ok(())
    })
}

/// The first 32 hexadecimal digits.
pub(crate) fn short(hash: &blake3::Hash) -> String {
    hash.to_hex()[..32].to_owned()
}

/// Refuses a stated digest that is not the computed one.
pub(crate) fn expect(column: &'static str, stated: &str, computed: &str) -> Result<()> {
    if stated == computed {
        return Ok(());
    }
    Err(Error::column(column, format!("the file states {stated}, its contents have {computed}")))
}

fn hash_ids(hasher: &mut blake3::Hasher, ids: IdColumn<'_>) {
    hash_widened(hasher, ids, |id| u16::from(id).to_le());
}

/// As [`hash_ids`], with the none marker of 8 bits widened to that of 16.
fn hash_predicted(hasher: &mut blake3::Hasher, ids: IdColumn<'_>) {
    hash_widened(hasher, ids, |id| if id == 0xff { 0xffff } else { u16::from(id).to_le() });
}

fn hash_widened(hasher: &mut blake3::Hasher, ids: IdColumn<'_>, widen: impl Fn(u8) -> u16) {
    match ids {
        IdColumn::U16(ids) => {
            hasher.update(bytemuck::cast_slice(ids));
        }
        IdColumn::U8(ids) => {
            let mut wide = Vec::with_capacity(CHUNK.min(ids.len()));
            for chunk in ids.chunks(CHUNK) {
                wide.clear();
                wide.extend(chunk.iter().map(|&id| widen(id)));
                hasher.update(bytemuck::cast_slice(&wide));
            }
        }
    }
}
