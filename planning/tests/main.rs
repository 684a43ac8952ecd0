//! Tests of planning: one binary, a module a subject.

mod interrupts;
mod properties;
mod receipts;
mod recordings;
mod reported;
mod reported_speeds;
mod shared;
mod speeds;
