//! A pickle reader that runs nothing: protocol 2 and later, plain data and a short list of names.
//!
//! Python's own unpickler calls whatever a file names. This one knows the calls by which tensors
//! and arrays are rebuilt and makes plain records of them; any other name is refused. Objects live
//! in one list and refer to each other by number, so that neither cycles nor depth matter, and
//! what they take is counted against the size of the file.

mod contents;
mod machine;
mod ops;

use std::fmt;

use self::machine::Machine;

pub(super) use self::contents::{Object, Pickle, Value};
pub(super) use super::element::Element;

/// Why a pickle is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    at: usize,
    problem: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.problem)
    }
}

impl Pickle {
    /// Reads a pickle; its objects may take `budget` bytes of memory.
    pub(super) fn read(bytes: Vec<u8>, budget: u64) -> Result<Self, Refusal> {
        let mut machine = Machine::new(Self::new(bytes), budget);
        match machine.run() {
            Ok(root) => Ok(machine.into_pickle().with_root(root)),
            Err(problem) => Err(Refusal { at: machine.at(), problem }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::contents::PASSES_PER_BYTE;
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
    }

    /// A code of half a megabyte that 100,000 calls name again: each used to look at all of it.
    #[test]
    fn a_long_text_is_no_code() {
        let call = b"h\x00h\x01\x85R0";
        let pickle = [
            b"\x80\x02cnumpy\ndtype\nq\x00".to_vec(),
            [text(&"f".repeat(500_000)), b"q\x01".to_vec()].concat(),
            call.repeat(100_000),
            b"N.".to_vec(),
        ];
        let refusal = Pickle::read(pickle.concat(), 1 << 30).err().unwrap().to_string();
        assert!(refusal.contains("an array of \"\""), "{refusal}");
    }

    /// A dict that is named again and again is passed over so often as its file's length explains.
    #[test]
    fn a_dict_cannot_be_searched_for_ever() {
        let entries: Vec<u8> =
            (0..5000).flat_map(|n| [text(&n.to_string()), b"N".to_vec()].concat()).collect();
        let whole = [b"\x80\x02}(".to_vec(), entries, b"u.".to_vec()].concat();
        let most = (whole.len() as u64 + (1 << 16)) * PASSES_PER_BYTE / 5000;
        let pickle = Pickle::read(whole, 1 << 30).unwrap();
        assert_eq!(pickle.get(pickle.root(), "4999"), Some(Value::None));
        let found = (0..2 * most).filter(|_| pickle.get(pickle.root(), "0").is_some()).count();
        assert!((most - 2..=most).contains(&(found as u64)), "{found} of {most}");
    }
}
