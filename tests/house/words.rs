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
