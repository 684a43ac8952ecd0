//! What policies are made of: lists, heaps, sets and counts over dense keys. Private, so that they
//! can change with the policies.

pub(crate) mod adaptive_lists;
pub(crate) mod lazy_heap;
pub(crate) mod list;
pub(crate) mod memory;
pub(crate) mod position_set;
pub(crate) mod queues;
pub(crate) mod ranked;
pub(crate) mod resident_set;
pub(crate) mod ring;
pub(crate) mod transitions;
pub(crate) mod weight;
