//! The words that features give to the API document.

use std::collections::BTreeMap;
use std::fs;

use super::rooms::{host, members};

#[test]
fn every_line_of_a_vocabulary_is_an_entry_and_none_is_there_twice() {
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    for room in members().into_keys() {
        let file = host().join(&room).join("assets/vocabulary.txt");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, words) =
                line.split_once(": ").unwrap_or_else(|| panic!("{room}: '{line}' is no entry"));
            assert!(words.ends_with('.'), "{room}: sentences end with a full stop: {line}");
            let before = entries.insert(name.to_owned(), room.clone());
            assert!(before.is_none(), "'{name}' is in the vocabularies of {before:?} and {room}");
        }
    }
    assert!(entries.len() > 200, "the vocabularies were found: {}", entries.len());
}

#[test]
fn every_example_is_an_object_and_none_is_there_twice() {
    let mut rooms: BTreeMap<String, String> = BTreeMap::new();
    for room in members().into_keys() {
        let Ok(text) = fs::read_to_string(host().join(&room).join("assets/examples.json")) else { continue };
        let bodies: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
        for (operation, body) in bodies {
            assert!(body.is_object(), "{room}: the example of {operation} is no object");
            let before = rooms.insert(operation.clone(), room.clone());
            assert!(before.is_none(), "'{operation}' has examples in {before:?} and {room}");
        }
    }
    assert!(rooms.len() > 60, "the examples were found: {}", rooms.len());
}
