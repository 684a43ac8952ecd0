//! Tests of the replay core: one binary, a module a subject.

mod common;
mod curve;
mod limits;
mod live;
mod memory;
mod misses;
mod preparation;
mod queueing;
mod report;
mod serving;
mod tiers;
