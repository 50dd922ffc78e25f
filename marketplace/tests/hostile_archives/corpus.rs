//! The archives, each with the words of its refusal.

use super::MIB;
use super::writer::{Entry, FILE, Parts, archive, deflated, end, record, stored};

/// A name, the archive and what its refusal says.
pub(crate) type Hostile = (&'static str, Vec<u8>, &'static str);

pub(crate) fn all() -> Vec<Hostile> {
    [sizes(), names(), kinds(), records(), contents(), fields(), framing(), floods()].concat()
}

/// Files that are larger than they seem, or too many.
fn sizes() -> Vec<Hostile> {
    let bomb = archive(&[deflated("zeros", &vec![0; 256 * MIB])]);
    let nested: Vec<Entry> = (0..10).map(|n| deflated(&format!("{n}.zip"), &bomb)).collect();
    let many: Vec<Entry> = (0..70_000).map(|n| stored(&format!("d{}/f{n}", n % 100), b"")).collect();
    let few: Vec<Entry> = (0..=256).map(|n| stored(&format!("{n}"), b"")).collect();
    let mut small = deflated("a", &vec![0; 10 * MIB]);
    small.size = 10;
    let mut large = stored("a", b"hello");
    large.size = 4_000;
    let larger = Entry { size: 40_000, ..large.clone() };
    let huge = Entry { size: u32::MAX - 1, ..stored("a", b"hello") };
    let dense = deflated("a", &vec![0; 30 * MIB]);
    let manifest = deflated("manifest.json", &vec![b' '; MIB]);
    let heavy: Vec<Entry> = (0..3).map(|n| stored(&format!("{n}"), &vec![n; 10 * MIB])).collect();
    let parts: Vec<Entry> = (0..3).map(|n| deflated(&format!("z{n}"), &vec![0; 12 * MIB])).collect();
    vec![
        ("a bomb", bomb, "TooLarge { name: \"zeros\""),
        ("bombs in an archive", archive(&nested), "ArchiveRatio"),
        ("70,000 files", archive(&many), "TooManyFiles"),
        ("257 files", archive(&few), "TooManyFiles"),
        ("a size that is too small", archive(&[small]), "'a' is cut off, or larger"),
        ("a size that is too large", archive(&[large]), "'a' has another size than the archive says"),
        ("a size that is far too large", archive(&[larger]), "ArchiveRatio"),
        ("a size beyond every bound", archive(&[huge]), "TooLarge"),
        ("a dense file", archive(&[dense]), "ArchiveRatio"),
        ("a large manifest", archive(&[manifest]), "TooLarge { name: \"manifest.json\""),
        ("more files than a package holds", archive(&[heavy, parts].concat()), "PackageTooLarge"),
        ("an archive beyond its bound", vec![0; 32 * MIB + 1], "ArchiveTooLarge"),
    ]
}

/// Names that leave the package, or mean two things.
fn names() -> Vec<Hostile> {
    let long = "a".repeat(300);
    let named = [
        ("a name above the folder", "../evil"),
        ("a name that goes up within", "a/../../evil"),
        ("an absolute name", "/abs/evil"),
        ("a name of Windows that goes up", "..\\evil"),
        ("a name with a drive", "C:\\evil"),
        ("a name of a share", "\\\\host\\share\\evil"),
        ("a name with a dot", "a/./b"),
        ("a name with two slashes", "a//b"),
        ("a name of a device", "CON.txt"),
        ("a name of a port", "assets/lpt1"),
        ("a name that ends with a space", "trailing. "),
        ("a name that ends with a dot", "trailing."),
        ("a long name", &long),
        ("a deep name", "a/b/c/d/e/f/g"),
        ("an empty name", ""),
        ("a name with a zero byte", "good\0.txt"),
        ("a name with a new line", "good\n.txt"),
        ("a composed name", "\u{fc}.txt"),
        ("a decomposed name", "u\u{308}.txt"),
        ("a name that turns around", "\u{202e}txt.exe"),
        ("a name with a stream", "a.txt:stream"),
    ];
    let mut all: Vec<Hostile> = named
        .into_iter()
        .map(|(what, name)| (what, archive(&[utf8(stored(name, b"x"))]), "FileName"))
        .collect();
    let no_utf8 = Entry { name: b"\xff\xfe.txt".to_vec(), ..stored("", b"x") };
    let mut second = stored("good.txt", b"x");
    // A field that readers who know it take for the name.
    let mut crc = flate2::Crc::new();
    crc.update(b"good.txt");
    second.extra = [&b"up\x0d\0\x01"[..], &crc.sum().to_le_bytes(), b"evil.txt"].concat();
    let mut local = stored("good.txt", b"x");
    local.local_name = Some(b"evil.txt".to_vec());
    let mut longer = stored("good.txt", b"x");
    longer.local_name = Some(b"good.txt.exe".to_vec());
    all.extend([
        ("a name that is no UTF-8", archive(&[no_utf8]), "FileName"),
        ("a second name in a field", archive(&[second]), "Archive("),
        ("another name in front of the content", archive(&[local]), "says other things"),
        ("a longer name in front of the content", archive(&[longer]), "says other things"),
        ("one name twice", archive(&[stored("m.json", b"1"), stored("m.json", b"2")]), "DuplicateFile"),
        (
            "one name in two cases",
            archive(&[stored("m.json", b"1"), stored("M.JSON", b"2")]),
            "DuplicateFile",
        ),
        (
            "a file and a folder of one name",
            archive(&[stored("a", b"1"), stored("a/b", b"2")]),
            "FileIsFolder",
        ),
    ]);
    all
}

