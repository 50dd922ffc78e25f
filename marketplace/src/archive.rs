//! A package as one ZIP archive of its files, as it is sent to a server.
//!
//! The archive only carries the files. What they are worth is judged as for a folder: signature, sizes and hashes. So the
//! bounds here only keep the reading small. Entries are read one by one and never written to a disk.

mod frame;

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};

use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipReadOptions, ZipWriter};

use crate::error::PackageError;
use crate::names;
use crate::verify::{PACKAGE_BYTES_MAX, bytes_max, length};

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
    frame::check(bytes)?;
    // Entries of one name are kept apart, so that none of them hides another.
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive = ZipIterable::try_new(Cursor::new(bytes), config)
        .map_err(|error| refused(&error))?
        .enforce_header_consistency(true);
    let mut files = BTreeMap::new();
    let mut room = Room::of(bytes);
    for entry in archive.files().map_err(|error| refused(&error))? {
        let entry = entry.map_err(|error| refused(&error))?;
        let name = name_of(&entry)?;
        let content = content_of(entry, &name, bytes, &mut room)?;
        if files.insert(name.clone(), content).is_some() {
            return Err(PackageError::DuplicateFile(name));
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

/// Returns the name of an entry that is a plain file.
fn name_of(entry: &ZipFileEntry<'_>) -> Result<String, PackageError> {
    // A name with bytes that are no UTF-8 shows a replacement character here and is refused.
    let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
    let is_called_otherwise = entry.name().map_err(|error| refused(&error))? != name;
    if entry.is_dir() {
        return Err(PackageError::Archive(format!(
            "'{name}' is a folder; only files are in it, with their whole names"
        )));
    }
    names::check_name(&name)?;
    let kind = entry.unix_mode().map_or(FILE_KIND, |mode| mode & KIND_BITS);
    if entry.is_symlink() || (kind != FILE_KIND && kind != 0) {
        return Err(PackageError::NotRegular(name));
    }
    if is_called_otherwise {
        return Err(PackageError::Archive(format!("'{name}' has a second name")));
    }
    if entry.encrypted() {
        return Err(PackageError::Archive(format!("'{name}' is encrypted")));
    }
    match entry.compression() {
        CompressionMethod::Stored | CompressionMethod::Deflated => Ok(name),
        _ => Err(PackageError::Archive(format!("'{name}' is neither stored nor deflated"))),
    }
}

/// The bits of a Unix mode that say what a file is, and a plain file among them.
const KIND_BITS: u32 = 0o170_000;
const FILE_KIND: u32 = 0o100_000;

/// Reads an entry to its end. It must have the size that the archive says: so no more memory is taken than for that.
fn content_of(
    entry: ZipFileEntry<'_>,
    name: &str,
    archive: &[u8],
    room: &mut Room,
) -> Result<Vec<u8>, PackageError> {
    let (size, max) = (entry.size(), bytes_max(name));
    if size > max {
        return Err(PackageError::TooLarge { name: name.to_owned(), max });
    }
    room.take(size)?;
    let unreadable =
        |error: std::io::Error| PackageError::Archive(format!("'{name}' cannot be read: {error}"));
    let mut source = Cursor::new(archive);
    let mut file = entry.with_reader(&mut source, ZipReadOptions::new()).map_err(|error| refused(&error))?;
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.by_ref().take(size).read_to_end(&mut content).map_err(unreadable)?;
    // The check sum is compared when nothing more comes.
    let is_longer = file.read(&mut [0]).map_err(unreadable)? > 0;
    if is_longer || length(&content) != size {
        return Err(PackageError::Archive(format!("'{name}' has another size than the archive says")));
    }
    Ok(content)
}

fn refused(error: &ZipError) -> PackageError {
    PackageError::Archive(error.to_string())
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
