//! The store and the clusters against naive ones, and cases worked by hand.

mod clusters;
mod guide;
mod store;
