//! Reading profiles: links, machines, engines.

use std::io::Read as _;
use std::path::Path;

use crate::ProfileError;

/// The most that a profile may take, in bytes; the largest of this project takes a hundredth of it.
const MOST: u64 = 4 << 20;

/// The text of a profile.
///
/// # Errors
/// [`ProfileError::Io`] when the file cannot be read, is no text, or is larger than 4 MiB.
pub fn read_profile(path: &Path) -> Result<String, ProfileError> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| {
        let size = file.take(MOST + 1).read_to_string(&mut text)?;
        match size as u64 > MOST {
            true => Err(std::io::Error::other("it is larger than 4 MiB, which no profile is")),
            false => Ok(text),
        }
    });
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
