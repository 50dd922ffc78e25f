//! How the records of an archive lie in it: file behind file, then the directory, then the end, and nothing else.
//!
//! Readers look for these records in different places: from the end, from the front, in fields and comments. What this
//! module lets through is the same to all of them.

use crate::error::PackageError;
use crate::names;
use crate::verify::FILES_MAX;

const END_BEGINS: &[u8] = b"PK\x05\x06";
/// Bytes of the record at the end of an archive that has no comment.
const END_BYTES: usize = 22;
const RECORD_BEGINS: &[u8] = b"PK\x01\x02";
/// Bytes of a record of the directory, without its name and its fields.
const RECORD_BYTES: usize = 46;
const HEADER_BEGINS: &[u8] = b"PK\x03\x04";
/// Bytes in front of a file, without its name and its fields.
const HEADER_BYTES: usize = 30;
const DESCRIPTOR_BEGINS: &[u8] = b"PK\x07\x08";

const ENCRYPTED: usize = 1;
/// The flag of a file whose sizes are told behind it.
const HAS_DESCRIPTOR: usize = 1 << 3;
/// How well the content is deflated, and that the name is UTF-8: these change nothing.
const HARMLESS: usize = 0b110 | 1 << 11;

/// The two methods of a package.
const STORED: usize = 0;
const DEFLATED: usize = 8;

/// The attribute of a folder on DOS.
const DOS_FOLDER: usize = 1 << 4;
/// The bits of a Unix mode that say what a file is, and a plain file among them.
const KIND_BITS: usize = 0o170_000;
const FILE_KIND: usize = 0o100_000;
/// The bits of a Unix mode with which a program runs as its owner or its group, and the sticky bit.
const LENDS_RIGHTS: usize = 0o7_000;

/// Fields with times and owners, as tools for Unix and Windows write them. Other fields can change what a file is.
const FIELD_KINDS: [usize; 4] = [0x5455, 0x7875, 0x5855, 0x000a];
/// Most bytes of the fields of a record.
const FIELD_BYTES_MAX: usize = 64;

/// A file as it lies in an archive.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: String,
    /// Stored as it is, or deflated.
    pub(super) packed: &'a [u8],
    pub(super) is_deflated: bool,
    /// Bytes of the content, as the archive says.
    pub(super) size: u64,
    /// Check sum of the content.
    pub(super) crc: u32,
    /// Where it begins and ends, with what is in front of its content and behind it.
    begins: usize,
    ends: usize,
}

/// Returns the files of an archive in the order of its directory. Refuses an archive with bytes that belong to no file, with
/// files that share bytes, with more files than a package has, and one of which readers could understand different things.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, PackageError> {
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
    let entries = listed(&bytes[..directory_at], &bytes[directory_at..end_at], count)?;
    check_extents(&entries, directory_at)?;
    Ok(entries)
}

/// Refuses files that leave a gap or share bytes.
fn check_extents(entries: &[Entry<'_>], directory_at: usize) -> Result<(), PackageError> {
    let mut extents: Vec<(usize, usize)> = entries.iter().map(|entry| (entry.begins, entry.ends)).collect();
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

/// The files that the directory names.
fn listed<'a>(files: &'a [u8], directory: &[u8], count: usize) -> Result<Vec<Entry<'a>>, PackageError> {
    let mut entries = Vec::with_capacity(count);
    let mut rest = directory;
    for _ in 0..count {
        if rest.len() < RECORD_BYTES || !rest.starts_with(RECORD_BEGINS) {
            return Err(refuse("its directory has fewer files than its end says"));
        }
        let record_bytes = RECORD_BYTES + short(rest, 28) + short(rest, 30) + short(rest, 32);
        let (record, behind) =
            rest.split_at_checked(record_bytes).ok_or_else(|| refuse("its directory is cut off"))?;
        let name = &record[RECORD_BYTES..RECORD_BYTES + short(record, 28)];
        let shown = name_of(name)?;
        check_record(record, &shown)?;
        entries.push(located(files, record, name, shown)?);
        rest = behind;
    }
    if rest.is_empty() {
        Ok(entries)
    } else {
        Err(refuse("its directory has more than the files that its end says"))
    }
}

/// The name of a file of a package.
fn name_of(name: &[u8]) -> Result<String, PackageError> {
    // A name with bytes that are no UTF-8 shows a replacement character here and is refused.
    let name = String::from_utf8_lossy(name).into_owned();
    match name.strip_suffix('/') {
        Some(folder) => {
            names::check_name(folder)?;
            Err(refuse(format!("'{folder}' is a folder; only files are in it, with their whole names")))
        }
        None => names::check_name(&name).map(|()| name),
    }
}

