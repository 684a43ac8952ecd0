//! What each kind of command prints, to the byte: `tests/outputs/*.trycmd` hold commands with
//! their whole output. A change that is meant is written with
//! `TRYCMD=overwrite cargo test --test main outputs::` and read in the diff.

#[test]
fn commands_print_the_same_bytes_as_ever() {
    trycmd::TestCases::new().case("tests/outputs/*.trycmd");
}
