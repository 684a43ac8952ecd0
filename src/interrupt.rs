//! Ctrl-C: work ends within a second and leaves nothing behind.
//!
//! Work that can stop by itself asks [`requested`] and is given [`PATIENCE`]. What cannot ask that
//! often (a compressor, a parser, one long replay) is ended from here: outputs are renamed only when
//! they are whole, and their temporary files are known, so nothing is lost that was not lost anyway.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use hotset::traces::{abandon_unfinished, finished_files};

use crate::session;

/// How long work that was asked to stop may take.
const PATIENCE: Duration = Duration::from_millis(400);

static REQUESTED: AtomicBool = AtomicBool::new(false);
static COOPERATIVE: AtomicBool = AtomicBool::new(false);
static TOLD: AtomicBool = AtomicBool::new(false);
static WORK: OnceLock<String> = OnceLock::new();
static GOES_ON: Mutex<Option<String>> = Mutex::new(None);

/// Makes Ctrl-C end the process with exit code 3.
pub fn install() {
    // Without a handler Ctrl-C still ends the process, only with the system's own code.
    let _ = ctrlc::set_handler(|| {
        let again = REQUESTED.swap(true, Ordering::SeqCst);
        if again || !COOPERATIVE.load(Ordering::SeqCst) {
            end();
        }
        std::thread::spawn(|| {
            std::thread::sleep(PATIENCE);
            end();
        });
    });
}

/// Names the command that runs, as it was typed.
pub fn name(command: String) {
    let _ = WORK.set(command);
}

/// Says how work that is interrupted can be gone on with.
pub fn goes_on(how: String) {
    *GOES_ON.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(how);
}

/// From here on the work asks [`requested`] itself; a second Ctrl-C ends the process at once.
pub fn cooperate() {
    COOPERATIVE.store(true, Ordering::SeqCst);
}

/// Whether Ctrl-C was pressed, or the session's host wants the work stopped.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
        || session::current().is_some_and(|session| session.follower.cancelled())
}

/// Says once what was interrupted.
pub fn tell() {
    if TOLD.swap(true, Ordering::SeqCst) {
        return;
    }
    let written = if finished_files() == 0 { "; nothing was written" } else { "" };
    let work = WORK.get().map(|work| format!(" ({work})")).unwrap_or_default();
    let goes_on = GOES_ON.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let goes_on = goes_on.as_ref().map(|how| format!("{how}\n")).unwrap_or_default();
    // Who closed standard error wants to hear nothing.
    let _ = write!(std::io::stderr(), "interrupted{written}{work}\n{goes_on}");
}

fn end() -> ! {
    tell();
    abandon_unfinished();
    std::process::exit(3)
}
