//! File names that mean the same file on every system, inside the package.

use std::collections::{BTreeSet, HashSet};

use crate::error::PackageError;

/// Longest name in bytes.
const NAME_BYTES_MAX: usize = 120;
/// Most segments of a name.
pub(crate) const NAME_DEPTH_MAX: usize = 6;

/// Refuses what could leave the package, or name another file elsewhere.
pub(crate) fn check_name(name: &str) -> Result<(), PackageError> {
    match fault(name) {
        // Of a name that is too long, the beginning is enough to find it.
        Some(reason) => {
            Err(PackageError::FileName { name: name.chars().take(NAME_BYTES_MAX).collect(), reason })
        }
        None => Ok(()),
    }
}

/// Refuses names that are equal after case folding, or a file and a folder at once.
pub(crate) fn check_distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), PackageError> {
    let mut folded = BTreeSet::new();
    for name in names {
        if !folded.insert(name.to_ascii_lowercase()) {
            return Err(PackageError::DuplicateFile(name.to_owned()));
        }
    }
    let folders: HashSet<&str> = folded.iter().flat_map(|name| folders_of(name)).collect();
    match folded.iter().find(|name| folders.contains(name.as_str())) {
        Some(name) => Err(PackageError::FileIsFolder(name.clone())),
        None => Ok(()),
    }
}

fn folders_of(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').map(|(at, _)| &name[..at])
}

fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Some("a name has 1 to 120 bytes");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte)) {
        return Some("only A-Z, a-z, 0-9, '.', '_', '-' and '/' are accepted");
    }
    if name.split('/').count() > NAME_DEPTH_MAX {
        return Some("folders are nested too deep");
    }
    name.split('/').find_map(segment_fault)
}

fn segment_fault(segment: &str) -> Option<&'static str> {
    if segment.is_empty() {
        return Some("it starts or ends with '/', or has '//'");
    }
    if segment == "." || segment == ".." {
        return Some("'.' and '..' are not accepted");
    }
    if segment.ends_with('.') {
        return Some("a part of it ends with '.'");
    }
    let stem = segment.split('.').next().unwrap_or(segment).to_ascii_lowercase();
    let numbered = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let is_port = numbered.is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()));
    if is_port || ["con", "prn", "aux", "nul"].contains(&stem.as_str()) {
        return Some("it is a device name on some systems");
    }
    None
}
