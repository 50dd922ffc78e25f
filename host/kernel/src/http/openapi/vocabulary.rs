//! Meanings of properties and parameters whose own type does not describe them.
//!
//! A name means the same in every schema, so its words stand once: in the feature that alone uses it, or in
//! `assets/vocabulary.txt` of the kernel. A doc comment at a field has priority over them: it says what is true of that
//! field only, such as a bound or a unit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::routes::Routes;

/// The words that several rooms use.
const SHARED: &str = include_str!("../../../assets/vocabulary.txt");

/// The entries of a text; comments begin with `#`.
fn entries(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": "))
}

/// Descriptions by name, and by schema and name.
pub(super) struct Vocabulary(BTreeMap<&'static str, &'static str>);

impl Vocabulary {
    /// The shared words, and those of the features.
    pub(super) fn of_table(table: &Routes) -> Self {
        let texts = table.glossaries.iter().map(|glossary| glossary.vocabulary);
        Self(texts.chain([SHARED]).flat_map(entries).collect())
    }

    fn of(&self, schema: Option<&str>, name: &str) -> Option<&'static str> {
        // Requests and answers can differ in shape, not in meaning.
        let schema = schema.map(|schema| schema.strip_suffix("Input").unwrap_or(schema));
        let own = schema.and_then(|schema| self.0.get(format!("{schema}.{name}").as_str()));
        own.or_else(|| self.0.get(name)).copied()
    }

    /// Describes every property of a schema that has no description of its own.
    pub(super) fn describe(&self, name: &str, schema: &mut Value) {
        self.walk(Some(name), schema);
    }

    fn walk(&self, name: Option<&str>, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                    for (property, schema) in properties {
                        let Some(schema) = schema.as_object_mut() else { continue };
                        if !schema.contains_key("description")
                            && let Some(words) = self.of(name, property)
                        {
                            schema.insert("description".to_owned(), json!(words));
                        }
                    }
                }
                fields.values_mut().for_each(|inner| self.walk(name, inner));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(name, item)),
            _ => {}
        }
    }

    /// Returns the description of a parameter. An id in a path is the id of the object that the path names.
    pub(super) fn of_parameter(&self, place: &str, name: &str) -> Option<String> {
        match name.strip_suffix("_id") {
            Some("gateway") => self.0.get(name).map(|words| (*words).to_owned()),
            Some(noun) if place == "path" => Some(format!("Id of the {}.", noun.replace('_', " "))),
            Some(noun) => Some(format!("Only what belongs to this {}.", noun.replace('_', " "))),
            None if place == "query"
                && ["status", "state", "kind", "tier", "role", "level"].contains(&name) =>
            {
                Some(format!("Only rows with this {name}."))
            }
            None => self.0.get(name).map(|words| (*words).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_win_and_those_of_the_schema_come_next() {
        let vocabulary = Vocabulary::of_table(&Routes::default());
        let mut schema = json!({ "properties": {
            "detail": {}, "ip": {}, "name": { "description": "Own words." },
            "inner": { "description": "Kept.", "properties": { "id": {} } },
        } });
        vocabulary.describe("AuditEntry", &mut schema);
        let about = |pointer: &str| schema.pointer(&format!("/properties/{pointer}/description")).cloned();
        assert_eq!(about("name"), Some(json!("Own words.")));
        assert_eq!(about("ip"), Some(json!("Address of the client.")));
        assert!(about("detail").unwrap().as_str().unwrap().contains("Secrets are masked"));
        assert!(about("inner/properties/id").is_some());
    }
}
