//! Carries the sources of the SDK and the interface files in the program: an author has only `heddle`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::{Table, Value};

/// Folders of the repository that projects get, and the ending of their files.
const FOLDERS: [(&str, &str); 5] = [
    ("plugins-sdk/src", "rs"),
    ("wit/adapter", "wit"),
    ("wit/common", "wit"),
    ("wit/host", "wit"),
    ("wit/plugin", "wit"),
];
const SDK: &str = "heddle-sdk";

/// The root of the repository, from this package.
const ROOT: &str = "../..";

fn main() -> anyhow::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo tells a build script by its environment where to read and write"
    )]
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).context("cargo names no folder");
    // Asked when it runs: checkouts that share a target folder share this program, too.
    let (out, package) = (folder("OUT_DIR")?, folder("CARGO_MANIFEST_DIR")?);
    let root = package.join(ROOT).canonicalize()?;
    let mut files = BTreeMap::new();
    for (folder, ending) in FOLDERS {
        println!("cargo::rerun-if-changed={ROOT}/{folder}");
        collect(&root, &root.join(folder), ending, &mut files)?;
    }
    for (name, text) in [("Cargo.toml", manifest(&root)?), ("Cargo.lock", lock(&root)?)] {
        std::fs::write(out.join(name), text)?;
    }
    files.insert("plugins-sdk/Cargo.toml".to_owned(), out.join("Cargo.toml"));
    let mut code = "pub(crate) static FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for (name, path) in &files {
        // A copy stays where it is, whatever becomes of the checkout.
        let copy = out.join("carried").join(name);
        std::fs::create_dir_all(copy.parent().context("a file has a folder")?)?;
        std::fs::copy(path, &copy).with_context(|| path.display().to_string())?;
        writeln!(code, "    ({name:?}, include_bytes!({:?})),", copy.display().to_string())?;
    }
    code.push_str("];\n");
    Ok(std::fs::write(out.join("carried.rs"), code)?)
}

fn collect(
    root: &Path,
    folder: &Path,
    ending: &str,
    files: &mut BTreeMap<String, PathBuf>,
) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, ending, files)?;
        } else if path.extension().is_some_and(|found| found == ending) {
            let name = path.strip_prefix(root)?.to_str().context("a name is not UTF-8")?.to_owned();
            files.insert(name, path);
        }
    }
    Ok(())
}

fn read(root: &Path, name: &str) -> anyhow::Result<Table> {
    let path = root.join(name);
    println!("cargo::rerun-if-changed={ROOT}/{name}");
    Ok(std::fs::read_to_string(&path).with_context(|| path.display().to_string())?.parse()?)
}

/// The manifest of the SDK by itself: what it inherits from the workspace is written out. The feature for packages of
/// adapters needs a crate of this repository and is left out.
fn manifest(root: &Path) -> anyhow::Result<String> {
    let (workspace, sdk) = (read(root, "Cargo.toml")?, read(root, "plugins-sdk/Cargo.toml")?);
    let shared = workspace["workspace"]["dependencies"].as_table().context("no shared dependencies")?;
    let mut dependencies = Table::new();
    for (name, needed) in sdk["dependencies"].as_table().context("the SDK has no dependencies")? {
        if needed.get("optional").is_none() {
            dependencies.insert(name.clone(), shared.get(name).context("a version is missing")?.clone());
        }
    }
    let of_all = workspace["workspace"]["package"].as_table().context("no shared package")?;
    let mut package = Table::new();
    package.insert("name".into(), SDK.into());
    for key in ["version", "edition", "rust-version", "license"] {
        package.insert(key.into(), of_all.get(key).context("a key is missing")?.clone());
    }
    package.insert("publish".into(), false.into());
    let mut features = sdk["features"].as_table().context("the SDK has no features")?.clone();
    features.remove("conformance");
    let lints: Table = "rust = { unexpected_cfgs = \"allow\" }".parse()?;
    let parts =
        [("package", package), ("features", features), ("dependencies", dependencies), ("lints", lints)];
    let manifest: Table = parts.into_iter().map(|(key, part)| (key.to_owned(), Value::Table(part))).collect();
    Ok(manifest.to_string())
}

/// The versions of this repository for the SDK and all that it needs, as a lock file: so a plugin is built from what the
/// host was tested with.
fn lock(root: &Path) -> anyhow::Result<String> {
    let whole = read(root, "Cargo.lock")?;
    let packages = whole["package"].as_array().context("the lock file has no packages")?;
    let text = |package: &Value, key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    let (mut kept, mut left) = (BTreeSet::new(), vec![SDK.to_owned()]);
    while let Some(next) = left.pop() {
        // A dependency is written as its name, with its version where there are several.
        let mut words = next.split(' ');
        let (name, version) = (words.next().unwrap_or_default().to_owned(), words.next().map(str::to_owned));
        for (index, package) in packages.iter().enumerate() {
            let is_it = text(package, "name").as_ref() == Some(&name)
                && (version.is_none() || text(package, "version") == version);
            if is_it && kept.insert(index) {
                let needed = package.get("dependencies").and_then(Value::as_array);
                let needed = needed.into_iter().flatten().filter_map(Value::as_str);
                // The optional one of the SDK is no part of what projects get.
                left.extend(needed.filter(|one| *one != "heddle-marketplace").map(str::to_owned));
            }
        }
    }
    let mut lock = Table::new();
    lock.insert("version".into(), whole["version"].clone());
    let kept = packages.iter().enumerate().filter(|(index, _)| kept.contains(index));
    lock.insert("package".into(), Value::Array(kept.map(|(_, package)| package.clone()).collect()));
    let text = toml::to_string(&lock)?;
    Ok(text.replace(" \"heddle-marketplace\",\n", "").replace("\"heddle-marketplace\", ", ""))
}
