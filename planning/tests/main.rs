//! Tests of planning: one binary, a module a subject.

mod properties;
mod receipts;
mod recordings;
mod shared;
mod speeds;
