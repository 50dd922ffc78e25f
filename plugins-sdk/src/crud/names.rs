//! What a payload asks for, in the vendor's ids: choices, and other objects by their natural keys.

use serde_json::{Value, json};

use super::binding::Field;
use super::field::{self, Content, plain};
use super::model::{Entry, Model, WithField};
use crate::{Fault, fault};

/// How many choices a fault names.
const NAMED_MAX: usize = 20;

impl Model<'_> {
    /// The fields that a payload asks for, in the form in which they are compared. Objects that it names are
    /// replaced by the vendor's ids.
    pub(crate) fn asked(
        &mut self,
        list: usize,
        payload: &Value,
        entry: Option<usize>,
    ) -> Result<Content, Fault> {
        let named: Vec<(String, Field)> = {
            let fields = &self.lists[list].binding.fields;
            let known = payload.as_object().into_iter().flatten();
            known.filter_map(|(name, _)| Some((name.clone(), fields.get(name)?.clone()))).collect()
        };
        let mut out = Content::new();
        for (name, field) in named {
            let value = field::normal(&field, &payload[&name]);
            let value = if field.choice && !field.open || !field.of.is_empty() {
                self.resolve(list, &name, &field, value, entry)?
            } else {
                value
            };
            out.insert(name, value);
        }
        Ok(out)
    }

    fn resolve(
        &mut self,
        list: usize,
        name: &str,
        field: &Field,
        value: Value,
        entry: Option<usize>,
    ) -> Result<Value, Fault> {
        let choices = {
            let list = &self.lists[list];
            let object = entry.and_then(|at| list.entries[at].object.as_ref()).or(list.template.as_ref());
            object.and_then(|object| field::choices(&list.binding, name, object))
        };
        match value {
            Value::Null => Ok(Value::Null),
            Value::Array(items) => {
                let mut ids = Vec::with_capacity(items.len());
                for item in items {
                    ids.push(self.choose(list, (name, field), &plain(&item), choices.as_deref())?);
                }
                Ok(field::normal(field, &json!(ids)))
            }
            Value::String(text) => {
                self.choose(list, (name, field), &text, choices.as_deref()).map(Value::String)
            }
            other => Ok(other),
        }
    }

    /// The vendor's id of what a payload names: an id, a label, or the natural key of another object.
    fn choose(
        &mut self,
        list: usize,
        (name, field): (&str, &Field),
        text: &str,
        choices: Option<&[(String, String)]>,
    ) -> Result<String, Fault> {
        let known = choices.unwrap_or_default();
        if known.iter().any(|(id, _)| id == text) {
            return Ok(text.to_owned());
        }
        let wrong = |message: String| {
            fault::invalid(format!("'{text}' cannot be chosen for '{name}'")).with(name, message)
        };
        if !field.of.is_empty() {
            let mut ids: Vec<String> =
                known.iter().filter(|(_, label)| label == text).map(|(id, _)| id.clone()).collect();
            if ids.is_empty() {
                ids = self.named(list, field, text)?;
            }
            match ids.as_slice() {
                [id] => return Ok(id.clone()),
                [] => {}
                several => {
                    return Err(wrong(format!(
                        "{} objects have this name; write the id of one",
                        several.len()
                    )));
                }
            }
        }
        if choices.is_none() || field.open {
            return Ok(text.to_owned());
        }
        let says = |(id, label): &(String, String)| {
            if field.of.is_empty() || label.is_empty() { format!("'{id}'") } else { format!("'{label}'") }
        };
        let names: Vec<String> = known.iter().take(NAMED_MAX).map(says).collect();
        Err(wrong(match (names.len(), known.len()) {
            (0, _) => "the device has nothing to choose from".to_owned(),
            (shown, all) if shown < all => {
                format!("choose one of {} and {} more", names.join(", "), all - shown)
            }
            _ => format!("choose one of {}", names.join(", ")),
        }))
    }

    /// Ids of the objects with a natural key, in the kinds that a field refers to.
    fn named(&mut self, list: usize, field: &Field, text: &str) -> Result<Vec<String>, Fault> {
        let mut ids = Vec::new();
        for kind in &field.of {
            let Some(other) = self.beside(list, kind)? else { continue };
            // An id is good as it is, too.
            let fits = |entry: &&Entry| entry.name == text || entry.id == text;
            ids.extend(self.lists[other].entries.iter().filter(fits).map(|entry| entry.id.clone()));
        }
        Ok(ids)
    }
}