/// The flag that the name is UTF-8.
fn utf8(entry: Entry) -> Entry {
    Entry { flags: entry.flags | 1 << 11, ..entry }
}

/// Entries that are no plain files.
fn kinds() -> Vec<Hostile> {
    let of_mode = |name: &str, mode: u32| archive(&[Entry { mode, ..stored(name, b"/etc/passwd") }]);
    // Made on a Mac, whose links are those of Unix to some readers.
    let mut of_mac = Parts::of(&[Entry { mode: 0o120_777, ..stored("link", b"/etc/passwd") }]);
    of_mac.directory[5] = 19;
    let mut of_dos = Parts::of(&[stored("dir", b"x")]);
    of_dos.directory[38] = 0x10;
    let links = [Entry { mode: 0o120_777, ..stored("dir", b"/tmp") }, stored("dir/file", b"x")];
    vec![
        ("a link", of_mode("link", 0o120_777), "NotRegular"),
        ("a link of another system", of_mac.whole(), "NotRegular"),
        ("a folder of another system", of_dos.whole(), "NotRegular"),
        ("a link as a folder", archive(&links), "NotRegular"),
        ("a device", of_mode("dev", 0o020_666), "NotRegular"),
        ("a disk", of_mode("disk", 0o060_666), "NotRegular"),
        ("a pipe", of_mode("fifo", 0o010_666), "NotRegular"),
        ("a socket", of_mode("socket", 0o140_666), "NotRegular"),
        ("a folder by its mode", of_mode("dir", 0o040_755), "NotRegular"),
        ("a folder by its name", of_mode("dir/", 0o040_755), "is a folder"),
        ("a folder with a content", of_mode("dir/", FILE), "is a folder"),
        ("a file that runs as its owner", of_mode("su", 0o104_755), "with the rights of its owner"),
        ("a file that runs as its group", of_mode("sg", 0o102_755), "with the rights of its owner"),
    ]
}

/// An archive of one plain file that was changed.
fn changed(change: impl FnOnce(&mut Entry)) -> Vec<u8> {
    let mut entry = stored("a.txt", b"hello");
    change(&mut entry);
    archive(&[entry])
}

/// Records that do not fit their files.
fn records() -> Vec<Hostile> {
    // What only the record of the directory says.
    let differing = |at: usize, value: u8| {
        let mut parts = Parts::of(&[stored("a.txt", b"hello")]);
        parts.directory[at] = value;
        parts.whole()
    };
    let mut descriptor = stored("a.txt", b"hello");
    (descriptor.flags, descriptor.descriptor) = (1 << 3, Some(b"PK\x07\x08".to_vec()));
    let mut lying = Parts::of(&[descriptor]);
    let mut lying_in_front = lying.clone();
    lying_in_front.files[18] = 4;
    let last = lying.files.len() - 1;
    lying.files[last] ^= 1;
    vec![
        ("a file that is patched", changed(|entry| entry.flags = 1 << 5), "has flags"),
        ("a file whose names are masked", changed(|entry| entry.flags = 1 << 13), "has flags"),
        ("other flags in the directory", differing(8, 2), "says other things"),
        ("another method in the directory", differing(10, 8), "says other things"),
        ("another time in the directory", differing(12, 1), "says other things"),
        ("another check sum in the directory", differing(16, 0), "says other things"),
        ("another packed size in the directory", differing(20, 4), "says other things"),
        ("a packed size beyond the files", differing(21, 1), "is not where its directory says"),
        ("another size in the directory", differing(24, 4), "says other things"),
        ("a file on another disk", differing(34, 1), "a part of several"),
        ("another place in the directory", differing(42, 1), "is not where its directory says"),
        ("a place beyond the files", differing(45, 0xff), "is not where its directory says"),
        ("a record that is none", differing(0, 0), "fewer files than its end says"),
        ("a name that goes on behind the directory", differing(29, 1), "its directory is cut off"),
        ("other sizes behind the content", lying.whole(), "other sizes than its directory says"),
        ("another size in front of it", lying_in_front.whole(), "says other things"),
    ]
}

