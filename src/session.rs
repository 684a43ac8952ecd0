//! What a program that runs a command in its own process gives it, and gets of it.
//!
//! A command asks here for traces and policies that no path or name leads to, and leaves here what a
//! terminal would be shown. The session belongs to the thread that runs the command; threads of its
//! own pool are given it by [`on_this_thread`]. Without one, everything is as the terminal has it.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotset::policies::GivenPolicy;
use hotset::traces::Trace;

/// Follows and may stop the work; called from several threads.
pub trait Follower: Send + Sync {
    /// There are so many replays to do.
    fn begin(&self, replays: u64);
    /// One of them is done.
    fn advance(&self);
    /// Whether to stop: asked every few milliseconds.
    fn cancelled(&self) -> bool;
}

/// Nobody follows.
impl Follower for () {
    fn begin(&self, _: u64) {}
    fn advance(&self) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// Runs the work of one of the command's threads, within what the host needs around it.
pub type AroundThread = fn(&mut (dyn FnMut() + Send));

/// What a command is given.
pub struct Session {
    /// Traces in memory, by the text that stands for each in place of a path.
    pub traces: Vec<(String, Trace)>,
    /// Policies in memory, which go before those of the same name.
    pub policies: Vec<GivenPolicy>,
    /// Who follows the work.
    pub follower: Arc<dyn Follower>,
    /// What each thread that replays is run within.
    pub around: Option<AroundThread>,
    /// What was shown.
    pub shown: Mutex<Shown>,
}

/// What a terminal would have been shown.
#[derive(Default)]
pub struct Shown {
    /// The result.
    pub output: String,
    /// Warnings and notes, a line each.
    pub notes: Vec<String>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Session>>> = const { RefCell::new(None) };
}

impl Session {
    /// What was shown so far.
    pub fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This thread's session.
pub fn current() -> Option<Arc<Session>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` with this session on this thread.
pub fn on_this_thread<T>(session: Option<Arc<Session>>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<Session>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(session));
    work()
}

/// The trace in memory that a path stands for.
pub fn trace(path: &Path) -> Option<Trace> {
    let session = current()?;
    let named = session.traces.iter().find(|(name, _)| Path::new(name) == path);
    named.map(|(_, trace)| trace.clone())
}

/// The policy in memory that a text names.
pub fn policy(text: &str) -> Option<GivenPolicy> {
    current()?.policies.iter().find(|policy| policy.info().name == text).cloned()
}

/// Tells a person something beside the result: on standard error where there is no session.
pub fn note(text: String) {
    match current() {
        Some(session) => session.shown().notes.push(text),
        None => eprintln!("{text}"),
    }
}
