//! Tests of planning: one binary, a module a subject.

mod properties;
mod receipts;
mod reported;
mod shared;
mod speeds;
