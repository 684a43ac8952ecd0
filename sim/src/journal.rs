//! The journal of a sweep: finished replays, kept so that a killed run goes on where it was.
//!
//! A text file that only grows. The first line says which work it is of; each further line is one
//! finished replay. A line is the checksum of its JSON, a space, the JSON. A last line that was cut
//! off counts as not written; anything else that does not fit is refused, never guessed at.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

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
pub(crate) const FORMAT: &str = "hotset-journal/2";

/// The longest first line, in bytes: several times what one takes.
const MOST_HEADER: u64 = 1 << 12;
/// The longest other line, in bytes: 4,096 layers over ten links take a fifth of it.
const MOST_LINE: u64 = 1 << 28;

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
    end: Mutex<End>,
    /// Checksum of the first line, which those of all others go on from: lines of other work that
    /// got in here are told.
    seed: u64,
}

/// Where the next line goes.
#[derive(Debug)]
struct End {
    file: File,
    /// Bytes of whole lines.
    whole: u64,
    /// Why nothing can be written any more.
    failed: Option<String>,
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens the journal of `work`, or begins it, and cuts off a torn last line. `possible` says
    /// whether a replay of this number can have had this result.
    ///
    /// # Errors
    /// Not a journal, that of other work, damaged, contradicting itself, in use by another process,
    /// or not writable.
    pub fn open(
        path: &Path,
        work: &Work,
        possible: impl Fn(usize, &T) -> bool,
    ) -> Result<Self, SimError> {
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
        if !file.metadata().map_err(io("read"))?.is_file() {
            return Err(fault("it is not a regular file; give another".to_owned()));
        }
        file.try_lock().map_err(|_| fault("another process is using it".to_owned()))?;
        let header = serde_json::to_string(work).map_err(|error| fault(error.to_string()))?;
        let seed = xxh3_64(header.as_bytes());
        let header = to_line(0, &header);
        let mut lines = Lines { input: BufReader::new(&file), whole: 0, number: 0 };
        let mut found: Vec<Option<T>> = Vec::new();
        found.resize_with(work.replays, || None);
        match lines.next(MOST_HEADER).map_err(io("read"))? {
            Next::Whole(line) => check_header(&line, work).map_err(fault)?,
            Next::Torn(torn) if header.as_bytes().starts_with(&torn) => {}
            Next::Torn(_) | Next::TooLong => return Err(fault(NO_JOURNAL.to_owned())),
        }
        while let Next::Whole(line) = lines.next(MOST_LINE).map_err(io("read"))? {
            let number = lines.number;
            read_into(&mut found, &line, seed, &possible).map_err(|problem| {
                fault(format!(
                    "line {number} {problem}; cut the file before that line to go on with what is \
                     above it, or delete it to begin anew"
                ))
            })?;
        }
        let mut whole = lines.whole;
        file.set_len(whole).map_err(io("write"))?;
        file.seek(SeekFrom::End(0)).map_err(io("write"))?;
        if whole == 0 {
            file.write_all(header.as_bytes()).map_err(io("write"))?;
            whole = header.len() as u64;
        }
        let end = Mutex::new(End { file, whole, failed: None });
        Ok(Self { path: path.to_owned(), found: Mutex::new(found), end, seed })
    }

    /// Takes the result of a replay that was finished before.
    pub fn take(&self, replay: usize) -> Option<T> {
        let mut found = self.found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        found.get_mut(replay).and_then(Option::take)
    }

    /// Writes the result of a finished replay. What a failed write left is cut off, and nothing is
    /// written any more: a line behind a torn one would make the whole file unreadable.
    ///
    /// # Errors
    /// The file cannot be written, now or before.
    pub fn keep(&self, replay: usize, result: &T) -> Result<(), SimError> {
        let fault = |problem: String| SimError::Journal { path: self.path.clone(), problem };
        let line = serde_json::to_string(&Line { replay, result });
        let line = to_line(self.seed, &line.map_err(|error| fault(error.to_string()))?);
        let mut end = self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        end.write(line.as_bytes()).map_err(fault)
    }
}

impl End {
    /// One write a line: what is cut off by a kill is the last line, and only that.
    fn write(&mut self, line: &[u8]) -> Result<(), String> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if let Err(error) = self.file.write_all(line) {
            let failed = format!(
                "cannot write it: {error}; it holds what was finished before, and the same command \
                 goes on with that"
            );
            // Where even this fails, the torn line is still the last one.
            let _ = self.file.set_len(self.whole);
            let _ = self.file.seek(SeekFrom::Start(self.whole));
            self.failed = Some(failed.clone());
            return Err(failed);
        }
        self.whole += line.len() as u64;
        Ok(())
    }
}

/// The lines of a file, none held that is longer than allowed.
struct Lines<R> {
    input: R,
    /// Bytes of the whole lines so far.
    whole: u64,
    /// Number of the line last read, from 1.
    number: usize,
}

/// One line, read.
enum Next {
    /// Without its end.
    Whole(Vec<u8>),
    /// The file ends in it; empty at the end of a whole file.
    Torn(Vec<u8>),
    TooLong,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self, most: u64) -> std::io::Result<Next> {
        let mut line = Vec::new();
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut line)? as u64;
        self.number += 1;
        Ok(match line.pop() {
            Some(b'\n') => {
                self.whole += read;
                Next::Whole(line)
            }
            Some(_) if read == most => Next::TooLong,
            Some(last) => {
                line.push(last);
                Next::Torn(line)
            }
            None => Next::Torn(line),
        })
    }
}

const NO_JOURNAL: &str = "it is not a hotset journal; give another file";

