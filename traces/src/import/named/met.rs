//! What was met among the cells of a file, and the numbers that its sequences have.

use std::collections::HashMap;

/// What was met on the way, for notes and for what the numbers of tokens mean.
#[derive(Debug, Default, Clone)]
pub(super) struct Met {
    /// Cells that came twice, alike.
    pub(super) copies: u64,
    /// Numbers of tokens begin again with every pass, by sequence.
    pub(super) restarts: bool,
    /// A pass had several tokens.
    pub(super) batches: bool,
    /// Steps were recorded.
    pub(super) steps: bool,
    /// Tokens had numbers.
    pub(super) numbered: bool,
    /// Numbers were positions.
    pub(super) positions: bool,
    pub(super) no_phase: bool,
    /// Ids behind the k of a row that were -1.
    pub(super) padded: bool,
    /// A number was not above the one before it of the same sequence.
    pub(super) falls: bool,
    /// A sequence has more rows than numbers from its lowest to its highest.
    pub(super) crowded: bool,
    /// A word for a phase that is not known.
    pub(super) other_phase: Option<String>,
}

/// Numbers of the tokens of a sequence, over all passes.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    last: i64,
    least: i64,
    most: i64,
    rows: u64,
}

impl Numbers {
    fn of(token: i64) -> Self {
        Self { last: token, least: token, most: token, rows: 1 }
    }

    /// Takes in the next number; true where it is not above the last.
    fn next(&mut self, token: i64) -> bool {
        let falls = token <= self.last;
        self.last = token;
        self.least = self.least.min(token);
        self.most = self.most.max(token);
        self.rows += 1;
        falls
    }

    /// More rows than there are numbers: some came again.
    fn crowded(&self) -> bool {
        u128::from(self.rows) > (i128::from(self.most) - i128::from(self.least)) as u128 + 1
    }
}

/// The sequences of a file.
pub(super) struct Sequences {
    numbers: HashMap<u32, Numbers>,
    /// The number that a sequence has in the store: another where positions begin again.
    stored: HashMap<u32, u32>,
    /// The number of the next one in the store.
    pub(super) next: u32,
}

impl Sequences {
    /// For a file whose first sequence has this number in the store.
    pub(super) fn new(next: u32) -> Self {
        Self { numbers: HashMap::new(), stored: HashMap::new(), next }
    }

    /// Whether a sequence has had this number, or a higher one, as its last.
    pub(super) fn falls(&mut self, sequence: u32, token: i64, met: &mut Met) -> bool {
        let Some(numbers) = self.numbers.get_mut(&sequence) else {
            self.numbers.insert(sequence, Numbers::of(token));
            return false;
        };
        let falls = numbers.next(token);
        met.falls |= falls;
        met.crowded |= numbers.crowded();
        falls
    }

    /// The number in the store of a sequence, which begins with this row if it was never seen or
    /// `again` says so.
    pub(super) fn stored(&mut self, sequence: u32, again: bool) -> u32 {
        match self.stored.get(&sequence) {
            Some(&number) if !again => number,
            _ => {
                let number = self.next;
                self.stored.insert(sequence, number);
                self.next += 1;
                number
            }
        }
    }
}
