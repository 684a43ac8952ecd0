//! hotset for C: the expert cache and recorded traces behind opaque handles.
//!
//! Every function is guarded: pointers are looked at before they are followed, ids before they reach
//! the cache, and a panic becomes [`Status::Panic`]. The header `include/hotset.h` is made from
//! these files.

mod cache;
mod status;
mod trace;

pub use cache::*;
pub use status::*;
pub use trace::*;
