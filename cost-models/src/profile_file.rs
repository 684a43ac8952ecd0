//! Reading profiles: links, machines, engines.

use std::path::Path;

use crate::ProfileError;
use crate::bounded::read_text;

/// The most that a profile may take, in MiB; the largest of this project takes a hundredth of it.
const MOST_MIB: u64 = 4;

/// The text of a profile.
///
/// # Errors
/// [`ProfileError::Io`] when the file cannot be read, is no text, or is larger than 4 MiB.
pub fn read_profile(path: &Path) -> Result<String, ProfileError> {
    let read = read_text(path, MOST_MIB, "profile");
    read.map_err(|source| ProfileError::Io { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_no_profile() {
        if cfg!(unix) {
            let told = read_profile(Path::new("/dev/zero")).unwrap_err().to_string();
            assert!(told.contains("/dev/zero") && told.contains("larger than 4 MiB"), "{told}");
        }
        assert!(read_profile(Path::new("/nowhere.toml")).is_err());
    }
}
