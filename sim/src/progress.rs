//! How whoever asks for many replays follows them.

/// Follows how replays go; called from several threads.
pub trait ReplayProgress: Sync {
    /// There are `replays` to do.
    fn begin(&self, replays: u64);
    /// One of them is done.
    fn advance(&self);
    /// One of them had been done before.
    fn skip(&self) {
        self.advance();
    }
    /// Whether to stop before the next one.
    fn cancelled(&self) -> bool {
        false
    }
}

impl ReplayProgress for () {
    fn begin(&self, _: u64) {}
    fn advance(&self) {}
}