/// A line of JSON under its checksum.
fn to_line(seed: u64, json: &str) -> String {
    format!("{:016x} {json}\n", xxh3_64_with_seed(json.as_bytes(), seed))
}

/// A line's JSON; `None` where its checksum is not that of its contents.
fn checked(line: &[u8], seed: u64) -> Option<&[u8]> {
    let (sum, json) = line.split_at_checked(16)?;
    let json = json.strip_prefix(b" ")?;
    let expected = format!("{:016x}", xxh3_64_with_seed(json, seed));
    (sum == expected.as_bytes()).then_some(json)
}

fn check_header(line: &[u8], work: &Work) -> Result<(), String> {
    // The first version's lines had no checksums; whose they are can still be told.
    let json = checked(line, 0).unwrap_or(line);
    let of: Work = serde_json::from_slice(json).map_err(|_| NO_JOURNAL.to_owned())?;
    difference(&of, work).map_or(Ok(()), Err)
}

/// Reads the line of one finished replay.
fn read_into<T: DeserializeOwned>(
    found: &mut [Option<T>],
    line: &[u8],
    seed: u64,
    possible: impl Fn(usize, &T) -> bool,
) -> Result<(), String> {
    let damaged = |why: &str| format!("is damaged ({why})");
    let json = checked(line, seed).ok_or_else(|| damaged("its checksum is wrong"))?;
    let Line { replay, result } =
        serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
    let replays = found.len();
    let place = found.get_mut(replay).ok_or_else(|| format!("has replay {replay} of {replays}"))?;
    if place.is_some() {
        return Err(format!("has replay {replay} again"));
    }
    if !possible(replay, &result) {
        return Err(format!("has what replay {replay} cannot have counted"));
    }
    *place = Some(result);
    Ok(())
}

/// Why a journal of work `of` is not one of work `wanted`.
fn difference(of: &Work, wanted: &Work) -> Option<String> {
    let replays = (of.replays.to_string(), wanted.replays.to_string());
    let differs = [
        ("of another format", &of.journal, &wanted.journal),
        ("by another version of hotset", &of.hotset, &wanted.hotset),
        ("of another trace", &of.trace, &wanted.trace),
        ("with other flags", &of.flags, &wanted.flags),
        ("of another number of replays", &replays.0, &replays.1),
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

    fn open(path: &Path) -> Result<Journal<Vec<u64>>, SimError> {
        Journal::open(path, &work(), |_, result: &Vec<u64>| result.len() < 3)
    }

    /// The journal's first line, and a line that goes behind it.
    fn behind(header: &str, json: &str) -> String {
        let of = header.split_once(' ').unwrap().1.trim_end();
        format!("{header}{}", to_line(xxh3_64(of.as_bytes()), json))
    }

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
        let journal = open(&path).unwrap();
        journal.keep(2, &vec![1, 2]).unwrap();
        journal.keep(0, &vec![u64::MAX]).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let journal = open(&path).unwrap();
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(journal.take(2), (lines > 1).then(|| vec![1, 2]), "{length} bytes");
            assert_eq!(journal.take(2), None, "given out once");
            assert_eq!(journal.take(0), (lines > 2).then(|| vec![u64::MAX]));
            journal.keep(1, &vec![]).unwrap();
            drop(journal);
            let again = open(&path).unwrap();
            assert_eq!(again.take(1), Some(vec![]));
        }
    }

    #[test]
    fn other_work_other_files_and_damage_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let told = |work: &Work| {
            Journal::<u64>::open(&path, work, |_, result| *result != 9).unwrap_err().to_string()
        };
        let journal = Journal::<u64>::open(&path, &work(), |_, _| true).unwrap();
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
        assert!(told(&other(|work| work.replays = 4)).contains("another number of replays"));
        let header = std::fs::read_to_string(&path).unwrap();
        let put = |text: String| std::fs::write(&path, text).unwrap();
        put(format!("{header}nonsense\n"));
        assert!(told(&work()).contains("line 2 is damaged"));
        put(behind(&header, r#"{"replay":3,"result":1}"#));
        assert!(told(&work()).contains("line 2 has replay 3 of 3"));
        put(behind(&header, r#"{"replay":2,"result":9}"#));
        assert!(told(&work()).contains("line 2 has what replay 2 cannot have counted"));
        let sound = behind(&header, r#"{"replay":2,"result":1}"#);
        put(sound.clone() + &behind(&header, r#"{"replay":2,"result":1}"#)[header.len()..]);
        assert!(told(&work()).contains("line 3 has replay 2 again"));
        put(sound.replace(r#""result":1"#, r#""result":2"#));
        assert!(told(&work()).contains("line 2 is damaged (its checksum is wrong)"));
        let first = header.split_once(' ').unwrap().1.replace(FORMAT, "hotset-journal/1");
        put(first);
        assert!(told(&work()).contains("of another format (hotset-journal/1, not"));
        for text in ["a letter", "a letter\nof two lines\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(told(&work()).contains("not a hotset journal"));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "left as it was");
        }
    }

    #[test]
    fn no_digit_of_a_line_can_be_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = open(&path).unwrap();
        journal.keep(2, &vec![11, 22]).unwrap();
        journal.keep(0, &vec![33]).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).filter(|&at| whole[at].is_ascii_digit()) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(&path, &flipped).unwrap();
            assert!(open(&path).is_err(), "byte {at} flipped and believed");
        }
    }

    #[test]
    fn what_is_no_file_of_lines_is_refused_without_being_held() {
        let zeros = open(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(zeros.contains("not a regular file"), "{zeros}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let sparse = open(&path).unwrap_err().to_string();
        assert!(sparse.contains("not a hotset journal"), "{sparse}");
    }
}
