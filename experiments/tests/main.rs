//! Tests of the experiments: one binary, a module a subject.

mod leaks;
mod study;
