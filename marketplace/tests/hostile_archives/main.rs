//! Archives that no package is: each is refused for its own reason, within its share of memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends with the place where")]

mod corpus;
mod memory;
mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};

use heddle_marketplace::{PackageError, read_archive};

use memory::peak_bytes;
use writer::{Entry, archive, deflated, stored};

const MIB: usize = 1 << 20;
/// What reading any archive may take, the archive itself included.
const PEAK_BYTES_MAX: usize = 128 * MIB;

/// Other tests would count as memory of the measured one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads an archive; what it took of memory is judged.
#[track_caller]
fn read(name: &str, bytes: &[u8]) -> Result<usize, PackageError> {
    let (files, peak) = peak_bytes(|| read_archive(bytes).map(|files| files.len()));
    let peak = peak + bytes.len();
    assert!(peak <= PEAK_BYTES_MAX, "'{name}' took {} MiB", peak / MIB);
    files
}

#[test]
fn every_hostile_archive_is_refused_for_its_reason() {
    let _alone = alone();
    let (mut seen, mut strange) = (0, Vec::new());
    for (name, bytes, expected) in corpus::all() {
        let shown = match read(name, &bytes) {
            Err(error) => format!("{error:?}: {error}"),
            Ok(files) => format!("accepted with {files} files"),
        };
        if !shown.contains(expected) || shown.len() > 1_000 {
            strange.push(format!("'{name}': expected {expected}, got {shown}"));
        }
        seen += 1;
    }
    assert!(strange.is_empty(), "{strange:#?}");
    assert!(seen > 60, "the archives were made: {seen}");
}

#[test]
fn what_the_writer_makes_is_an_archive() {
    let _alone = alone();
    let mut told_behind = deflated("b.txt", b"told behind");
    told_behind.flags = 1 << 3;
    for descriptor in [&b""[..], b"PK\x07\x08"] {
        told_behind.descriptor = Some(descriptor.to_vec());
        let files = [deflated("a.txt", b"hello"), told_behind.clone(), stored("c/d.txt", b"stored")];
        assert_eq!(read("plain", &archive(&files)).unwrap(), 3);
    }
}

#[test]
fn times_and_owners_of_files_are_passed_over() {
    let _alone = alone();
    let mut file = stored("a.txt", b"hello");
    file.extra = b"UT\x05\0\x01\0\0\0\0ux\x0b\0\x01\x04\xe8\x03\0\0\x04\xe8\x03\0\0".to_vec();
    file.local_extra = b"UT\x09\0\x03\0\0\0\0\0\0\0\0".to_vec();
    assert_eq!(read("with times", &archive(&[file])).unwrap(), 1);
}

#[test]
fn the_largest_package_is_read_within_its_memory() {
    let _alone = alone();
    let zeros = vec![0; 31 * MIB];
    let noise: Vec<u8> = (0_u32..350_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let files =
        [deflated("component.wasm", &zeros), deflated("more.bin", &zeros), stored("noise.bin", &noise)];
    assert_eq!(read("largest", &archive(&files)).unwrap(), 3);

    // As large as an archive and its files can be together.
    let noise = vec![0x5a; 31 * MIB];
    let files = [stored("noise.bin", &noise), deflated("component.wasm", &zeros)];
    assert_eq!(read("heaviest", &archive(&files)).unwrap(), 2);
}

#[test]
fn an_archive_that_was_cut_off_anywhere_is_refused() {
    let _alone = alone();
    let whole = archive(&[deflated("a.txt", b"hello"), stored("b.txt", b"world")]);
    read("whole", &whole).unwrap();
    for at in 0..whole.len() {
        read("cut off", &whole[..at]).unwrap_err();
        read("cut off in front", &whole[at + 1..]).unwrap_err();
    }
}

#[test]
fn every_changed_bit_is_refused_or_changes_no_file() {
    let _alone = alone();
    let files: [Entry; 2] = [deflated("a.txt", b"hello"), stored("b.txt", b"world")];
    let whole = archive(&files);
    let good = read_archive(&whole).unwrap();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            if let Ok(read) = read_archive(&changed) {
                let contents: Vec<&Vec<u8>> = read.values().collect();
                assert_eq!(contents, good.values().collect::<Vec<_>>(), "bit {bit} of byte {at}");
            }
        }
    }
}
