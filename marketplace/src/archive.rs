//! A package as one ZIP archive of its files, as it is sent to a server.
//!
//! The archive only carries the files. What they are worth is judged as for a folder: signature, sizes and hashes. So the
//! bounds here only keep the reading small. Entries are read one by one and never written to a disk.

mod frame;

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use flate2::{Crc, Decompress, FlushDecompress, Status};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::error::PackageError;
use crate::names;
use crate::verify::{PACKAGE_BYTES_MAX, bytes_max, length};
use frame::{Entry, refuse};

/// Largest archive, in bytes.
pub const ARCHIVE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many times larger than the archive its files may be together.
const RATIO_MAX: u64 = 100;

/// Returns the files of an archive, by their names with `/`. Their names, number and sizes are those of a package; what
/// is in them is not judged. The archive is all that there is: nothing is in front of its first file or behind its end.
pub fn read_archive(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, PackageError> {
    if bytes.len() > ARCHIVE_BYTES_MAX {
        return Err(PackageError::ArchiveTooLarge { max: ARCHIVE_BYTES_MAX });
    }
    let mut files = BTreeMap::new();
    let mut room = Room::of(bytes);
    for entry in frame::entries(bytes)? {
        let content = content_of(&entry, &mut room)?;
        if files.insert(entry.name.clone(), content).is_some() {
            return Err(PackageError::DuplicateFile(entry.name));
        }
    }
    names::check_distinct(files.keys().map(String::as_str))?;
    Ok(files)
}

/// Bytes that the files of an archive may still have together.
struct Room {
    of_package: u64,
    of_archive: u64,
}

impl Room {
    fn of(archive: &[u8]) -> Self {
        Self { of_package: PACKAGE_BYTES_MAX, of_archive: length(archive).saturating_mul(RATIO_MAX) }
    }

    fn take(&mut self, bytes: u64) -> Result<(), PackageError> {
        let too_large = PackageError::PackageTooLarge { max: PACKAGE_BYTES_MAX };
        self.of_package = self.of_package.checked_sub(bytes).ok_or(too_large)?;
        let too_dense = PackageError::ArchiveRatio { max: RATIO_MAX };
        self.of_archive = self.of_archive.checked_sub(bytes).ok_or(too_dense)?;
        Ok(())
    }
}

/// Returns the content of an entry. It must have the size that the archive says: so no more memory is taken than for that.
fn content_of(entry: &Entry<'_>, room: &mut Room) -> Result<Vec<u8>, PackageError> {
    let name = &entry.name;
    let max = bytes_max(name);
    if entry.size > max {
        return Err(PackageError::TooLarge { name: name.clone(), max });
    }
    room.take(entry.size)?;
    let content = if entry.is_deflated { inflated(entry)? } else { entry.packed.to_vec() };
    if length(&content) != entry.size {
        return Err(refuse(format!("'{name}' has another size than the archive says")));
    }
    let mut crc = Crc::new();
    crc.update(&content);
    if crc.sum() != entry.crc {
        return Err(refuse(format!("'{name}' cannot be read: its check sum is another one")));
    }
    Ok(content)
}

/// Inflates what was deflated, which must end where the archive says: some readers look for the next file behind it.
fn inflated(entry: &Entry<'_>) -> Result<Vec<u8>, PackageError> {
    let Entry { name, packed, size, .. } = entry;
    let mut inflater = Decompress::new(false);
    // One more, so that the end is reached, and a content that is too long is seen.
    let mut content = Vec::with_capacity(usize::try_from(*size).unwrap_or(0) + 1);
    let status = inflater
        .decompress_vec(packed, &mut content, FlushDecompress::Finish)
        .map_err(|error| refuse(format!("'{name}' cannot be read: {error}")))?;
    if status != Status::StreamEnd {
        return Err(refuse(format!("'{name}' is cut off, or larger than the archive says")));
    }
    if inflater.total_in() != length(packed) {
        return Err(refuse(format!("'{name}' has bytes behind its content")));
    }
    Ok(content)
}

/// Returns an archive of these files, the same for the same files.
///
/// # Errors
/// A file cannot be compressed, which is a fault of the library.
pub fn write_archive(files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<Vec<u8>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        archive.start_file(name.as_str(), options)?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests;
