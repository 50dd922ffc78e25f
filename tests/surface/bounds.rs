//! The table of bounds in ARCHITECTURE.md says what the source says.

use std::path::Path;

/// The table's rows: what enters, what is bounded, the file, the constants.
fn rows(text: &str) -> Vec<[&str; 4]> {
    let (_, section) = text.split_once("## Bounds of what comes in").expect("there is such a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            cells.try_into().unwrap_or_else(|cells| panic!("a row has four cells: {cells:?}"))
        })
        .collect()
}

/// The value that a constant is given in this source.
fn value<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let declared = source.lines().map(str::trim).find(|line| {
        line.split_once(':').is_some_and(|(before, _)| {
            before.split(' ').any(|word| word == "const") && before.ends_with(&format!("const {name}"))
        })
    })?;
    declared.split_once(" = ")?.1.strip_suffix(';')
}

#[test]
fn every_bound_of_the_table_is_a_constant_of_that_value() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&text);
    assert!(rows.len() > 20, "the table has {} rows", rows.len());
    for [what, _, file, constants] in rows {
        let file = file.trim_matches('`');
        let source =
            std::fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("'{file}' of '{what}'"));
        for constant in constants.split(", ") {
            let (name, expected) = constant.trim_matches('`').split_once(" = ").expect("'NAME = value'");
            assert_eq!(value(&source, name), Some(expected), "{name} of '{what}' in {file}");
        }
    }
}

#[test]
fn every_place_where_strangers_send_bytes_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&text);
    for sender in [
        "device",
        "component",
        "identity provider: OIDC",
        "identity provider: LDAP",
        "receiver of a webhook",
        "client: HTTP",
        "client: WebSocket",
        "Redis",
        "mail server",
    ] {
        assert!(rows.iter().any(|[what, ..]| what.starts_with(sender)), "{sender}");
    }
}
