//! Compiled code on disk, believed only with its authentication code.
//!
//! Wrong bytes would run as machine code, and the engine checks versions, not
//! integrity. So every entry carries an HMAC under a key of this server.

use std::hash::{Hash as _, Hasher};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;
use zeroize::Zeroizing;

const MAC_BYTES: usize = 32;
/// A disk must have room for so many copies before one is made.
const COPIES_FREE: u64 = 50;
/// Raised when packages are judged in another way: what an older server judged is judged again.
const JUDGEMENT: &[u8] = b"judged 1";
const TRIAL: &[u8] = b"tried ";

/// What was found for a component.
pub(crate) enum Found {
    Code(Component),
    Nothing,
    /// An entry that this server did not write; it was deleted.
    Forged,
}

pub(crate) struct CodeCache {
    dir: PathBuf,
    key: Zeroizing<[u8; 32]>,
    /// Changes with everything that compiled code depends on.
    tag: String,
    /// Changes with the program that runs.
    program: Vec<u8>,
}

impl CodeCache {
    pub(crate) fn open(dir: &Path, key: [u8; 32], engine: &Engine) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        remove_left_over(dir)?;
        Ok(Self { dir: dir.to_owned(), key: Zeroizing::new(key), tag: tag(engine), program: program() })
    }

    /// Whether this server judged the package whose manifest has this SHA-256 (hex), which covers every file of it.
    pub(crate) fn was_judged(&self, manifest_sha256: &str) -> bool {
        self.has_mark("judged", manifest_sha256, &[JUDGEMENT])
    }

    /// Remembers that a package was judged and accepted.
    pub(crate) fn keep_judged(&self, manifest_sha256: &str) -> io::Result<()> {
        self.keep_mark("judged", manifest_sha256, &[JUDGEMENT])
    }

    /// Whether this very program has tried the package, and it could be called.
    pub(crate) fn was_tried(&self, manifest_sha256: &str) -> bool {
        self.has_mark("tried", manifest_sha256, &[TRIAL, &self.program])
    }

    /// Remembers that a package was tried and could be called.
    pub(crate) fn keep_tried(&self, manifest_sha256: &str) -> io::Result<()> {
        self.keep_mark("tried", manifest_sha256, &[TRIAL, &self.program])
    }

    fn has_mark(&self, name: &str, manifest_sha256: &str, of: &[&[u8]]) -> bool {
        let mark = std::fs::read(self.dir.join(manifest_sha256).join(name));
        mark.is_ok_and(|mark| self.mac(manifest_sha256, &of.concat()).verify_slice(&mark).is_ok())
    }

    fn keep_mark(&self, name: &str, manifest_sha256: &str, of: &[&[u8]]) -> io::Result<()> {
        let mac = self.mac(manifest_sha256, &of.concat()).finalize().into_bytes();
        replace(&self.dir.join(manifest_sha256).join(name), &[mac.as_slice()])
    }

    /// The compiled component with this SHA-256 (hex).
    pub(crate) fn find(&self, engine: &Engine, sha256: &str) -> io::Result<Found> {
        let path = self.path(sha256);
        let entry = match std::fs::read(&path) {
            Ok(entry) => entry,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        let genuine = entry
            .split_at_checked(MAC_BYTES)
            .filter(|(mac, code)| self.mac(sha256, code).verify_slice(mac).is_ok());
        let Some((_, code)) = genuine else {
            tracing::warn!(
                component.sha256 = sha256,
                "compiled code was not written by this server; it is deleted and compiled again"
            );
            return match std::fs::remove_file(&path) {
                // Another process that finds the same entry at the same time may be first.
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(Found::Forged),
            };
        };
        match self.load(engine, code) {
            Ok(component) => Ok(Found::Code(component)),
            Err(error) => {
                tracing::warn!(component.sha256 = sha256, reason = %error, "compiled code does not fit this engine; it is compiled again");
                Ok(Found::Nothing)
            }
        }
    }

    /// Keeps code that this server just compiled, and loads it.
    pub(crate) fn keep(&self, engine: &Engine, sha256: &str, code: &[u8]) -> Result<Component, KeepError> {
        let component = self.load(engine, code).map_err(|error| KeepError::Code(error.to_string()))?;
        self.write(sha256, code).map_err(KeepError::Disk)?;
        Ok(component)
    }

    /// Loads code from a file of its own, where there is room for one. The system reads only what is used of it, and can free the
    /// memory of idle components. The file has no name: nobody can open and change it after the code was checked.
    fn load(&self, engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
        match self.unnamed(code) {
            Ok(file) => match map(engine, &file) {
                Ok(component) => return Ok(component),
                // Such as a disk from which nothing may be executed.
                Err(error) => tracing::debug!(reason = %error, "compiled code cannot be mapped from a file"),
            },
            Err(error) => tracing::debug!(reason = %error, "compiled code cannot be copied into a file"),
        }
        deserialize(engine, code)
    }

    fn unnamed(&self, code: &[u8]) -> io::Result<std::fs::File> {
        let disk = rustix::fs::statvfs(&self.dir)?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) / COPIES_FREE < code.len() as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut file = tempfile::tempfile_in(&self.dir)?;
        file.write_all(code)?;
        Ok(file)
    }

    fn write(&self, sha256: &str, code: &[u8]) -> io::Result<()> {
        let mac = self.mac(sha256, code).finalize().into_bytes();
        replace(&self.path(sha256), &[mac.as_slice(), code])
    }

    fn path(&self, sha256: &str) -> PathBuf {
        self.dir.join(sha256).join(format!("{}.cwasm", self.tag))
    }

    fn mac(&self, sha256: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.key.as_slice()).expect("HMAC takes keys of any length");
        mac.update(self.tag.as_bytes());
        mac.update(sha256.as_bytes());
        mac.update(code);
        mac
    }
}

