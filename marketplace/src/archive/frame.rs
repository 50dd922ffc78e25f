//! How the records of an archive lie in it: file behind file, then the directory, then the end, and nothing else.
//!
//! The library looks for these records in several places, as other tools write them. What this module lets through has
//! one reading only, and needs no more memory than its files do.

use crate::error::PackageError;
use crate::verify::FILES_MAX;

const END_BEGINS: &[u8] = b"PK\x05\x06";
/// Bytes of the record at the end of an archive that has no comment.
const END_BYTES: usize = 22;
const RECORD_BEGINS: &[u8] = b"PK\x01\x02";
/// Bytes of a record of the directory, without name, extra field and comment.
const RECORD_BYTES: usize = 46;
const FILE_BEGINS: &[u8] = b"PK\x03\x04";
/// Bytes in front of a file, without its name and extra field.
const FILE_BYTES: usize = 30;
const DESCRIPTOR_BEGINS: &[u8] = b"PK\x07\x08";
/// The flag of a file whose sizes are told behind it.
const HAS_DESCRIPTOR: usize = 1 << 3;
/// The bits of a Unix mode with which a program runs as its owner or its group, and the sticky bit.
const LENDS_RIGHTS: usize = 0o7_000;

/// Refuses an archive with bytes that belong to no file, with files that share bytes, or with more files than a package has.
pub(super) fn check(bytes: &[u8]) -> Result<(), PackageError> {
    let end_at = bytes.len().checked_sub(END_BYTES).ok_or_else(|| refuse("it is too short for one"))?;
    let end = &bytes[end_at..];
    if !end.starts_with(END_BEGINS) || short(end, 20) != 0 {
        return Err(refuse("it has a comment, or there are bytes behind its end"));
    }
    let (on_this_disk, count) = (short(end, 8), short(end, 10));
    if short(end, 4) != 0 || short(end, 6) != 0 || on_this_disk != count {
        return Err(refuse("it is a part of several"));
    }
    if count == 0 {
        return Err(refuse("it has no files"));
    }
    if count > FILES_MAX {
        return Err(PackageError::TooManyFiles { max: FILES_MAX });
    }
    let (directory_bytes, directory_at) = (long(end, 12), long(end, 16));
    if directory_at.checked_add(directory_bytes) != Some(end_at) {
        return Err(refuse("there are bytes between its directory and its end"));
    }
    let files = &bytes[..directory_at];
    let mut extents = extents(files, &bytes[directory_at..end_at], count)?;
    extents.sort_unstable();
    let mut at = 0;
    for (begins, ends) in extents {
        if begins > at && at == 0 {
            return Err(refuse("there are bytes in front of its first file"));
        }
        if begins > at {
            return Err(refuse("there are bytes between its files"));
        }
        if begins < at {
            return Err(refuse("two of its files share bytes"));
        }
        at = ends;
    }
    if at == directory_at {
        Ok(())
    } else {
        Err(refuse("there are bytes between its files and its directory"))
    }
}

/// Where each file begins and ends, in the order of the directory.
fn extents(files: &[u8], directory: &[u8], count: usize) -> Result<Vec<(usize, usize)>, PackageError> {
    let mut extents = Vec::with_capacity(count);
    let mut rest = directory;
    for _ in 0..count {
        if rest.len() < RECORD_BYTES || !rest.starts_with(RECORD_BEGINS) {
            return Err(refuse("its directory has fewer files than its end says"));
        }
        let record_bytes = RECORD_BYTES + short(rest, 28) + short(rest, 30) + short(rest, 32);
        let record = rest.get(..record_bytes).ok_or_else(|| refuse("its directory is cut off"))?;
        // The library leaves these bits out of the modes that it tells.
        if short(record, 40) & LENDS_RIGHTS != 0 {
            return Err(refuse("a file would run with the rights of its owner or its group"));
        }
        extents.push(extent(files, record)?);
        rest = &rest[record_bytes..];
    }
    if rest.is_empty() {
        Ok(extents)
    } else {
        Err(refuse("its directory has more than the files that its end says"))
    }
}

/// Where the file of a record begins and ends, its name and descriptor included.
fn extent(files: &[u8], record: &[u8]) -> Result<(usize, usize), PackageError> {
    let outside = || refuse("a file is not where its directory says");
    let begins = long(record, 42);
    let file = files.get(begins..).filter(|file| file.len() >= FILE_BYTES && file.starts_with(FILE_BEGINS));
    let file = file.ok_or_else(outside)?;
    let content_bytes = long(record, 20);
    let file_bytes = FILE_BYTES + short(file, 26) + short(file, 28);
    let behind =
        file.get(file_bytes..).and_then(|content| content.get(content_bytes..)).ok_or_else(outside)?;
    let mut ends = begins + file_bytes + content_bytes;
    if short(record, 8) & HAS_DESCRIPTOR != 0 {
        // It repeats the check sum and the two sizes, with or without a beginning of its own.
        let told = &record[16..28];
        if behind.starts_with(told) {
            ends += told.len();
        } else if behind.strip_prefix(DESCRIPTOR_BEGINS).is_some_and(|behind| behind.starts_with(told)) {
            ends += DESCRIPTOR_BEGINS.len() + told.len();
        } else {
            return Err(refuse("a file has other sizes than its directory says"));
        }
    }
    Ok((begins, ends))
}

fn refuse(problem: &str) -> PackageError {
    PackageError::Archive(problem.to_owned())
}

/// The number of two bytes at a place that is there.
fn short(record: &[u8], at: usize) -> usize {
    record[at..].first_chunk().map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
}

/// The number of four bytes.
fn long(record: &[u8], at: usize) -> usize {
    record[at..]
        .first_chunk()
        .map_or(0, |bytes| usize::try_from(u32::from_le_bytes(*bytes)).unwrap_or(usize::MAX))
}
