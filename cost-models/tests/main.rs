//! Tests of links, formats and models: one binary, a module a subject.

mod bounds;
mod configurations;
mod gguf_sizes;
mod golden_planning;
mod h200;
mod kinds;
mod models;
mod receipts;
mod shared;
