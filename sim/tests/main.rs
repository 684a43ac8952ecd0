//! Tests of the replay core: one binary, a module a subject.

mod common;
mod limits;
mod live;
mod queueing;
mod report;
mod serving;
