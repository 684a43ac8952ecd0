//! One of the cache sizes that a request asks for.

use hotset_policies::Slots;

use crate::{Change, Scope};

/// One cache size.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Its scope.
    pub scope: Scope,
    /// Its slots, as training split them in adaptive scope.
    pub slots: Slots,
    /// Slots from given tokens on, ascending.
    pub resizes: Vec<Change<Slots>>,
}