/// After so long no process is still writing a staged file.
const STAGED_AT_MOST: Duration = Duration::from_mins(10);

/// Removes the staged files of processes that were killed while they wrote.
fn remove_left_over(dir: &Path) -> io::Result<()> {
    for folder in std::fs::read_dir(dir)? {
        // What is no folder has none, and another process may be removing it.
        let Ok(files) = std::fs::read_dir(folder?.path()) else { continue };
        for file in files.flatten() {
            let is_staged = file.file_name().as_encoded_bytes().starts_with(b".");
            let age = || file.metadata().ok()?.modified().ok()?.elapsed().ok();
            if is_staged && age().is_some_and(|age| age > STAGED_AT_MOST) {
                // Another process that starts at the same time may be first.
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
    Ok(())
}

/// Writes a file of its own folder in one step, readable by this server alone.
fn replace(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a file needs a folder"))?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let unique = hex::encode(heddle_core::secret::random_bytes::<8>().as_slice());
    let staged = folder.join(format!(".{unique}"));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&staged)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()?;
    std::fs::rename(&staged, path)
}

/// Why compiled code could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error("the compiled code cannot be loaded: {0}")]
    Code(String),
    #[error("the compiled code cannot be stored")]
    Disk(#[source] io::Error),
}

/// Code from a file that only this process has.
fn map(engine: &Engine, file: &std::fs::File) -> wasmtime::Result<Component> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    #[expect(
        unsafe_code,
        reason = "the file is a copy of checked bytes, and has no name by which it could be changed"
    )]
    // SAFETY: the caller has written to it what `Engine::precompile_component` of this server made.
    unsafe {
        Component::deserialize_file(engine, path)
    }
}

fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(
        unsafe_code,
        reason = "the bytes were compiled by our own child or carry our authentication code, checked over this very buffer"
    )]
    // SAFETY: both callers pass bytes that `Engine::precompile_component` of this server made.
    unsafe {
        Component::deserialize(engine, code)
    }
}

/// What tells the program that runs from an older and a newer one. Where the system does not say, every start is one of another
/// program.
fn program() -> Vec<u8> {
    let metadata = std::env::current_exe().and_then(std::fs::metadata);
    let told = metadata.and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
    match told {
        Ok((bytes, changed)) => format!("{bytes} {changed:?}").into_bytes(),
        Err(_) => heddle_core::secret::random_bytes::<16>().to_vec(),
    }
}

