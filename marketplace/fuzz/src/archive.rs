//! Archives: any bytes, archives whose records may lie about their files, and packages that are signed here.
//!
//! The first byte of an input chooses which of them the rest is.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use heddle_marketplace::{
    DESCRIPTION, MANIFEST, PackageError, SIGNATURE, Verified, read_archive, write_archive,
};
use zip::ZipArchive;

use crate::package::{self, Files};
use crate::writer::{self, Entry};
use crate::{bounded, package::publisher};

/// Most bytes of a reason for a refusal: the tests of hostile archives ask for the same.
const REASON_BYTES_MAX: usize = 1_000;
/// Most files of an archive that is made here.
const ENTRIES_MAX: usize = 48;
/// Names that an input chooses by number.
pub(crate) const NAMES: [&str; 8] =
    [MANIFEST, SIGNATURE, "component.wasm", DESCRIPTION, "assets/icon.svg", "a", "A", "a/b"];
const DESCRIPTOR_BEGINS: &[u8] = b"PK\x07\x08";

/// The input is an archive.
pub(crate) const AS_IT_IS: u8 = b'0';
/// The input says what files there are, and what their records say of them.
pub(crate) const BUILT: u8 = b'1';
/// The input says what files there are. The manifest among them is completed and signed.
pub(crate) const SIGNED: u8 = b'2';

/// Reads the archive of an input, and opens it as a package.
pub fn check(input: &[u8]) {
    let Some((mode, rest)) = input.split_first() else { return };
    match mode % 3 {
        0 => open(rest),
        1 => open(&writer::archive(&entries(rest))),
        _ => signed(rest),
    }
}

fn open(bytes: &[u8]) {
    match bounded(|| read_archive(bytes)) {
        Ok(files) => judge(bytes, &files),
        Err(error) => {
            let reason = format!("{error:?}: {error}");
            assert!(reason.len() <= REASON_BYTES_MAX, "the reason has {} bytes", reason.len());
        }
    }
    if let Ok(package) = bounded(|| Verified::open_archive(bytes, &[publisher().trusted()])) {
        package::judge(&package);
    }
}

/// Asserts that an archive that was read means the same to other readers, and stays within the bounds of a package.
fn judge(bytes: &[u8], files: &Files) {
    let total: usize = files.values().map(Vec::len).sum();
    assert!(total <= bytes.len().saturating_mul(100), "{total} bytes of {}", bytes.len());
    for name in files.keys() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let is_inside = name.split('/').all(|part| !["", ".", ".."].contains(&part));
        assert!(name.bytes().all(is_plain) && is_inside, "'{name}' leaves the package");
    }
    assert_eq!(*files, by_directory(bytes), "a reader that goes by the directory finds other files");
    if let Some(found) = from_front(bytes) {
        assert_eq!(*files, found, "a reader that goes from the front finds other files");
    }
    let again = write_archive(files).expect("files that were read can be written");
    match read_archive(&again) {
        Ok(read) => assert_eq!(*files, read, "what was written is read otherwise"),
        // Packed better than the one that came, it can be too dense.
        Err(error) => assert!(matches!(error, PackageError::ArchiveRatio { .. }), "{error}"),
    }
}

/// The files of an archive as another library reads them.
fn by_directory(bytes: &[u8]) -> Files {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).expect("it is an archive to other readers");
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("its file is one to other readers");
        let mut content = Vec::new();
        let name = file.name().expect("its name is one to other readers").into_owned();
        file.read_to_end(&mut content).expect("its content is one to other readers");
        assert!(files.insert(name, content).is_none(), "a file is there twice");
    }
    files
}

/// The files of an archive as a reader finds them that does not know the directory; none where it cannot go on, because
/// sizes are told behind a content.
fn from_front(bytes: &[u8]) -> Option<Files> {
    let mut reader = bytes;
    let mut files = BTreeMap::new();
    while let Some(mut file) = zip::read::read_zipfile_from_stream(&mut reader).ok()? {
        let mut content = Vec::new();
        let name = file.name().ok()?.into_owned();
        file.read_to_end(&mut content).ok()?;
        assert!(files.insert(name, content).is_none(), "a file is there twice");
    }
    Some(files)
}

