//! What is known of how a vendor answers, and the test of each fact: `adapters/<vendor>/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::paths::files;
use super::rooms::host;

/// Parts that each table has.
const PARTS: [&str; 3] = ["## Answers", "## Concurrency", "## Versions"];

/// Names of all functions of a folder that are tests, or that a macro makes tests of.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    let mut sources = Vec::new();
    files(folder, &mut sources);
    for file in sources {
        let text = fs::read_to_string(file).expect("a source can be read");
        for (at, _) in text.match_indices("fn ") {
            let name = text[at + 3..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
            names.extend(name.map(str::to_owned));
        }
    }
}

fn known() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["../adapters", "../plugins-sdk", "../tests", "runtime/src"] {
        functions(&host().join(folder), &mut names);
    }
    names
}

/// The rows of the tables: the fact, and the tests that it names.
fn rows(text: &str) -> Vec<(String, Vec<String>)> {
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(str::to_owned).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Fact"));
    rows.map(|line| {
        let cells = cells(line);
        let tests = cells.last().map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect());
        (cells.first().cloned().unwrap_or_default(), tests.unwrap_or_default())
    })
    .collect()
}

#[test]
fn every_fact_about_a_vendor_has_a_test_by_name() {
    let (known, mut problems) = (known(), Vec::new());
    let adapters = fs::read_dir(host().join("../adapters")).expect("there are adapters");
    let folders = adapters.map(|entry| entry.expect("a folder can be read").path());
    for folder in folders.filter(|folder| folder.join("manifest.json").is_file()) {
        let file = folder.join("README.md");
        let told = file.display();
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{told}: {error}"));
        let lacking = PARTS.iter().filter(|part| !text.contains(*part));
        problems.extend(lacking.map(|part| format!("{told} has no part '{part}'")));
        let rows = rows(&text);
        assert!(rows.len() >= 10, "{told} has {} facts", rows.len());
        for (fact, tests) in rows {
            if tests.is_empty() {
                problems.push(format!("{told}: no test of '{fact}'"));
            }
            let unknown = tests.iter().filter(|test| !known.contains(*test));
            problems.extend(unknown.map(|test| format!("{told}: there is no test '{test}'")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
