//! Ctrl-C: work that can stop between two replays does so and leaves nothing behind.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static COOPERATIVE: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C end the process with exit code 3.
pub fn install() {
    // Without a handler Ctrl-C still ends the process, only with the system's own code.
    let _ = ctrlc::set_handler(|| {
        let again = REQUESTED.swap(true, Ordering::SeqCst);
        if again || !COOPERATIVE.load(Ordering::SeqCst) {
            eprintln!("interrupted; nothing was written");
            std::process::exit(3);
        }
    });
}

/// From here on the work asks [`requested`] itself; a second Ctrl-C ends the process at once.
pub fn cooperate() {
    COOPERATIVE.store(true, Ordering::SeqCst);
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
