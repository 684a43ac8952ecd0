//! Progress bars on standard error: silent where that is not a terminal.

use hotset::sim::ReplayProgress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;

/// Counts replays.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows once the work begins.
    pub fn new() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {pos}/{len} replays, {eta} left {msg}")
        {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl ReplayProgress for Bar {
    fn begin(&self, replays: u64) {
        interrupt::cooperate();
        self.0.set_length(replays);
    }

    fn advance(&self) {
        self.0.inc(1);
    }

    fn skip(&self) {
        // What an earlier run did says nothing of how long this one takes.
        self.0.inc(1);
        self.0.reset_eta();
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}

/// Counts bytes that are read.
pub struct Bytes(ProgressBar);

impl Bytes {
    /// A bar for so many bytes.
    pub fn new(bytes: u64) -> Self {
        interrupt::cooperate();
        let bar = ProgressBar::new(bytes);
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left {msg}",
        ) {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl hotset::traces::ReadProgress for Bytes {
    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn cancelled(&self) -> bool {
        interrupt::requested()
    }
}
