//! Router traces.