/// Contents that are not what their record says.
fn contents() -> Vec<Hostile> {
    let mut cut = deflated("a.txt", &[7; 1_000]);
    cut.content.truncate(cut.content.len() - 3);
    let mut longer = deflated("a.txt", &[7; 1_000]);
    longer.content.push(0);
    // A reader that goes from the front finds a second file behind the deflated one.
    let mut hiding = deflated("a.txt", &[7; 1_000]);
    let sizes = [hiding.crc, u32::try_from(hiding.content.len()).unwrap(), hiding.size];
    hiding.content.extend(b"PK\x07\x08");
    hiding.content.extend(sizes.iter().flat_map(|number| number.to_le_bytes()));
    hiding.content.extend(Parts::of(&[stored("evil.txt", b"evil")]).files);
    (hiding.flags, hiding.descriptor) = (1 << 3, Some(b"PK\x07\x08".to_vec()));
    vec![
        ("a wrong check sum", changed(|entry| entry.crc ^= 1), "'a.txt' cannot be read"),
        ("an encrypted file", changed(|entry| entry.flags = 1), "'a.txt' is encrypted"),
        ("a strongly encrypted file", changed(|entry| entry.flags = 1 | 1 << 6), "'a.txt' is encrypted"),
        ("an unknown method", changed(|entry| entry.method = 99), "is neither stored nor deflated"),
        ("a method of other archives", changed(|entry| entry.method = 12), "is neither stored nor deflated"),
        ("no deflated content", changed(|entry| entry.method = 8), "'a.txt' cannot be read"),
        ("a content that is cut off", archive(&[cut]), "'a.txt' is cut off"),
        ("a byte behind a deflated content", archive(&[longer]), "bytes behind its content"),
        ("a file behind a deflated content", archive(&[hiding]), "bytes behind its content"),
    ]
}

/// Comments and fields that readers could go by.
fn fields() -> Vec<Hostile> {
    let of_large = [&b"\x01\0\x08\0"[..], &5_u64.to_le_bytes()].concat();
    let wide = changed(|entry| (entry.size, entry.extra) = (u32::MAX, of_large));
    let mut all = vec![
        ("a comment of a file", changed(|entry| entry.comment = b"more".to_vec()), "has a comment"),
        ("sizes for large files", wide, "has a field"),
    ];
    let long = [&b"UT\xc8\0"[..], &[0; 200]].concat();
    for field in [b"\xfe\xca\0\0".to_vec(), b"UT\x09\0\x01".to_vec(), b"UT\x05".to_vec(), long] {
        let in_front = changed(|entry| entry.local_extra.clone_from(&field));
        all.push(("a strange field in front of a content", in_front, "has a field"));
        all.push(("a strange field in the directory", changed(|entry| entry.extra = field), "has a field"));
    }
    all
}

/// Archives with more than their files.
fn framing() -> Vec<Hostile> {
    let plain = archive(&[stored("a.txt", b"hello")]);
    let other = archive(&[stored("other.txt", b"x")]);
    let two = [stored("a.txt", b"hello"), stored("b.txt", b"world")];
    let mut shifted = Parts::of(&two);
    // Hidden between two files that the directory names.
    let second = shifted.files.len() / 2;
    shifted.files.splice(second..second, *b"hidden");
    let at = shifted.directory.len() - 5 - 4;
    shifted.directory[at] += 6;
    let mut unlisted = Parts::of(&two);
    unlisted.directory.truncate(unlisted.directory.len() / 2);
    unlisted.count = 1;
    let more = Parts { count: 1, ..Parts::of(&two) };
    let fewer = Parts { count: 3, ..Parts::of(&two) };
    let mut behind = Parts::of(&two);
    behind.directory.extend(b"hidden");
    let commented = [&plain[..plain.len() - 2], b"\x04\0more"].concat();
    let of_end = |at: usize, value: u8| {
        let mut changed = archive(&two);
        let end_at = changed.len() - 22;
        changed[end_at + at] = value;
        changed
    };
    let between = {
        let parts = Parts::of(&two);
        [&parts.files[..], &parts.directory, b"hidden", &end(2, parts.directory.len(), parts.files.len())]
            .concat()
    };
    vec![
        ("an archive that is cut off", plain[..plain.len() - 10].to_vec(), "Archive("),
        ("a program in front", [&b"#!/bin/sh\n".repeat(10), &plain[..]].concat(), "Archive("),
        ("two archives", [&plain[..], &other].concat(), "Archive("),
        ("an archive without files", end(0, 0, 0), "it has no files"),
        ("no archive", [&b"\x7fELF"[..], &(0..100).collect::<Vec<u8>>()].concat(), "Archive("),
        ("nothing", Vec::new(), "it is too short"),
        ("a comment", commented, "it has a comment"),
        ("a byte behind", [&plain[..], b"\0"].concat(), "bytes behind its end"),
        ("bytes between files", shifted.whole(), "there are bytes between its files"),
        ("a file that no record names", unlisted.whole(), "bytes between its files and its directory"),
        ("more records than files", more.whole(), "more than the files that its end says"),
        ("fewer records than files", fewer.whole(), "fewer files than its end says"),
        ("bytes in the directory", behind.whole(), "more than the files that its end says"),
        ("bytes behind the directory", between, "between its directory and its end"),
        ("one disk of several", of_end(4, 1), "a part of several"),
        ("a directory on another disk", of_end(6, 1), "a part of several"),
        ("files on other disks", of_end(8, 1), "a part of several"),
        ("an end for large archives", large(), "between its directory and its end"),
        (
            "an end for large archives in a comment",
            large_in(|entry, end| entry.comment = end),
            "has a comment",
        ),
        ("an end for large archives in a field", large_in(|entry, end| entry.extra = end), "has a field"),
    ]
}

