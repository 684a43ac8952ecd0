//! Tests of the trace model and its importers: one binary, a module a subject.

mod formats;
mod recorded;
mod variations;
