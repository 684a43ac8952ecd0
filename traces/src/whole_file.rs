//! Files that appear whole or not at all: written beside the target, then renamed.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// The folder that a file lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes `path` through a temporary file in the same folder, which takes the name once
/// everything is on the disk. Where `write` fails, nothing is left.
///
/// # Errors
/// [`Error::Io`] where the file or its folder cannot be written; what `write` refuses.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> Result<()>,
) -> Result<()> {
    let io = |e| Error::io("write", path, e);
    let folder = folder_of(path);
    let file: NamedTempFile =
        tempfile::Builder::new().prefix(".hotset-").tempfile_in(folder).map_err(io)?;
    let mut buffered = BufWriter::with_capacity(1 << 18, file.as_file());
    write(&mut buffered)?;
    buffered.into_inner().map_err(|e| io(e.into_error()))?;
    readable_by_others(file.as_file()).map_err(io)?;
    file.as_file().sync_all().map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    // The rename itself must reach the disk too. Not every system lets a folder be opened.
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().ok();
    }
    Ok(())
}

/// Temporary files are private; a result is as readable as any new file usually is.
#[cfg(unix)]
fn readable_by_others(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_: &File) -> std::io::Result<()> {
    Ok(())
}
