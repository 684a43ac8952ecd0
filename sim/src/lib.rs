//! The replay core.
