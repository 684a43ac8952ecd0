//! The journal of a sweep: finished replays, kept so that a killed run goes on where it was.
//!
//! A text file that only grows. The first line says which work it is of; each further line is one
//! finished replay as JSON, written at once. A last line that was cut off counts as not written.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::SimError;

/// What a journal is of. Only the same work may go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// The format's name and version.
    pub journal: String,
    /// hotset's version.
    pub hotset: String,
    /// Digest of everything in the trace that a replay can see.
    pub trace: String,
    /// Digest of all flags, links' profiles included.
    pub flags: String,
    /// Replays in all.
    pub replays: usize,
}

/// The format's name and version.
pub(crate) const FORMAT: &str = "hotset-journal/1";

#[derive(Serialize, Deserialize)]
struct Line<T> {
    replay: usize,
    result: T,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal<T> {
    path: PathBuf,
    /// The results that it held, each given out once.
    found: Mutex<Vec<Option<T>>>,
    file: Mutex<File>,
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens the journal of `work`, or begins it, and cuts off a torn last line.
    ///
    /// # Errors
    /// Not a journal, that of other work, damaged, in use by another process, or not writable.
    pub fn open(path: &Path, work: &Work) -> Result<Self, SimError> {
        let fault = |problem: String| SimError::Journal { path: path.to_owned(), problem };
        let io = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| fault(format!("cannot {what} it: {error}"))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io("open"))?;
        file.try_lock().map_err(|_| fault("another process is using it".to_owned()))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io("read"))?;
        let header = to_line(work).map_err(|error| fault(error.to_string()))?;
        let mut found: Vec<Option<T>> = Vec::new();
        found.resize_with(work.replays, || None);
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        if whole == 0 && !header.as_bytes().starts_with(&text) {
            return Err(fault("it is not a hotset journal; give another file".to_owned()));
        }
        let mut lines = text[..whole].split_inclusive(|&byte| byte == b'\n').enumerate();
        if let Some((_, first)) = lines.next() {
            let of: Work = serde_json::from_slice(first)
                .map_err(|_| fault("it is not a hotset journal; give another file".to_owned()))?;
            difference(&of, work).map_or(Ok(()), |problem| Err(fault(problem)))?;
        }
        for (number, line) in lines {
            let line: Line<T> = serde_json::from_slice(line).map_err(|error| {
                fault(format!("line {} is damaged ({error}); delete it to begin anew", number + 1))
            })?;
            let place = found.get_mut(line.replay).ok_or_else(|| {
                fault(format!("line {} has replay {} of {}", number + 1, line.replay, work.replays))
            })?;
            *place = Some(line.result);
        }
        file.set_len(whole as u64).map_err(io("write"))?;
        file.seek(SeekFrom::End(0)).map_err(io("write"))?;
        if whole == 0 {
            file.write_all(header.as_bytes()).map_err(io("write"))?;
        }
        Ok(Self { path: path.to_owned(), found: Mutex::new(found), file: Mutex::new(file) })
    }

    /// Takes the result of a replay that was finished before.
    pub fn take(&self, replay: usize) -> Option<T> {
        let mut found = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        found.get_mut(replay).and_then(Option::take)
    }

    /// Writes the result of a finished replay.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, replay: usize, result: &T) -> Result<(), SimError> {
        let fault = |problem: String| SimError::Journal { path: self.path.clone(), problem };
        let line = to_line(&Line { replay, result }).map_err(|error| fault(error.to_string()))?;
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // One write a line: what is cut off by a kill is the last line, and only that.
        file.write_all(line.as_bytes()).map_err(|error| fault(format!("cannot write it: {error}")))
    }
}

fn to_line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(value)? + "\n")
}

/// Why a journal of work `of` is not one of work `wanted`.
fn difference(of: &Work, wanted: &Work) -> Option<String> {
    let differs = [
        ("of another format", &of.journal, &wanted.journal),
        ("by another version of hotset", &of.hotset, &wanted.hotset),
        ("of another trace", &of.trace, &wanted.trace),
        ("with other flags", &of.flags, &wanted.flags),
    ];
    let (how, is, should) = differs.into_iter().find(|(_, is, should)| is != should)?;
    Some(format!(
        "it was written {how} ({is}, not {should}); give the flags and the trace that it was made \
         with, or another file"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Work {
        let text = |text: &str| text.to_owned();
        Work {
            journal: text(FORMAT),
            hotset: text("1"),
            trace: text("t"),
            flags: text("f"),
            replays: 3,
        }
    }

    #[test]
    fn what_was_kept_is_found_again_and_torn_lines_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::<Vec<u64>>::open(&path, &work()).unwrap();
        journal.keep(2, &vec![1, 2]).unwrap();
        journal.keep(0, &vec![u64::MAX]).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let journal = Journal::<Vec<u64>>::open(&path, &work()).unwrap();
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(journal.take(2), (lines > 1).then(|| vec![1, 2]), "{length} bytes");
            assert_eq!(journal.take(2), None, "given out once");
            assert_eq!(journal.take(0), (lines > 2).then(|| vec![u64::MAX]));
            journal.keep(1, &vec![]).unwrap();
            drop(journal);
            let again = Journal::<Vec<u64>>::open(&path, &work()).unwrap();
            assert_eq!(again.take(1), Some(vec![]));
        }
    }

    #[test]
    fn other_work_other_files_and_damage_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let told = |work: &Work| Journal::<u64>::open(&path, work).unwrap_err().to_string();
        let journal = Journal::<u64>::open(&path, &work()).unwrap();
        assert!(told(&work()).contains("another process is using it"));
        drop(journal);
        let other = |change: fn(&mut Work)| {
            let mut work = work();
            change(&mut work);
            work
        };
        assert!(told(&other(|work| work.trace.push('x'))).contains("of another trace (t, not tx)"));
        assert!(told(&other(|work| work.flags.push('x'))).contains("with other flags"));
        assert!(told(&other(|work| work.hotset.push('x'))).contains("another version"));
        let header = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{header}nonsense\n")).unwrap();
        assert!(told(&work()).contains("line 2 is damaged"));
        std::fs::write(&path, format!("{header}{{\"replay\":3,\"result\":1}}\n")).unwrap();
        assert!(told(&work()).contains("line 2 has replay 3 of 3"));
        for text in ["a letter", "a letter\nof two lines\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(told(&work()).contains("not a hotset journal"));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "left as it was");
        }
    }
}
