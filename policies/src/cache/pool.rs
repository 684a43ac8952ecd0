//! The slots that share one policy.

pub(super) struct Pool<P> {
    pub policy: P,
    /// Slots that hold nothing; the lowest is taken first after construction.
    pub free: Vec<u32>,
    pub capacity: u32,
}
