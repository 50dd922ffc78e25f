//! The commit of a git checkout, from its files.

use std::fs;
use std::path::{Path, PathBuf};

/// A commit, and the files that say so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) files: Vec<PathBuf>,
}

/// What is checked out in this folder; `None` where it is no checkout.
pub(crate) fn of_checkout(folder: &Path) -> Option<Commit> {
    let own = git_folder(&folder.join(".git"))?;
    // A linked work tree has a HEAD of its own and shares the rest.
    let shared = match fs::read_to_string(own.join("commondir")) {
        Ok(path) => own.join(path.trim()),
        Err(_) => own.clone(),
    };
    let head = own.join("HEAD");
    let text = fs::read_to_string(&head).ok()?;
    let Some(name) = text.trim().strip_prefix("ref: ") else {
        return Some(Commit { id: id(&text)?, files: vec![head] });
    };
    let loose = shared.join(name);
    if let Ok(text) = fs::read_to_string(&loose) {
        return Some(Commit { id: id(&text)?, files: vec![head, loose] });
    }
    let packed = shared.join("packed-refs");
    let text = fs::read_to_string(&packed).ok()?;
    let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(_, known)| known == name))?;
    Some(Commit { id: id(line)?, files: vec![head, packed] })
}

fn git_folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = fs::read_to_string(path).ok()?;
    let named = text.trim().strip_prefix("gitdir: ")?;
    Some(path.parent()?.join(named))
}

fn id(text: &str) -> Option<String> {
    let id = text.split_whitespace().next()?;
    let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id[..12].to_owned())
}