/// The second end that archives of more than 4 GiB have; it names a directory of its own.
fn large_end(parts: &Parts, at: usize) -> Vec<u8> {
    let number = |number: usize| u64::try_from(number).unwrap().to_le_bytes();
    let count = number(parts.count);
    let (bytes, begins) = (number(parts.directory.len()), number(parts.files.len()));
    let record: [&[u8]; 7] = [
        b"PK\x06\x06",
        &44_u64.to_le_bytes(),
        b"\x2d\0\x2d\0\0\0\0\0\0\0\0\0",
        &count,
        &count,
        &bytes,
        &begins,
    ];
    [&record.concat()[..], b"PK\x06\x07\0\0\0\0", &number(at), b"\x01\0\0\0"].concat()
}

fn large() -> Vec<u8> {
    let parts = Parts::of(&[stored("a.txt", b"hello")]);
    let (at, directory_at) = (parts.files.len() + parts.directory.len(), parts.files.len());
    [&parts.files[..], &parts.directory, &large_end(&parts, at), &end(1, parts.directory.len(), directory_at)]
        .concat()
}

/// The same within the record of a file: readers that look for it find a directory of its choice.
fn large_in(put: impl Fn(&mut Entry, Vec<u8>)) -> Vec<u8> {
    let parts = Parts::of(&[stored("a.txt", b"hello")]);
    changed(|entry| put(entry, large_end(&parts, parts.files.len() + parts.directory.len())))
}

/// What makes a reader search, or read one thing many times.
fn floods() -> Vec<Hostile> {
    let zeros = deflated("k", &vec![0; 16 * MIB]);
    let shared = |count: usize, named: &dyn Fn(usize) -> String| {
        let mut parts = Parts::of(std::slice::from_ref(&zeros));
        let of = |n: usize| record(&Entry { name: named(n).into_bytes(), ..zeros.clone() }, 0);
        parts.directory = (0..count).flat_map(of).collect();
        parts.count = count;
        parts.whole()
    };
    // A file whose content is another file, which the directory names, too.
    let inner = Parts::of(&[stored("b.txt", b"world")]);
    let mut nested = Parts::of(&[stored("a.txt", &inner.files)]);
    nested.directory.extend(record(&stored("b.txt", b"world"), nested.files.len() - inner.files.len()));
    nested.count = 2;
    let flood = |piece: &[u8]| {
        let mut bytes = piece.repeat(31 * MIB / piece.len());
        let at = bytes.len();
        bytes.extend(end(1, 0, at));
        bytes
    };
    let with_records = {
        let files = Parts::of(&[stored("a.txt", b"hello")]).files;
        let directory = b"PK\x01\x02".repeat(8 * MIB - 100);
        [&files[..], &directory, &end(1, directory.len(), files.len())].concat()
    };
    vec![
        ("1,000 records of one file", shared(1_000, &|_| "k".to_owned()), "TooManyFiles"),
        ("200 records of one file", shared(200, &|_| "k".to_owned()), "two of its files share bytes"),
        ("200 names of one file", shared(200, &|n| format!("k{n}")), "says other things"),
        ("a file within a file", nested.whole(), "two of its files share bytes"),
        ("beginnings of records", flood(b"PK\x01\x02"), "fewer files than its end says"),
        ("beginnings of ends", flood(b"PK\x05\x06"), "fewer files than its end says"),
        ("beginnings of ends for large archives", flood(b"PK\x06\x06"), "fewer files than its end says"),
        ("a directory of beginnings", with_records, "FileName"),
    ]
}
