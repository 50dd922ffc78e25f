//! Attacks on a catalogue that the tests of other TUF clients know, carried out on an update as a server makes it.
//!
//! Names such as `test_root_rotation` are of cases in theupdateframework/tuf-conformance and theupdateframework/python-tuf.
//! `README.md` lists all of them. Cases that are not here are in `src/catalog/tests`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends with the place where")]

mod files;
mod formats;
mod kept;
mod rotations;
mod server;
mod times;

use std::path::Path;

/// The sources in a folder, without those in folders of it.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = entries.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    sources.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn every_attack_of_the_table_has_a_test_by_name() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src/catalog/tests", "tests", "tests/attacks", "../tests/marketplace"];
    let sources: String = folders.map(|folder| sources(&home.join(folder))).concat();
    let text = std::fs::read_to_string(home.join("README.md")).unwrap();
    let (_, rest) = text.split_once("\n## Attacks\n").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 20, "the table was found: {} rows", rows.len());
    for row in rows {
        let cell = row.trim_matches('|').split('|').next_back().unwrap();
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            assert!(sources.contains(&format!("fn {test}(")), "there is no test '{test}': {row}");
        }
    }
}
