//! Tests of the whole: the binary, driven as a user does: one binary, a module a subject.

mod answers;
mod common;
mod compare;
mod conform;
mod experiment;
mod flags;
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
mod receipts;
mod replay;
mod sweep;
mod tiers;
mod trace;
mod verify_plan;
