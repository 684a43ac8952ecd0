//! Text files whose size nobody knows beforehand.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// A whole text file of at most `most_mib` MiB; `what` is the kind of file that is never larger.
///
/// # Errors
/// The system's, not UTF-8, or it is larger: no more than that is ever read.
pub(crate) fn read_text(path: &Path, most_mib: u64, what: &str) -> Result<String> {
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::other(format!("it is larger than {most_mib} MiB, which no {what} is")));
    }
    // As the standard library words it.
    let wrong = |_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8");
    String::from_utf8(bytes).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_not_read() {
        if cfg!(unix) {
            let told = read_text(Path::new("/dev/zero"), 1, "profile").unwrap_err().to_string();
            assert_eq!(told, "it is larger than 1 MiB, which no profile is");
        }
        assert!(read_text(Path::new("/nowhere.toml"), 1, "profile").is_err());
    }
}
