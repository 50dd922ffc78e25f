//! Writes archives byte by byte, so that each field can lie.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

pub(crate) const FILE: u32 = 0o100_644;

/// One file of an archive, and what is told of it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    /// The name in front of the content, where it differs.
    pub(crate) local_name: Option<Vec<u8>>,
    /// As it is in the archive.
    pub(crate) content: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) crc: u32,
    /// Bytes once it is unpacked, as the archive tells them.
    pub(crate) size: u32,
    /// Mode of a file on Unix.
    pub(crate) mode: u32,
    /// What begins the sizes behind the content, where they are told there.
    pub(crate) descriptor: Option<Vec<u8>>,
    /// Extra field of its record in the directory.
    pub(crate) extra: Vec<u8>,
    /// Extra field in front of the content.
    pub(crate) local_extra: Vec<u8>,
    /// Comment of its record in the directory.
    pub(crate) comment: Vec<u8>,
}

pub(crate) fn stored(name: &str, content: &[u8]) -> Entry {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    Entry {
        name: name.as_bytes().to_vec(),
        local_name: None,
        content: content.to_vec(),
        method: 0,
        flags: 0,
        crc: crc.sum(),
        size: small(content.len()),
        mode: FILE,
        descriptor: None,
        extra: Vec::new(),
        local_extra: Vec::new(),
        comment: Vec::new(),
    }
}

pub(crate) fn deflated(name: &str, content: &[u8]) -> Entry {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    Entry { content: encoder.finish().unwrap(), method: 8, ..stored(name, content) }
}

/// Where the files, the directory and the end of an archive begin, and how many files it has.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) files: Vec<u8>,
    pub(crate) directory: Vec<u8>,
    pub(crate) count: usize,
}

impl Parts {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let (mut files, mut directory) = (Vec::new(), Vec::new());
        for entry in entries {
            directory.extend(record(entry, files.len()));
            files.extend(file(entry));
        }
        Self { files, directory, count: entries.len() }
    }

    pub(crate) fn whole(&self) -> Vec<u8> {
        let end = end(self.count, self.directory.len(), self.files.len());
        [&self.files[..], &self.directory, &end].concat()
    }
}

pub(crate) fn archive(entries: &[Entry]) -> Vec<u8> {
    Parts::of(entries).whole()
}

/// The record at the end of an archive without a comment.
pub(crate) fn end(count: usize, directory_bytes: usize, directory_at: usize) -> Vec<u8> {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    let mut bytes = b"PK\x05\x06\0\0\0\0".to_vec();
    shorts(&mut bytes, &[count, count]);
    longs(&mut bytes, &[small(directory_bytes), small(directory_at)]);
    shorts(&mut bytes, &[0]);
    bytes
}

fn file(entry: &Entry) -> Vec<u8> {
    let name = entry.local_name.as_ref().unwrap_or(&entry.name);
    let sizes = [entry.crc, small(entry.content.len()), entry.size];
    let mut bytes = b"PK\x03\x04".to_vec();
    shorts(&mut bytes, &[20, entry.flags, entry.method, 0, 0x5821]);
    longs(&mut bytes, if entry.descriptor.is_some() { &[0, 0, 0] } else { &sizes });
    shorts(&mut bytes, &[tiny(name), tiny(&entry.local_extra)]);
    bytes.extend(name);
    bytes.extend(&entry.local_extra);
    bytes.extend(&entry.content);
    if let Some(begins) = &entry.descriptor {
        bytes.extend(begins);
        longs(&mut bytes, &sizes);
    }
    bytes
}

/// The record of a file that begins there.
pub(crate) fn record(entry: &Entry, at: usize) -> Vec<u8> {
    let mut bytes = b"PK\x01\x02".to_vec();
    // Made on Unix, so that the mode counts.
    shorts(&mut bytes, &[0x0314, 20, entry.flags, entry.method, 0, 0x5821]);
    longs(&mut bytes, &[entry.crc, small(entry.content.len()), entry.size]);
    shorts(&mut bytes, &[tiny(&entry.name), tiny(&entry.extra), tiny(&entry.comment), 0, 0]);
    longs(&mut bytes, &[entry.mode << 16, small(at)]);
    [&bytes[..], &entry.name, &entry.extra, &entry.comment].concat()
}

fn shorts(bytes: &mut Vec<u8>, numbers: &[u16]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn longs(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

fn tiny(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap()
}
