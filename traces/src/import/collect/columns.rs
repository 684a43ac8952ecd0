//! The columns of one value a token while rows come in.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::import::input::Input;
use crate::sequence::Phase;
use crate::spool::Spool;

/// Positions and phases, which all tokens have, and what only some formats know of them.
pub(super) struct TokenColumns {
    pub(super) positions: Spool,
    pub(super) phases: Spool,
    pub(super) steps: Spool,
    pub(super) token_ids: Spool,
}

impl TokenColumns {
    /// Empty ones, whose files lie in `folder`.
    pub(super) fn new(folder: &Arc<Path>) -> Self {
        let spool = || Spool::new(folder);
        Self { positions: spool(), phases: spool(), steps: spool(), token_ids: spool() }
    }

    /// Positions and phase of rows that follow each other.
    pub(super) fn run(
        &mut self,
        input: &Input<'_>,
        first: u64,
        count: u64,
        phase: Phase,
    ) -> Result<()> {
        let end = first.checked_add(count).filter(|&end| end <= u64::from(u32::MAX));
        let Some(end) = end else {
            let problem = format!("{count} tokens from position {first} on: over 32 bits");
            return Err(input.error("positions", problem));
        };
        let mut positions = Vec::with_capacity(count.min(1 << 14) as usize);
        for start in (first..end).step_by(1 << 14) {
            positions.clear();
            positions.extend((start..end.min(start + (1 << 14))).map(|position| position as u32));
            self.positions.extend(&positions)?;
        }
        self.phases.repeat(phase as u8, count as usize)
    }

    /// One phase for all of so many tokens.
    pub(super) fn of_one_phase(&mut self, phase: Phase, tokens: usize) -> Result<()> {
        self.phases = self.phases.another();
        self.phases.repeat(phase as u8, tokens)
    }
}