/// Refuses what is no plain file, whichever system the record says it is from.
fn check_record(record: &[u8], name: &str) -> Result<(), PackageError> {
    let (flags, method, mode) = (short(record, 8), short(record, 10), short(record, 40));
    if !matches!(mode & KIND_BITS, 0 | FILE_KIND) || short(record, 38) & DOS_FOLDER != 0 {
        return Err(PackageError::NotRegular(name.to_owned()));
    }
    let fields = &record[RECORD_BYTES + short(record, 28)..];
    let problem = if mode & LENDS_RIGHTS != 0 {
        "would run with the rights of its owner or its group"
    } else if flags & ENCRYPTED != 0 {
        "is encrypted"
    } else if flags & !(HAS_DESCRIPTOR | HARMLESS) != 0 {
        "has flags that no package needs"
    } else if !matches!(method, STORED | DEFLATED) {
        "is neither stored nor deflated"
    } else if short(record, 34) != 0 {
        "is a part of several"
    } else if short(record, 32) != 0 {
        "has a comment"
    } else if !are_plain(fields) {
        "has a field that no package needs"
    } else {
        return Ok(());
    };
    Err(refuse(format!("'{name}' {problem}")))
}

/// Whether fields only tell times and owners.
fn are_plain(fields: &[u8]) -> bool {
    let mut rest = fields;
    while !rest.is_empty() {
        let Some((head, content)) = rest.split_at_checked(4) else { return false };
        let Some(behind) = content.get(short(head, 2)..) else { return false };
        if !FIELD_KINDS.contains(&short(head, 0)) {
            return false;
        }
        rest = behind;
    }
    fields.len() <= FIELD_BYTES_MAX
}

/// The file of a record. What is in front of it and behind it says the same as the record.
fn located<'a>(
    files: &'a [u8],
    record: &[u8],
    name: &[u8],
    shown: String,
) -> Result<Entry<'a>, PackageError> {
    let outside = || refuse("a file is not where its directory says");
    let begins = long(record, 42);
    let file = files.get(begins..).filter(|file| file.starts_with(HEADER_BEGINS));
    let (header, rest) = file.and_then(|file| file.split_at_checked(HEADER_BYTES)).ok_or_else(outside)?;
    let (found, rest) = rest.split_at_checked(short(header, 26)).ok_or_else(outside)?;
    let (fields, rest) = rest.split_at_checked(short(header, 28)).ok_or_else(outside)?;
    let (packed, behind) = rest.split_at_checked(long(record, 20)).ok_or_else(outside)?;
    // The check sum, the packed size and the size.
    let (told, in_front) = (&record[16..28], &header[14..26]);
    let has_descriptor = short(record, 8) & HAS_DESCRIPTOR != 0;
    let fits = told == in_front || (has_descriptor && in_front == [0; 12]);
    // Before them: the flags, the method and the time.
    if found != name || header[6..14] != record[8..16] || !fits {
        return Err(refuse(format!("what is in front of '{shown}' says other things than the directory")));
    }
    if !are_plain(fields) {
        return Err(refuse(format!("'{shown}' has a field that no package needs")));
    }
    let descriptor_bytes = if has_descriptor { descriptor_bytes(behind, told)? } else { 0 };
    Ok(Entry {
        name: shown,
        packed,
        is_deflated: short(record, 10) == DEFLATED,
        size: u64::try_from(long(record, 24)).unwrap_or(u64::MAX),
        crc: u32::try_from(long(record, 16)).unwrap_or(u32::MAX),
        begins,
        ends: files.len() - behind.len() + descriptor_bytes,
    })
}

/// Bytes of what is behind a file: the check sum and the two sizes, with or without a beginning of their own.
fn descriptor_bytes(behind: &[u8], told: &[u8]) -> Result<usize, PackageError> {
    if behind.starts_with(told) {
        Ok(told.len())
    } else if behind.strip_prefix(DESCRIPTOR_BEGINS).is_some_and(|behind| behind.starts_with(told)) {
        Ok(DESCRIPTOR_BEGINS.len() + told.len())
    } else {
        Err(refuse("a file has other sizes than its directory says"))
    }
}

pub(super) fn refuse(problem: impl Into<String>) -> PackageError {
    PackageError::Archive(problem.into())
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
