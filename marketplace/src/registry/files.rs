//! Files that are there whole or not at all, and are read within bounds.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;

/// Puts a file in its place, on the disk before its name shows: a reader sees the old one or the new one.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    replace(path, content).with_context(|| format!("'{}' cannot be written", path.display()))
}

fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::Error::other("a file needs a folder and a name"));
    };
    let aside = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let result = write_new(&aside, content).and_then(|()| std::fs::rename(&aside, path));
    if result.is_err() {
        // The error that is reported is the first one.
        let _ = std::fs::remove_file(&aside);
    }
    result?;
    // The new name is on the disk before the next file is written: their order is what readers rely on.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn write_new(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Reads a file up to one byte more than it may have; `None` when there is none.
pub(crate) fn read(path: &Path, bytes_max: u64) -> anyhow::Result<Option<Vec<u8>>> {
    let unreadable = || format!("'{}' cannot be read", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(unreadable),
    };
    let mut content = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut content).with_context(unreadable)?;
    Ok(Some(content))
}

/// Reads a file that must be there and must not be larger.
pub(crate) fn get(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let content = read(path, bytes_max)?.with_context(|| format!("'{}' is missing", path.display()))?;
    anyhow::ensure!(
        u64::try_from(content.len())? <= bytes_max,
        "'{}' has more than {bytes_max} bytes",
        path.display()
    );
    Ok(content)
}
