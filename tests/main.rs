//! Tests of the whole: the binary, driven as a user does: one binary, a module a subject.

mod answers;
mod common;
mod compare;
mod conform;
mod diff;
mod experiment;
mod flags;
mod formats;
mod hostile;
mod imports;
mod inputs;
mod interrupts;
mod kills;
mod layouts;
mod live;
mod machines;
mod misses;
mod outputs;
mod plan;
mod plots;
mod receipts;
mod replay;
mod schemas;
mod sweep;
mod trace;
mod verify_plan;
