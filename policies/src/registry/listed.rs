//! What a policy's file gives for its line in the list, and who is handed the policy's type.

use super::{Config, PolicyInfo};
use crate::policy::{Policy, PoolShape};

/// An online policy in the list of `eviction`.
#[diagnostic::on_unimplemented(
    message = "the policy `{Self}` is in the list, but its file has no `impl Listed for {Self}`",
    label = "this line needs `Config`, `INFO`, `configured` and `memory`, from the policy's file",
    note = "`eviction/recency/lru.rs` is the shortest example"
)]
pub trait Listed: Policy + Send + 'static {
    /// Its parameters.
    type Config: Config;
    /// What people are told of it.
    const INFO: &'static PolicyInfo;

    /// The policy of an empty pool.
    fn configured(pool: &PoolShape, config: &Self::Config) -> Self;

    /// Bytes that the policy of such a pool allocates. Computed, not measured: it can be asked
    /// before anything is allocated.
    fn memory(pool: &PoolShape, config: &Self::Config) -> u64;
}

/// A policy in the list that is built from the uses of each key in a training part of a trace.
pub trait Trained: Policy + Send + 'static {
    /// What people are told of it.
    const INFO: &'static PolicyInfo;

    /// The policy of an empty pool; `counts` has one entry for each key of the pool.
    fn trained(pool: &PoolShape, counts: &[u64]) -> Self;

    /// Bytes that the policy of such a pool allocates.
    fn memory(pool: &PoolShape) -> u64;
}

/// The bounds, which need the future and are built by whoever holds the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Belady's MIN under forced admission.
    Belady,
    /// MIN with bypass, driven event by event through [`BypassBound`](crate::BypassBound).
    BeladyBypass,
}

/// Receives a policy's type and how to build it: replays are compiled once for each policy, with
/// no dynamic dispatch inside.
pub trait Visitor {
    /// What the visit gives.
    type Output;

    /// An online policy; `build` makes the policy of one pool.
    fn online<P: Policy + Send + 'static>(self, build: impl Fn(&PoolShape) -> P) -> Self::Output;

    /// A bound that is built from the recorded future.
    fn offline(self, bound: Bound) -> Self::Output;

    /// A policy that is built from the uses of each key of the pool in a training part of the
    /// trace, which the visitor counts.
    fn trained<P: Policy + Send>(self, build: impl Fn(&PoolShape, &[u64]) -> P) -> Self::Output;
}
