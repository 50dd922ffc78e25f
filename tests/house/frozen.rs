//! Released versions of the interface: `wit/since-*` is never edited again, and today's interface still serves what was
//! built for it. Nor is a migration that databases have run: they keep its checksum, and a server with another one refuses them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use wit_component::semver_check;
use wit_parser::{PackageId, Resolve};

use super::rooms::host;

/// Each released version with the digest of all its files. A line is added with a release, and none is ever changed.
const RELEASED: &[(&str, &str)] =
    &[("1.0.0", "d37eaf02b58dfd0c79dd3650bd0ab4317c28f620e8424992e612a5cc49bc4008")];
/// The last migration that databases may have run, with the digest of all up to it. A new one is added behind it, and is
/// counted here once it has landed.
const RUN: (&str, &str) = ("0048", "6a89a32b383639e7eac53ba06020772ab6547dee90663b99e57112e33bf8b5ee");
/// Folders with packages in WIT, in the order in which they need each other.
const PACKAGES: [&str; 3] = ["common", "host", "adapter"];

fn wit() -> PathBuf {
    host().join("../wit")
}

fn released(version: &str) -> PathBuf {
    wit().join(format!("since-{version}"))
}

/// Adds all files below a folder, in the order of their names.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// SHA-256 over the paths and the digests of all files of a folder, as `sha256sum` prints them.
fn digest_of(folder: &Path) -> String {
    let mut found = Vec::new();
    files(folder, &mut found);
    digest_of_all(folder, &found)
}

fn digest_of_all(folder: &Path, found: &[PathBuf]) -> String {
    let lines = found.iter().map(|file| {
        let path = file.strip_prefix(folder).expect("it is in the folder").display();
        let bytes = fs::read(file).expect("a file can be read");
        (path.to_string(), format!("{}  {path}\n", hex::encode(Sha256::digest(bytes))))
    });
    let lines: BTreeMap<String, String> = lines.collect();
    let text: String = lines.into_values().collect();
    hex::encode(Sha256::digest(text))
}

#[test]
fn a_released_interface_is_never_edited() {
    let entries = fs::read_dir(wit()).expect("there is an interface");
    let names = entries.map(|entry| entry.expect("a folder can be read").file_name());
    let found = names.filter_map(|name| name.to_str()?.strip_prefix("since-").map(str::to_owned));
    let mut found: Vec<(String, String)> = found
        .map(|version| (digest_of(&released(&version)), version))
        .map(|(digest, version)| (version, digest))
        .collect();
    found.sort();
    let known: Vec<(String, String)> =
        RELEASED.iter().map(|(version, digest)| ((*version).to_owned(), (*digest).to_owned())).collect();
    assert_eq!(
        found, known,
        "a version is released by a new folder and a new line; neither is changed afterwards"
    );
}

#[test]
fn a_migration_that_databases_have_run_is_never_edited() {
    let folder = host().join("../migrations");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let (last, digest) = RUN;
    let number = |file: &Path| file.file_name()?.to_str()?.get(..last.len()).map(str::to_owned);
    found.retain(|file| {
        file.parent() == Some(folder.as_path()) && number(file).is_some_and(|number| number.as_str() <= last)
    });
    assert_eq!(
        digest_of_all(&folder, &found),
        digest,
        "databases refuse a server whose migrations differ from those that they have run: add a new one instead"
    );
}

/// Adds the packages of a folder, with their version called otherwise; returns the last one.
fn packages(resolve: &mut Resolve, folder: &Path, (version, called): (&str, &str)) -> PackageId {
    let mut last = None;
    for package in PACKAGES {
        let mut sources = Vec::new();
        files(&folder.join(package), &mut sources);
        for file in sources {
            let text = fs::read_to_string(&file).expect("a source can be read");
            let text = text.replace(&format!("@{version}"), &format!("@{called}"));
            let told = file.display();
            last = Some(resolve.push_str(&file, &text).unwrap_or_else(|error| panic!("{told}: {error:#}")));
        }
    }
    last.expect("there are packages")
}

/// A component of an old version links with today's host, and has every function that the host calls.
#[test]
fn what_was_built_for_a_released_interface_fits_the_one_of_today() {
    for (version, _) in RELEASED {
        let mut resolve = Resolve::default();
        let new = packages(&mut resolve, &wit(), ("", ""));
        // Two packages of one name are told apart by their versions alone.
        let old = packages(&mut resolve, &released(version), (version, "0.0.1"));
        for world in ["adapter-read", "adapter"] {
            let of = |package| {
                let found = resolve.select_world(&[package], Some(world));
                found.unwrap_or_else(|error| panic!("{world} since {version}: {error:#}"))
            };
            let fits = semver_check(resolve.clone(), of(old), of(new));
            assert!(fits.is_ok(), "{world} since {version}: {fits:?}");
        }
    }
}

fn schemas(folder: &Path) -> BTreeMap<String, Value> {
    let entries = fs::read_dir(folder).expect("there is a model");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a schema can be read");
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("a schema is JSON"))
    };
    entries.map(|entry| read(entry.expect("a folder can be read").path())).collect()
}

/// What stood in the model stands there still: kinds, fields as they were, verbs with their fields. Kinds of version 0 were
/// released as such: they may still change.
#[test]
fn the_model_of_today_has_everything_that_was_released() {
    let today = schemas(&wit().join("model"));
    for (version, _) in RELEASED {
        for (name, then) in schemas(&released(version).join("model")) {
            let Some(now) = today.get(&name) else { panic!("{name} of {version} is gone") };
            if then["x-version"] == 0 {
                continue;
            }
            assert_eq!(now["required"], then["required"], "{name}: what every object has");
            for part in ["properties", "x-writes"] {
                for (field, was) in then[part].as_object().into_iter().flatten() {
                    assert!(
                        holds(&now[part][field], was),
                        "{name}: {part}/{field} is not as it was in {version}"
                    );
                }
            }
        }
    }
}

/// Whether everything of the old value is in the new one; words for people may change.
fn holds(now: &Value, was: &Value) -> bool {
    match (now, was) {
        (Value::Object(now), Value::Object(was)) => was
            .iter()
            .all(|(name, was)| name == "description" || now.get(name).is_some_and(|now| holds(now, was))),
        (Value::Array(now), Value::Array(was)) => was.iter().all(|was| now.contains(was)),
        (now, was) => now == was,
    }
}
