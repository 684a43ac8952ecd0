//! Results that are being written, known to the whole process, so that one that must end at once
//! takes their temporary files with it.
//!
//! Work that asks [`Progress::cancelled`](crate::Progress::cancelled) removes its file by itself; but
//! not all work can ask often enough (a compressor, somebody else's parser), and an `exit` runs no
//! destructor.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

#[derive(Debug)]
struct Files {
    unfinished: Vec<PathBuf>,
    finished: usize,
}

static FILES: Mutex<Files> = Mutex::new(Files { unfinished: Vec::new(), finished: 0 });

fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A temporary file that is on the list while this lives.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    pub(crate) fn new(path: &Path) -> Self {
        files().unfinished.push(path.to_owned());
        Self(path.to_owned())
    }

    /// Lets `rename` give the file its name, unless the process is ending.
    pub(crate) fn finish<T, E>(&self, rename: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut files = files();
        let renamed = rename()?;
        files.unfinished.retain(|path| *path != self.0);
        files.finished += 1;
        Ok(renamed)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        files().unfinished.retain(|path| *path != self.0);
    }
}

/// How many files got their names through [`write_file`](crate::write_file) so far.
pub fn finished_files() -> usize {
    files().finished
}

/// Removes the temporary files of all results that are being written. None gets its name after this:
/// whoever would give it one waits until the process ends, which must be at once.
pub fn abandon_unfinished() {
    let files = files();
    for path in &files.unfinished {
        let _ = std::fs::remove_file(path);
    }
    // Kept locked.
    std::mem::forget(files);
}
