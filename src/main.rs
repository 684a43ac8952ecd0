//! The `hotset` command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    hotset::host::main()
}