fn tag(engine: &Engine) -> String {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut sha = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut sha);
    sha.0.update(std::env::consts::ARCH);
    sha.0.update(std::env::consts::OS);
    hex::encode(sha.0.finalize())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn compiled() -> (Engine, Vec<u8>) {
        let engine = crate::engine::compiling().unwrap();
        let code = engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap();
        (engine, code)
    }

    #[test]
    fn an_entry_comes_back_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, code) = compiled();
        let cache = CodeCache::open(&dir.path().join("code"), [7; 32], &engine).unwrap();
        assert!(matches!(cache.find(&engine, "ab").unwrap(), Found::Nothing));
        cache.keep(&engine, "ab", &code).unwrap();
        assert!(matches!(cache.find(&engine, "ab").unwrap(), Found::Code(_)));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&cache.dir), 0o700);
        assert_eq!(mode(&cache.path("ab")), 0o600);
    }

    #[test]
    fn what_a_killed_process_was_writing_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, code) = compiled();
        let cache = CodeCache::open(dir.path(), [7; 32], &engine).unwrap();
        cache.keep(&engine, "ab", &code).unwrap();
        let [old, new] = [".old", ".new"].map(|name| dir.path().join("ab").join(name));
        for path in [&old, &new] {
            std::fs::write(path, b"half").unwrap();
        }
        std::fs::File::open(&old).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let cache = CodeCache::open(dir.path(), [7; 32], &engine).unwrap();
        assert!(!old.exists() && new.exists());
        assert!(matches!(cache.find(&engine, "ab").unwrap(), Found::Code(_)));
    }

    #[test]
    fn a_changed_byte_or_another_key_deletes_the_entry() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, code) = compiled();
        let cache = CodeCache::open(dir.path(), [7; 32], &engine).unwrap();
        cache.keep(&engine, "ab", &code).unwrap();
        let mut entry = std::fs::read(cache.path("ab")).unwrap();
        *entry.last_mut().unwrap() ^= 1;
        std::fs::write(cache.path("ab"), &entry).unwrap();
        assert!(matches!(cache.find(&engine, "ab").unwrap(), Found::Forged));
        assert!(!cache.path("ab").exists());

        cache.keep(&engine, "ab", &code).unwrap();
        let other = CodeCache::open(dir.path(), [8; 32], &engine).unwrap();
        assert!(matches!(other.find(&engine, "ab").unwrap(), Found::Forged));
    }

    #[test]
    fn processes_that_find_the_same_forged_entry_both_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, code) = compiled();
        let cache = CodeCache::open(dir.path(), [7; 32], &engine).unwrap();
        let other = CodeCache::open(dir.path(), [8; 32], &engine).unwrap();
        let begin = std::sync::Barrier::new(2);
        for _ in 0..200 {
            cache.keep(&engine, "ab", &code).unwrap();
            let find = || {
                begin.wait();
                other.find(&engine, "ab").map(|found| matches!(found, Found::Forged | Found::Nothing))
            };
            std::thread::scope(|scope| {
                let (one, two) = (scope.spawn(find), scope.spawn(find));
                assert!(one.join().unwrap().unwrap() && two.join().unwrap().unwrap());
            });
        }
    }

    #[test]
    fn only_what_this_server_judged_counts_as_judged() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, _) = compiled();
        let cache = CodeCache::open(dir.path(), [7; 32], &engine).unwrap();
        assert!(!cache.was_judged("ab"));
        cache.keep_judged("ab").unwrap();
        assert!(cache.was_judged("ab") && !cache.was_judged("cd"));
        std::fs::rename(dir.path().join("ab"), dir.path().join("cd")).unwrap();
        assert!(!cache.was_judged("cd"), "the mark of another package");
        cache.keep_judged("ab").unwrap();
        let other = CodeCache::open(dir.path(), [8; 32], &engine).unwrap();
        assert!(!other.was_judged("ab"), "the mark of another server");
        assert!(!cache.was_tried("ab"), "a mark of another kind");
        cache.keep_tried("ab").unwrap();
        assert!(cache.was_tried("ab"));
        let upgraded = CodeCache { program: b"another".to_vec(), ..cache };
        assert!(upgraded.was_judged("ab") && !upgraded.was_tried("ab"), "the mark of another program");
    }

    #[test]
    fn code_of_one_component_does_not_pass_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, code) = compiled();
        let cache = CodeCache::open(dir.path(), [7; 32], &engine).unwrap();
        cache.keep(&engine, "ab", &code).unwrap();
        std::fs::create_dir(dir.path().join("cd")).unwrap();
        std::fs::rename(cache.path("ab"), cache.path("cd")).unwrap();
        assert!(matches!(cache.find(&engine, "cd").unwrap(), Found::Forged));
    }
}
