//! A policy that is not in the list: the caller's own, built at run time.

use std::fmt;
use std::sync::Arc;

use super::{AnyPolicy, PolicyInfo};
use crate::policy::PoolShape;

type Build = dyn Fn(&PoolShape) -> AnyPolicy + Send + Sync;

/// A policy of the caller's own, as [`PolicySpec::Given`](crate::PolicySpec::Given) has it: it is
/// compared, placed and guarded like those of the list.
///
/// ```
/// use hotset_policies::{
///     AnyPolicy, Fifo, GivenPolicy, Need, Policy as _, PolicyInfo, PolicySpec, PoolShape,
/// };
///
/// static MINE: PolicyInfo = PolicyInfo {
///     name: "mine",
///     summary: "first in, first out, under another name",
///     definition: "As fifo.",
///     source: "this example",
///     needs: Need::Nothing,
///     parameters: &[],
/// };
/// let mine = GivenPolicy::new(&MINE, |pool| AnyPolicy::new(Fifo::new(pool)));
/// let spec = PolicySpec::Given(mine);
/// assert_eq!(spec.info().name, "mine");
/// assert!(spec.build(&PoolShape::flat(4, 16)).unwrap().is_empty());
/// ```
#[derive(Clone)]
pub struct GivenPolicy {
    info: &'static PolicyInfo,
    build: Arc<Build>,
}

impl GivenPolicy {
    /// A policy that `info` describes; `build` makes the policy of one pool.
    #[must_use]
    pub fn new(
        info: &'static PolicyInfo,
        build: impl Fn(&PoolShape) -> AnyPolicy + Send + Sync + 'static,
    ) -> Self {
        Self { info, build: Arc::new(build) }
    }

    /// What people are told of it.
    #[must_use]
    pub fn info(&self) -> &'static PolicyInfo {
        self.info
    }

    /// The policy of one pool.
    #[must_use]
    pub fn build(&self, pool: &PoolShape) -> AnyPolicy {
        (self.build)(pool)
    }

    /// Bytes to reckon with for a pool: nobody but the caller knows, so a word a key.
    #[must_use]
    pub fn memory(&self, pool: &PoolShape) -> u64 {
        8 * u64::from(pool.keys)
    }
}

impl fmt::Debug for GivenPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GivenPolicy").field(&self.info.name).finish()
    }
}

impl PartialEq for GivenPolicy {
    /// The same policy, not one that decides the same.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}
