//! What is kept of the rows of all files, and whether files are layers of one recording.

use std::ops::Range;

use super::store::Rows as Stored;

/// What is kept of the rows.
pub(super) struct Plan {
    /// The slots that are layers of the trace, by rising layer.
    pub(super) slots: Vec<usize>,
    pub(super) joined: bool,
    /// Experts at the end of each list that are not routed: a fused shared one.
    pub(super) shared: usize,
}

impl Plan {
    /// Layers that fewer than half of the tokens have are no layers of all tokens.
    pub(super) fn new(stored: &Stored, kept: &[Range<u64>], joined: bool, shared: usize) -> Self {
        let mut counts = vec![0; stored.slots.len()];
        for rows in kept {
            for (slot, count) in stored.coverage(rows.clone()).into_iter().enumerate() {
                counts[slot] += count;
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut slots: Vec<usize> = (0..counts.len())
            .filter(|&slot| counts[slot] > 0 && 2 * counts[slot] >= most)
            .collect();
        slots.sort_by_key(|&slot| stored.slots[slot].layer);
        Self { slots, joined, shared }
    }
}

/// Whether several files are layers of one recording: none has a layer of another.
pub(super) fn joins(stored: &Stored, kept: &[Range<u64>]) -> bool {
    let mut seen = vec![false; stored.slots.len()];
    for rows in kept {
        for (slot, count) in stored.coverage(rows.clone()).into_iter().enumerate() {
            if count > 0 && std::mem::replace(&mut seen[slot], true) {
                return false;
            }
        }
    }
    kept.len() > 1
}
