//! Progress bars on standard error: silent where that is not a terminal.

use std::sync::Arc;

use hotset::sim::ReplayProgress;
use hotset::traces::ReadProgress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;
use crate::session::{self, Session};

/// A host has a bar of its own.
fn quiet_in_a_session(bar: ProgressBar) -> ProgressBar {
    match session::current() {
        Some(_) => ProgressBar::hidden(),
        None => bar,
    }
}

/// Counts replays.
pub struct Bar {
    bar: ProgressBar,
    session: Option<Arc<Session>>,
}

impl Bar {
    /// A bar that shows once the work begins.
    pub fn new() -> Self {
        let bar = quiet_in_a_session(ProgressBar::new(0));
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {pos}/{len} replays, {eta} left {msg}")
        {
            bar.set_style(style);
        }
        Self { bar, session: session::current() }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl ReplayProgress for Bar {
    fn begin(&self, replays: u64) {
        interrupt::cooperate();
        self.bar.set_length(replays);
        if let Some(session) = &self.session {
            session.follower.begin(replays);
        }
    }

    fn advance(&self) {
        self.bar.inc(1);
        if let Some(session) = &self.session {
            session.follower.advance();
        }
    }

    fn skip(&self) {
        // What an earlier run did says nothing of how long this one takes.
        self.bar.inc(1);
        self.bar.reset_eta();
        if let Some(session) = &self.session {
            session.follower.advance();
        }
    }

    fn cancelled(&self) -> bool {
        interrupt::requested() || cancelled(self.session.as_deref())
    }
}

/// Counts bytes that are read.
pub struct Bytes {
    bar: ProgressBar,
    session: Option<Arc<Session>>,
}

impl Bytes {
    /// A bar for so many bytes.
    pub fn new(bytes: u64) -> Self {
        interrupt::cooperate();
        let bar = quiet_in_a_session(ProgressBar::new(bytes));
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left {msg}",
        ) {
            bar.set_style(style);
        }
        Self { bar, session: session::current() }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl ReadProgress for Bytes {
    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn cancelled(&self) -> bool {
        interrupt::requested() || cancelled(self.session.as_deref())
    }
}

/// Replays ask on threads that have no session of their own.
fn cancelled(session: Option<&Session>) -> bool {
    session.is_some_and(|session| session.follower.cancelled())
}
