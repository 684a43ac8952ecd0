//! The `.hst` file: a checked preamble, a header, then column sections.
//!
//! ```text
//! 0    8  magic "\x89HST\r\n\x1a\n" (survives no text-mode copy)
//! 8    4  format version, u32          all integers little-endian
//! 12   4  zero
//! 16   8  header length in bytes
//! 24   8  XXH3-64 of the header
//! 32   8  length of the whole file
//! 40  16  zero
//! 56   8  XXH3-64 of bytes 0 to 55
//! 64      header: bincode 2 (variable integers) of `Header`
//! ...     sections in the header's order, each beginning at a multiple of 64, zeros between;
//!         the file ends with the last section's last byte
//! ```
//! So every byte is under a checksum or must be zero. The preamble keeps this layout in every
//! later version; all else may change with the version.

mod layout;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::ratio_accepted;
pub use write::{Codec, write_hst, write_hst_watched};

/// The newest format version, which is also the one written.
pub const VERSION: u32 = 1;
