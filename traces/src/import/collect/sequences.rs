//! The sequences of a trace while its rows come in.

use std::ops::Range;

use crate::error::Result;
use crate::import::input::Input;
use crate::sequence::Sequence;

/// Sequences that an input of so many bytes may have: each takes memory of its own.
pub(in crate::import) fn sequence_limit(bytes: u64) -> u64 {
    (1 << 18) + bytes / 64
}

/// Sequences so far; the last is open until the next begins.
pub(super) struct Sequences {
    pub(super) all: Vec<Sequence>,
    /// The most that these inputs may have.
    pub(super) limit: u64,
    /// The last sequence has its end already.
    all_backdated: bool,
}

impl Sequences {
    /// For inputs of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self { all: Vec::new(), limit: sequence_limit(bytes), all_backdated: false }
    }

    /// Begins a sequence at a row; its number is its place unless it is given one.
    pub(super) fn begin(
        &mut self,
        input: &Input<'_>,
        id: Option<u32>,
        row: usize,
    ) -> Result<&mut Sequence> {
        self.end(row);
        let limit = self.limit;
        if self.all.len() as u64 >= limit {
            let problem = format!("over {limit} sequences, too many for inputs this small");
            return Err(input.error("sequences", problem));
        }
        let next = self.all.len();
        self.all.push(new_sequence(id.unwrap_or(next as u32), row..row));
        Ok(&mut self.all[next])
    }

    /// The sequences of rows that came before `row`, each with its number and tokens, and its
    /// prompt's.
    pub(super) fn backdate(&mut self, row: usize, runs: &[(u32, u64)], prompts: &[u32]) {
        self.end(row);
        let mut start = self.all.last().map_or(0, |last| last.rows.end);
        for (&(id, tokens), &prompt) in runs.iter().zip(prompts) {
            let rows = start..start + tokens as usize;
            start = rows.end;
            let sequence = new_sequence(id, rows);
            self.all.push(Sequence { prompt_tokens: prompt, ..sequence });
        }
        self.all_backdated = true;
    }

    /// Ends the last sequence before this row; one without rows is none.
    pub(super) fn end(&mut self, row: usize) {
        if std::mem::take(&mut self.all_backdated) {
            return;
        }
        if let Some(last) = self.all.last_mut() {
            last.rows.end = row;
            if last.rows.is_empty() {
                self.all.pop();
            }
        }
    }

    /// All of them, of a trace of so many tokens: one where none was begun.
    pub(super) fn finish(mut self, tokens: usize) -> Vec<Sequence> {
        if self.all.is_empty() {
            self.all.push(new_sequence(0, 0..tokens));
        }
        self.all
    }
}

fn new_sequence(id: u32, rows: Range<usize>) -> Sequence {
    let (label, document, has_repetition) = (String::new(), None, None);
    Sequence { id, label, document, prompt_tokens: 0, has_repetition, rows }
}
