//! Tests of conformance: one binary, a module a subject.

mod checks;
mod scenarios;
