//! A server's file of trusted keys: the key of a plugin is added to it, and nothing else of it changes.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_marketplace::{TrustedKey, parse_trusted_keys, write_trusted_keys};

use crate::tool::read_bounded;

/// Most bytes of a list of trusted keys.
const BYTES_MAX: u64 = 1 << 20;

/// Adds a key that signs the plugin `id` to a server's list of trusted keys, which it reads at each package.
///
/// A link is followed. Mode and owner stay, as far as this user may set them. Commands that do so at the same time wait
/// for each other.
pub(crate) fn trust(path: &Path, own: TrustedKey, id: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = target(path)?;
    let _lock = lock(&path)?;
    let mut trusted =
        if path.exists() { parse_trusted_keys(&read_bounded(&path, BYTES_MAX)?)? } else { Vec::new() };
    let publisher = own.publisher.clone();
    match trusted.iter_mut().find(|known| known.key == own.key) {
        Some(known) if known.publisher == publisher && known.may_sign(id) => return Ok(()),
        // The manifest got another id or publisher since.
        Some(known) => *known = own,
        None => trusted.push(own),
    }
    replace(&path, write_trusted_keys(&trusted).as_bytes())
        .with_context(|| format!("'{}' cannot be written", path.display()))?;
    writeln!(out, "'{}' trusts the key '{publisher}' for '{id}' from now on", path.display())?;
    Ok(())
}

/// The file itself where `path` is a link. It need not exist.
fn target(path: &Path) -> anyhow::Result<PathBuf> {
    if path.exists() {
        return path.canonicalize().with_context(|| format!("'{}' cannot be read", path.display()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A link whose file does not exist yet.
    let named = path.read_link().map_or_else(|_| path.to_owned(), |linked| folder.join(linked));
    named.file_name().with_context(|| format!("'{}' names no file", path.display()))?;
    Ok(named)
}

/// Keeps other commands out while the result lives.
///
/// The lock is on a file of its own, since the list is replaced as a whole. That file stays: a command that waits for it
/// would otherwise hold a lock that no other command sees.
fn lock(path: &Path) -> anyhow::Result<File> {
    let beside = sibling(path, "lock");
    let context = || format!("'{}' cannot be locked", beside.display());
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(&beside).with_context(context)?;
    file.lock().with_context(context)?;
    Ok(file)
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}

/// Writes a file that others see as the old or the new one, never a part of it.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let staging = sibling(path, "part");
    let written = (|| {
        let mut file = File::create(&staging)?;
        if let Ok(before) = path.metadata() {
            keep_access(&file, &before)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&staging, path)
    })();
    if written.is_err() {
        // What failed is told; a part that stays is overwritten by the next attempt.
        std::fs::remove_file(&staging).ok();
    }
    written
}

/// Gives a new file the mode and the owner of the one that it replaces.
fn keep_access(file: &File, before: &Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        // Only the superuser gives files away; the group is kept by its members, too.
        if fchown(file, Some(before.uid()), Some(before.gid())).is_err() {
            fchown(file, None, Some(before.gid())).ok();
        }
    }
    // Last: a change of the owner can take bits of the mode away.
    file.set_permissions(before.permissions())
}

#[cfg(test)]
mod tests {
    use heddle_marketplace::PublisherKey;

    use super::*;

    fn publishers(path: &Path) -> Vec<String> {
        let trusted = parse_trusted_keys(&std::fs::read(path).unwrap()).unwrap();
        trusted.into_iter().map(|key| key.publisher).collect()
    }

    fn add(path: &Path, key: &PublisherKey, id: &str) {
        trust(path, key.trusted_for(vec![id.to_owned()]), id, &mut Vec::new()).unwrap();
    }

    #[test]
    fn a_key_is_added_once_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted-keys.json");
        let (first, second) =
            (PublisherKey::generate("acme").unwrap(), PublisherKey::generate("greeter").unwrap());
        for (key, id) in [(&first, "acme"), (&second, "greeter"), (&first, "acme")] {
            add(&path, key, id);
        }
        assert_eq!(publishers(&path), ["acme", "greeter"]);
        let trusted = parse_trusted_keys(&std::fs::read(&path).unwrap()).unwrap();
        assert!(trusted[1].may_sign("greeter") && !trusted[1].may_sign("greeter-two"));
        // The same key for a plugin that was renamed.
        add(&path, &first, "acme-two");
        assert_eq!(publishers(&path), ["acme", "greeter"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_and_the_mode_of_the_file_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
        std::os::unix::fs::symlink("real.json", &link).unwrap();
        for (name, mode) in [("acme", 0o640), ("greeter", 0o604)] {
            if real.exists() {
                std::fs::set_permissions(&real, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            add(&link, &PublisherKey::generate(name).unwrap(), name);
        }
        assert!(link.is_symlink());
        assert_eq!(publishers(&real), ["acme", "greeter"]);
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o604);
        assert!(!sibling(&real, "part").exists());
    }

    #[test]
    fn commands_at_the_same_time_lose_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted-keys.json");
        let names: Vec<String> = (0..8).map(|n| format!("plugin-{n}")).collect();
        std::thread::scope(|threads| {
            for name in &names {
                threads.spawn(|| add(&path, &PublisherKey::generate(name).unwrap(), name));
            }
        });
        let mut found = publishers(&path);
        found.sort();
        assert_eq!(found, names);
    }
}
