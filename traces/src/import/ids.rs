//! Plain cache traces: text with one non-negative integer a line.
//!
//! Each becomes a token of one layer with top-1, so that a plain cache's miss counts can be
//! compared with those of other cache simulators. Blank lines and lines that begin with `#` are
//! skipped. Where a number is over 65,535, all are renumbered densely in the order of their
//! values, and the provenance says so.

use std::path::Path;

use serde_json::json;

use super::{ImportOptions, experts, name, source, uniform_shape};
use crate::builder::TraceBuilder;
use crate::column::Ids;
use crate::error::{Error, Result};
use crate::shape::MAX_EXPERTS;
use crate::trace::{Phase, Trace};

pub(super) fn import(path: &Path, options: &ImportOptions) -> Result<Trace> {
    let text = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
    let numbers = parse(path, &text)?;
    let (ids, renumbered) = narrow(path, &numbers)?;
    let ids = Ids::U16(ids);
    let (experts, experts_from) = experts(path, options, None, ids.view())?;
    let shape = uniform_shape(path, options, 1, 1, experts)?;
    let provenance = json!({
        "importer": "ids",
        "source": source(path)?,
        "experts_from": experts_from,
        "renumbered": renumbered.then_some("densely, in the order of the values"),
    });
    let phase = options.phase.unwrap_or(Phase::Decode);
    TraceBuilder::new(name(path, options, None), shape, ids)
        .phases(vec![phase as u8; numbers.len()])
        .provenance(provenance.to_string())
        .build()
}

fn parse(path: &Path, text: &[u8]) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let number = std::str::from_utf8(line).ok().and_then(|line| line.parse().ok());
        numbers.push(number.ok_or_else(|| {
            let start = String::from_utf8_lossy(&line[..line.len().min(40)]);
            let problem = format!("{start:?} is not a whole number of 0 to 2^64 - 1");
            Error::import(path, format!("line {}", index + 1), problem)
        })?);
    }
    if numbers.is_empty() {
        return Err(Error::import(path, "file", "no numbers; one a line is expected"));
    }
    Ok(numbers)
}

/// The numbers as ids, and whether they had to be renumbered.
fn narrow(path: &Path, numbers: &[u64]) -> Result<(Vec<u16>, bool)> {
    if let Some(ids) = numbers.iter().map(|&n| u16::try_from(n).ok()).collect::<Option<_>>() {
        return Ok((ids, false));
    }
    let mut distinct = numbers.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() > MAX_EXPERTS as usize {
        let problem =
            format!("{} distinct numbers; at most {MAX_EXPERTS} can be told apart", distinct.len());
        return Err(Error::import(path, "file", problem));
    }
    let rank = |n| distinct.partition_point(|&other| other < n) as u16;
    Ok((numbers.iter().map(|&n| rank(n)).collect(), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import_text(text: &str) -> Result<Trace> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.txt");
        std::fs::write(&path, text).unwrap();
        import(&path, &ImportOptions::default())
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
