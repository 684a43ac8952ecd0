//! Plain cache traces: text with one non-negative integer a line.
//!
//! Each becomes a token of one layer with top-1, so that a plain cache's miss counts can be
//! compared with those of other cache simulators. Blank lines and lines that begin with `#` are
//! skipped. Where a number is over 65,535, all are renumbered densely in the order of their
//! values, and the provenance says so.

use std::collections::HashMap;

use serde_json::json;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;
use crate::shape::MAX_EXPERTS;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "ids",
    description: "text, one integer a line: a plain cache trace as one layer with top-1",
    columns: &["ids", "positions", "phases"],
    extensions: &["txt"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Possible.when(sniff.first_line().parse::<u64>().is_ok())
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut stream = input.stream()?;
    let mut numbers = Numbers::default();
    let (mut line, mut number) = (Vec::new(), 0u64);
    while let Some(text) = stream.line(&mut line)? {
        number += 1;
        let text = text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let value = value.ok_or_else(|| {
            let start = String::from_utf8_lossy(&text[..text.len().min(40)]);
            let problem = format!("{start:?} is not a whole number of 0 to 2^64 - 1");
            input.error(format!("line {number}"), problem)
        })?;
        if !numbers.push(value) {
            let problem =
                format!("over {MAX_EXPERTS} distinct numbers, which cannot be told apart");
            return Err(input.error(format!("line {number}"), problem));
        }
    }
    let (ids, renumbered) = numbers.into_ids();
    if ids.is_empty() {
        return Err(input.error("file", "no numbers; one a line is expected"));
    }
    into.zeros_are_meant = true;
    into.layers(input, Numbering::Unknown, &[1])?;
    into.sequence(input, None)?;
    into.ids(input, &ids)?;
    into.run(input, 0, ids.len() as u64, Phase::Decode)?;
    into.read(stream.source()?);
    let renumbered = renumbered.then_some("densely, in the order of the values");
    into.facts.insert("renumbered".to_owned(), json!(renumbered));
    Ok(())
}

/// All numbers, each as the place of its first appearance among the distinct ones.
#[derive(Default)]
struct Numbers {
    places: HashMap<u64, u16>,
    distinct: Vec<u64>,
    all: Vec<u16>,
}

impl Numbers {
    /// Whether there was room for one more distinct number.
    fn push(&mut self, value: u64) -> bool {
        let next = self.distinct.len();
        let place = match self.places.get(&value) {
            Some(&place) => place,
            None if next < MAX_EXPERTS as usize => {
                self.places.insert(value, next as u16);
                self.distinct.push(value);
                next as u16
            }
            None => return false,
        };
        self.all.push(place);
        true
    }

    /// The numbers themselves where all fit 16 bits, else their ranks; and whether that is so.
    fn into_ids(mut self) -> (Vec<u16>, bool) {
        let small: Option<Vec<u16>> =
            self.distinct.iter().map(|&value| u16::try_from(value).ok()).collect();
        let renumbered = small.is_none();
        let ids = small.unwrap_or_else(|| {
            let mut sorted = self.distinct.clone();
            sorted.sort_unstable();
            let rank = |&value| sorted.partition_point(|&other| other < value) as u16;
            self.distinct.iter().map(rank).collect()
        });
        self.all.iter_mut().for_each(|place| *place = ids[usize::from(*place)]);
        (self.all, renumbered)
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{ImportOptions, import_bytes};
    use crate::{Error, Format, Trace};

    fn import_text(text: &str) -> Result<Trace, Error> {
        let options = ImportOptions::default();
        import_bytes(Format::Ids, "cache.txt", text.as_bytes(), &options)
    }

    #[test]
    fn small_numbers_are_kept() {
        let trace = import_text("# a comment\n5\n\n2\r\n 5 \n0").unwrap();
        assert!(trace.ids().iter().eq([5, 2, 5, 0]));
        assert_eq!(trace.shape().total_experts(), 6);
        assert_eq!((trace.name(), trace.tokens(), trace.shape().row_len()), ("cache", 4, 1));
        assert!(trace.provenance().contains(r#""renumbered":null"#));
    }

    #[test]
    fn large_numbers_are_renumbered_in_order_of_value() {
        let trace = import_text("70000\n9\n18446744073709551615\n9\n").unwrap();
        assert!(trace.ids().iter().eq([1, 0, 2, 0]));
        assert!(trace.provenance().contains("densely"));
    }

    #[test]
    fn faults_have_their_line() {
        let message = |text| import_text(text).unwrap_err().to_string();
        assert!(
            message("1\n# x\n-3\n")
                .ends_with("cache.txt: line 3: \"-3\" is not a whole number of 0 to 2^64 - 1")
        );
        assert!(message("1\n2 3\n").contains("line 2"));
        assert!(message("# nothing\n").ends_with("no numbers; one a line is expected"));
        assert!(message("18446744073709551616\n").contains("line 1"));
    }
}
