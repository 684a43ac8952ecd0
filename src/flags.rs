//! From a field of the libraries to the flag that sets it.
//!
//! A library knows nothing of the command line: its messages name the field, as in
//! `` `Compare::train` ``, which is what its callers set. Here each such name becomes the flag that a
//! person types, so that no message is written twice.

/// Each field that a library's message names, and its flag.
const FLAGS: &[(&str, &str)] =
    &[("ImportOptions::layers", "--layers"), ("ImportOptions::top_k", "--top-k")];

/// A library's text with flags where it names fields.
pub fn with_flags(text: &str) -> String {
    let mut told = text.to_owned();
    for (field, flag) in FLAGS {
        told = told.replace(&format!("`{field}`"), flag);
    }
    told
}
