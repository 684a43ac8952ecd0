//! The `hotset` command line.
fn main() {}
