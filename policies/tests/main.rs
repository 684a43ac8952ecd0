//! Tests of the policies and the cache: one binary, a module a subject.

mod against_reference;
mod bounds;
mod freetoken;
mod golden;
mod house;
mod memory;
mod plans;
mod random_calls;
mod recorded;
mod shared;
