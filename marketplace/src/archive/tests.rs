//! Archives that come back as they were, and those that no package is.

use super::*;
use crate::verify::FILES_MAX;

type Entry<'a> = (&'a str, &'a [u8]);

fn plain() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).unix_permissions(0o644)
}

/// An archive of these entries, whatever their names.
fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(*name, plain()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// The same bytes with each of these texts in the place of the other, which is as long.
fn renamed(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> =
        (0..=bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "the archive has the name");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let error = read_archive(bytes).expect_err(expected);
    let shown = format!("{error:?}: {error}");
    assert!(shown.contains(expected), "expected {expected}, got {shown}");
}

#[test]
fn files_come_back_as_they_were() {
    let files = BTreeMap::from([
        ("manifest.json".to_owned(), b"{}".to_vec()),
        ("component.wasm".to_owned(), (0..=255).cycle().take(100_000).collect()),
        ("assets/icon.svg".to_owned(), Vec::new()),
    ]);
    let archive = write_archive(&files).unwrap();
    assert_eq!(read_archive(&archive).unwrap(), files);
    assert_eq!(write_archive(&files).unwrap(), archive, "the same files make the same archive");
}

#[test]
fn what_is_no_archive_is_refused() {
    let whole = archive(&[("manifest.json", b"{}")]);
    for bytes in
        [&b""[..], b"PK", b"not an archive at all, but long enough to be one", &whole[..whole.len() - 5]]
    {
        refused(bytes, "Archive(");
    }
    refused(&vec![0; ARCHIVE_BYTES_MAX + 1], "ArchiveTooLarge");
}

#[test]
fn bytes_in_front_of_an_archive_and_behind_it_are_refused() {
    let whole = archive(&[("manifest.json", b"{}")]);
    for front in [&b"#!/bin/sh\n"[..], b"\0", &whole[..]] {
        refused(&[front, &whole[..]].concat(), "Archive(");
    }
    for behind in [&b"\0"[..], b"more", &[0; 22]] {
        refused(&[&whole[..], behind].concat(), "Archive(");
    }
    // Its directory knows of what is in front, and of what is behind.
    let mut shifted = Cursor::new(b"in front".to_vec());
    shifted.set_position(8);
    let mut shifted = ZipWriter::new(shifted);
    shifted.start_file("manifest.json", plain()).unwrap();
    refused(&shifted.finish().unwrap().into_inner(), "in front of its first file");
    let mut commented = ZipWriter::new(Cursor::new(Vec::new()));
    commented.start_file("manifest.json", plain()).unwrap();
    commented.set_comment("more").unwrap();
    refused(&commented.finish().unwrap().into_inner(), "behind its end");
}

#[test]
fn a_name_that_leaves_the_package_is_refused() {
    for name in
        ["../manifest.json", "/manifest.json", "a/../../b", "a\\b", "C:b", "./b", "a//b", "a\0b", "aux"]
    {
        refused(&archive(&[(name, b"{}")]), "FileName");
    }
    refused(&archive(&[("a.json", b"1"), ("A.JSON", b"2")]), "DuplicateFile");
    refused(&archive(&[("a", b"1"), ("a/b", b"2")]), "FileIsFolder");
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let twice = renamed(archive(&[("one.json", b"1"), ("two.json", b"2")]), b"two.json", b"one.json");
    refused(&twice, "DuplicateFile");
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let mut links = ZipWriter::new(Cursor::new(Vec::new()));
    links.add_symlink("manifest.json", "/etc/passwd", plain()).unwrap();
    refused(&links.finish().unwrap().into_inner(), "NotRegular");
    let mut folders = ZipWriter::new(Cursor::new(Vec::new()));
    folders.add_directory("assets", plain()).unwrap();
    refused(&folders.finish().unwrap().into_inner(), "is a folder");
}

#[test]
fn an_entry_with_two_names_is_refused() {
    // The name before the content is another one than that of the directory at the end.
    let mut two = archive(&[("one.json", b"1")]);
    let at = two.windows(8).position(|window| window == b"one.json").unwrap();
    two[at..at + 8].copy_from_slice(b"two.json");
    refused(&two, "Archive(");
}

#[test]
fn a_changed_content_is_refused() {
    let mut files = ZipWriter::new(Cursor::new(Vec::new()));
    files.start_file("a.json", plain().compression_method(CompressionMethod::Stored)).unwrap();
    files.write_all(b"content").unwrap();
    let changed = renamed(files.finish().unwrap().into_inner(), b"content", b"Content");
    refused(&changed, "cannot be read");
}

#[test]
fn more_entries_than_a_package_has_are_refused() {
    let names: Vec<String> = (0..=FILES_MAX).map(|n| format!("{n}.json")).collect();
    let entries: Vec<Entry<'_>> = names.iter().map(|name| (name.as_str(), &b"1"[..])).collect();
    assert_eq!(read_archive(&archive(&entries[..FILES_MAX])).unwrap().len(), FILES_MAX);
    refused(&archive(&entries), "TooManyFiles");
}

#[test]
fn files_much_larger_than_their_archive_are_refused() {
    let zeros = vec![0; 16 << 20];
    refused(&archive(&[("component.wasm", &zeros)]), "ArchiveRatio");
    refused(&archive(&[("manifest.json", &zeros)]), "TooLarge");
    // A size that the archive does not tell as it is.
    let size = u32::try_from(zeros.len()).unwrap().to_le_bytes();
    let told = renamed(archive(&[("component.wasm", &zeros)]), &size, &[1, 0, 0, 0]);
    assert!(read_archive(&told).is_err());
}

#[test]
fn a_file_larger_than_its_kind_may_be_is_refused() {
    let noise: Vec<u8> = (0_u32..100_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    refused(&archive(&[("manifest.json", &noise)]), "TooLarge");
    assert!(read_archive(&archive(&[("component.wasm", &noise)])).is_ok());
}
