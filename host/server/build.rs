//! Says which commit a release was built from. It starts no program and reads nothing outside of the checkout, so the
//! same checkout gives the same program, also without a network and without git.

use std::path::Path;

#[path = "commit.rs"]
mod commit;

fn main() {
    #[expect(clippy::disallowed_methods, reason = "what Cargo tells a build script")]
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let version = variable("CARGO_PKG_VERSION");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit.rs");
    // Only a release: else every commit would compile this package anew.
    let found = if variable("PROFILE") == "release" {
        commit::of_checkout(&Path::new(&variable("CARGO_MANIFEST_DIR")).join("../.."))
    } else {
        None
    };
    let build = match found {
        Some(found) => {
            for file in &found.files {
                println!("cargo::rerun-if-changed={}", file.display());
            }
            format!("{version} ({})", found.id)
        }
        None => version,
    };
    println!("cargo::rustc-env=HEDDLE_BUILD={build}");
}
