//! Files that are read whole, with a bound: what never ends (`/dev/zero`) is refused, not read on.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::fault::Fault;

/// No table of measurements and no calibration is longer.
pub const MOST_MEASUREMENT_BYTES: u64 = 64 << 20;

/// The bytes of a file, a pipe or a device that has at most `most` of them.
pub fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, Fault> {
    let fault = |reason| Fault::Read { path: path.display().to_string(), reason };
    let mut bytes = Vec::new();
    // One byte more tells what is too long from what ends there.
    let file = File::open(path).map_err(fault)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > most {
        let told = format!("it has more than {} MiB: this is no such file", most >> 20);
        return Err(fault(std::io::Error::other(told)));
    }
    Ok(bytes)
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> Result<String, Fault> {
    String::from_utf8(read_bytes(path, most)?).map_err(|_| Fault::Read {
        path: path.display().to_string(),
        // As the standard library words it.
        reason: std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "stream did not contain valid UTF-8",
        ),
    })
}

/// Refuses pipes and devices as files of counts: those are read more than once.
pub fn refuse_pipe(path: &Path) -> Result<(), Fault> {
    match path.metadata() {
        Ok(found) if !found.is_file() && !found.is_dir() => Err(Fault::Usage(format!(
            "{}: it is a pipe or a device, and a file of counts is read more than once: write it into a file first",
            path.display()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, vec![b'a'; 1 << 20]).unwrap();
        assert_eq!(read_bytes(&path, 1 << 20).unwrap().len(), 1 << 20);
        let told = read_bytes(&path, (1 << 20) - 1).unwrap_err().to_string();
        assert!(told.contains("more than 0 MiB"), "{told}");
        assert!(refuse_pipe(&path).is_ok());
        #[cfg(unix)]
        {
            let told = read_bytes(Path::new("/dev/zero"), 2 << 20).unwrap_err().to_string();
            assert!(told.contains("more than 2 MiB"), "{told}");
            let told = refuse_pipe(Path::new("/dev/zero")).unwrap_err().to_string();
            assert!(told.contains("a pipe or a device, and a file of counts is"), "{told}");
        }
    }
}
