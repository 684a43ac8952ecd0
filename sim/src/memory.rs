//! Memory that grows with squares or products of a trace's numbers, stated before it is taken.
//!
//! A single stray id makes a layer of 65,536 experts. What would then take more than the request
//! allows is refused by itself, with its size; the limit is a number and not a share of this
//! machine's memory, so that a request gives the same everywhere.

use hotset_policies::PolicySpec;
use hotset_policies::Slots;
use hotset_traces::Shape;

use crate::capacity::dimensions;
use crate::size::Size;
use crate::{Compare, Named, SimError};

/// The default of [`Compare::policy_memory`]: 4 GiB, several times what any policy takes over the
/// largest models of today.
pub const POLICY_MEMORY: u64 = 4 << 30;

/// A policy that is not replayed at a size because of the memory that it would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Place of the policy.
    pub policy: usize,
    /// Place of the size.
    pub size: usize,
    /// Bytes that it would take.
    pub bytes: u64,
}

/// Bytes that the policies of a cache with these slots hold; 0 for an impossible cache, which its
/// replay refuses by a better reason.
pub(crate) fn policy_bytes(policy: &PolicySpec, slots: &Slots, shape: &Shape) -> u64 {
    let (experts, top_k) = dimensions(shape);
    let pools = slots.pools(&experts, &top_k).unwrap_or_default();
    pools.iter().map(|pool| policy.memory(pool)).fold(0, u64::saturating_add)
}

/// Refuses `what` where it would take more than `limit` bytes.
pub(crate) fn check(what: impl Into<String>, bytes: u64, limit: u64) -> Result<(), SimError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(SimError::Memory { what: what.into(), bytes, limit })
}

/// The policies that may not be replayed at some of the sizes.
///
/// # Errors
/// [`SimError::Memory`] where none may be replayed at any.
pub(crate) fn refused(
    request: &Compare,
    shape: &Shape,
    sizes: &[Size],
) -> Result<Vec<Refused>, SimError> {
    let mut refused = Vec::new();
    for (policy, Named { value: spec, .. }) in request.policies.iter().enumerate() {
        for (size, of) in sizes.iter().enumerate() {
            let bytes = policy_bytes(spec, &of.slots, shape);
            if bytes > request.policy_memory {
                refused.push(Refused { policy, size, bytes });
            }
        }
    }
    match refused.first() {
        Some(first) if refused.len() == request.policies.len() * sizes.len() => {
            let name = &request.policies[first.policy].text;
            check(format!("policy '{name}'"), first.bytes, request.policy_memory)?;
        }
        _ => {}
    }
    Ok(refused)
}