fn signed(input: &[u8]) {
    let given: Files = Pieces(input).files().map(|(name, content, _)| (name, content.to_vec())).collect();
    let files = package::signed(package::completed(given));
    let Ok(archive) = write_archive(&files) else { return };
    open(&archive);
    let Ok(package) = Verified::from_files(files, &[publisher().trusted()]) else { return };
    match Verified::open_archive(&archive, &[publisher().trusted()]) {
        Ok(opened) => assert_eq!(opened.manifest_sha256(), package.manifest_sha256()),
        // What is packed too well is no archive.
        Err(error) => assert!(matches!(error, PackageError::ArchiveRatio { .. }), "{error}"),
    }
}

/// The records that an input describes.
fn entries(input: &[u8]) -> Vec<Entry> {
    let mut pieces = Pieces(input);
    let mut entries = Vec::new();
    while let (false, Some((name, content, kind))) = (entries.len() >= ENTRIES_MAX, pieces.file()) {
        let is_deflated = kind & 1 != 0;
        let mut entry =
            if is_deflated { writer::deflated(&name, content) } else { writer::stored(&name, content) };
        if kind & 2 != 0 {
            entry.flags |= 1 << 3;
            entry.descriptor = Some(if kind & 4 != 0 { DESCRIPTOR_BEGINS.to_vec() } else { Vec::new() });
        }
        if kind & 8 != 0 {
            lie(&mut entry, &mut pieces);
        }
        entries.push(entry);
    }
    entries
}

/// Changes what the records say of a file.
fn lie(entry: &mut Entry, pieces: &mut Pieces<'_>) {
    let what = pieces.byte();
    let number = u16::from_le_bytes([pieces.byte(), pieces.byte()]);
    match what % 12 {
        0 => entry.flags = number,
        1 => entry.method = number,
        2 => entry.crc ^= u32::from(number),
        3 => entry.size = number.into(),
        4 => entry.size = u32::from(number) << 16,
        5 => entry.mode = number.into(),
        6 => entry.extra = pieces.bytes(number.into()).to_vec(),
        7 => entry.local_extra = pieces.bytes(number.into()).to_vec(),
        8 => entry.comment = pieces.bytes(number.into()).to_vec(),
        9 => entry.local_name = Some(pieces.bytes(number.into()).to_vec()),
        10 => entry.content.truncate(number.into()),
        _ => entry.content.extend(pieces.bytes(number.into())),
    }
}

/// An input that says what files there are. What is lacking at its end is zero.
struct Pieces<'a>(&'a [u8]);

impl<'a> Pieces<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// As many bytes as there are, up to this number.
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        piece
    }

    /// The next file: its name, its content, and the bits of its kind. A name is one of [`NAMES`] or has its length in front.
    fn file(&mut self) -> Option<(String, &'a [u8], u8)> {
        if self.0.is_empty() {
            return None;
        }
        let choice = self.byte();
        let name = if let Some(name) = NAMES.get(usize::from(choice)) {
            (*name).to_owned()
        } else {
            let length = self.byte();
            String::from_utf8_lossy(self.bytes(length.into())).into_owned()
        };
        let kind = self.byte();
        let length = u16::from_le_bytes([self.byte(), self.byte()]);
        Some((name, self.bytes(length.into()), kind))
    }

    fn files(mut self) -> impl Iterator<Item = (String, &'a [u8], u8)> {
        std::iter::from_fn(move || self.file()).take(ENTRIES_MAX)
    }
}

/// The input of a target that has these files; none where one is too long for it.
pub(crate) fn input(mode: u8, kind: u8, files: &[(&str, &[u8])]) -> Option<Vec<u8>> {
    let mut input = vec![mode];
    for (name, content) in files {
        match NAMES.iter().position(|known| known == name) {
            Some(at) => input.push(u8::try_from(at).ok()?),
            None => input.extend([u8::MAX, u8::try_from(name.len()).ok()?].iter().chain(name.as_bytes())),
        }
        input.push(kind);
        input.extend(u16::try_from(content.len()).ok()?.to_le_bytes());
        input.extend(*content);
    }
    Some(input)
}
