//! Tests of planning: one binary, a module a subject.

mod properties;
mod receipts;
mod shared;
mod speeds;
