//! An object on its way into the configuration: its values as the client sent them, and the vendor's validation.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::device::Pfsense;
use crate::facts::{Facts, Field, Model, Reference};
use crate::forms::{has_length, has_size, is_empty, is_in_range, is_type};
use crate::reply::Refusal;
use crate::represent::{Row, are_conditions_met, rows, shown};
use crate::store::{Config, Object};
use crate::{checks, choices, php, query, rules};

/// The object above.
#[derive(Clone)]
pub(crate) struct Parent {
    pub(crate) id: Value,
    pub(crate) values: Object,
}

/// An object that is created or updated.
pub(crate) struct Draft<'f> {
    pub(crate) firewall: &'f Pfsense,
    pub(crate) model: &'static Model,
    pub(crate) id: Option<Value>,
    pub(crate) parent: Option<Parent>,
    /// As the API shows them.
    pub(crate) values: Object,
    /// The values before an update.
    pub(crate) initial: Option<Object>,
    /// The children that its lists of children hold, as they are stored.
    pub(crate) nested: BTreeMap<String, Vec<Object>>,
    /// The other objects of its list.
    pub(crate) siblings: Vec<Row>,
    /// User and address of the client.
    pub(crate) client: String,
}

impl<'f> Draft<'f> {
    /// A new object.
    pub(crate) fn new(firewall: &'f Pfsense, model: &'static Model, client: &str) -> Self {
        let mut values = Object::new();
        for field in model.fields(firewall.release) {
            let value = if field.now.is_some() { json!(firewall.time.as_secs()) } else { Value::Null };
            values.insert(field.name.clone(), value);
        }
        let client = client.to_owned();
        let (nested, siblings) = (BTreeMap::new(), Vec::new());
        Self { firewall, model, id: None, parent: None, values, initial: None, nested, siblings, client }
    }

    /// Lays the fields that the model knows over the object.
    pub(crate) fn lay_over(&mut self, sent: &Object) {
        for field in self.model.fields(self.firewall.release) {
            if let Some(value) = sent.get(&field.name) {
                self.values.insert(field.name.clone(), value.clone());
            }
        }
    }

    pub(crate) fn value(&self, field: &str) -> &Value {
        self.values.get(field).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.value(field).as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self, field: &str) -> Option<i64> {
        self.value(field).as_i64()
    }

    pub(crate) fn is_true(&self, field: &str) -> bool {
        self.value(field) == &json!(true)
    }

    pub(crate) fn set(&mut self, field: &str, value: Value) {
        self.values.insert(field.to_owned(), value);
    }

    pub(crate) fn config(&self) -> &'f Config {
        &self.firewall.stored
    }

    pub(crate) fn parent_text(&self, field: &str) -> &str {
        self.parent
            .as_ref()
            .and_then(|parent| parent.values.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The vendor's validation of the whole object. Values that their conditions rule out become null.
    pub(crate) fn validate(&mut self) -> Result<(), Refusal> {
        for field in self.model.fields(self.firewall.release) {
            self.field(field)?;
        }
        for field in self.model.fields(self.firewall.release) {
            if !self.value(&field.name).is_null() {
                rules::field(self, &field.name)?;
            }
        }
        self.unique_together()?;
        rules::whole(self)
    }

    fn field(&mut self, field: &'static Field) -> Result<(), Refusal> {
        let name = field.name.as_str();
        if field.nested.is_some() && self.keeps_children(field) {
            return Ok(());
        }
        let parent = self.parent.as_ref().map(|parent| &parent.values);
        if !are_conditions_met(field, &self.values, parent) {
            self.set(name, Value::Null);
            self.nested.remove(name);
            return Ok(());
        }
        if field.required && self.value(name).is_null() {
            return Err(Refusal::invalid("FIELD_IS_REQUIRED", &format!("Field `{name}` is required.")));
        }
        self.is_editable(field)?;
        if let Value::Array(items) = self.value(name) {
            has_length(field, items.len())?;
        }
        if self.value(name).is_null() {
            let default = field.default.clone().or_else(|| choices::default(self, field));
            self.set(name, default.unwrap_or(Value::Null));
        }
        let value = self.value(name).clone();
        if field.many && !value.is_array() && !value.is_null() {
            let text = format!("Field `{name}` must be of type `array`.");
            return Err(Refusal::invalid("FIELD_INVALID_MANY_VALUE", &text));
        }
        let is_empty = is_empty(field, &value)?;
        // A field that may be absent, or whose default the contract does not know, stays null.
        if value.is_null() {
            return Ok(());
        }
        if is_empty && !field.many {
            is_type(field, &value)?;
            self.is_choice(field, &value)?;
            return self.is_unique(field, &value);
        }
        let values = if let Value::Array(items) = value { items } else { vec![value] };
        let mut children = Vec::new();
        for value in &values {
            children.extend(self.one(field, value)?);
        }
        if field.nested.is_some() {
            self.put_children(field, children);
        }
        Ok(())
    }

    fn is_editable(&self, field: &Field) -> Result<(), Refusal> {
        let Some(initial) = self.initial.as_ref().filter(|_| field.fixed) else { return Ok(()) };
        if initial.get(&field.name).unwrap_or(&Value::Null) == self.value(&field.name) {
            return Ok(());
        }
        let text =
            format!("Field `{}` is not editable, and the requested value differs from its own.", field.name);
        Err(Refusal::invalid("FIELD_VALUE_CHANGED_WHEN_NOT_EDITABLE", &text))
    }

    /// Validates one value; returns the child that it describes, if it does.
    fn one(&mut self, field: &'static Field, value: &Value) -> Result<Option<Object>, Refusal> {
        is_type(field, value)?;
        self.is_choice(field, value)?;
        self.is_unique(field, value)?;
        if is_empty(field, value)? {
            return Ok(None);
        }
        if let Some(child) = field.nested.as_deref().and_then(|name| Facts::get().model(name)) {
            return self.child(field, child, value).map(Some);
        }
        let config = self.config();
        if let Some(text) = value.as_str() {
            for check in &field.checks {
                checks::pass(config, field, check, text, self.id.as_ref())?;
            }
            has_size(field, text)?;
            checks::fits_kind(config, field, text)?;
        }
        is_in_range(field, value)?;
        match &field.refers {
            Some(refers) => self.is_found(field, refers, value).map(|()| None),
            None => Ok(None),
        }
    }

    fn is_choice(&self, field: &Field, value: &Value) -> Result<(), Refusal> {
        let own = choices::of(self.firewall, self.model, field);
        let Some(options) = own.filter(|options| !options.is_empty()) else { return Ok(()) };
        if php::is_in(value, &options) {
            return Ok(());
        }
        let options: Vec<String> = options.iter().map(php::text).collect();
        let text = format!("Field `{}` must be one of [{}]", field.name, options.join(", "));
        Err(Refusal::invalid("FIELD_INVALID_CHOICE", &text))
    }

    fn is_unique(&self, field: &Field, value: &Value) -> Result<(), Refusal> {
        if !field.unique {
            return Ok(());
        }
        let others = self.siblings.iter().filter(|row| row.id != self.id);
        let has = |row: &&Row| match row.values.get(&field.name) {
            Some(Value::Array(items)) if field.many => php::is_in(value, items),
            Some(own) => query::is_exact(own, value),
            None => false,
        };
        let Some(other) = { others }.find(has) else { return Ok(()) };
        let id = other.id.as_ref().map(php::text).unwrap_or_default();
        let text = format!("Field '{}' must be unique. The object with ID '{id}' has the value.", field.name);
        Err(Refusal::invalid("FIELD_MUST_BE_UNIQUE", &text))
    }

    fn unique_together(&self) -> Result<(), Refusal> {
        if self.model.unique.is_empty() {
            return Ok(());
        }
        let others = self.siblings.iter().filter(|row| row.id != self.id);
        let is_same = |row: &&Row| {
            self.model.unique.iter().all(|field| {
                query::is_exact(row.values.get(field).unwrap_or(&Value::Null), self.value(field))
            })
        };
        let Some(other) = { others }.find(is_same) else { return Ok(()) };
        let id = other.id.as_ref().map(php::text).unwrap_or_default();
        let text = format!("Fields [{}] together are in use by ID `{id}`.", self.model.unique.join(", "));
        Err(Refusal::invalid("MODEL_FIELDS_NOT_UNIQUE_TOGETHER", &text))
    }

    fn is_found(&self, field: &Field, refers: &Reference, value: &Value) -> Result<(), Refusal> {
        let is_word = value.as_str().is_some_and(|value| refers.words.iter().any(|word| word == value));
        if is_word || choices::referred(self.firewall, refers).iter().any(|own| own == value) {
            return Ok(());
        }
        let text = format!("Field `{}` could not locate `{}`.", field.name, php::text(value));
        Err(Refusal::not_found("FOREIGN_MODEL_FIELD_VALUE_NOT_FOUND", &text))
    }

    /// Whether a list of children was sent back as it is shown: then the stored children stay, hidden fields and all.
    pub(crate) fn keeps_children(&self, field: &Field) -> bool {
        let Some(initial) = &self.initial else { return false };
        let own = self.value(&field.name);
        own.as_array().is_some_and(|items| !items.is_empty()) && initial.get(&field.name) == Some(own)
    }

    fn child(&mut self, field: &Field, model: &'static Model, sent: &Value) -> Result<Object, Refusal> {
        let Value::Object(sent) = sent else {
            return Err(Refusal::invalid(
                "MODEL_NON_ARRAY_REPRESENTATION_DATA",
                "Data must be of type `array`.",
            ));
        };
        let mut draft = Draft::new(self.firewall, model, &self.client);
        draft.lay_over(sent);
        let done = self.nested.get(&field.name).map_or(0, Vec::len);
        draft.id = Some(json!(done));
        let id = self.id.clone().unwrap_or(Value::Null);
        draft.parent = Some(Parent { id, values: self.values.clone() });
        draft.siblings = self.child_rows(field, model);
        draft.validate().map_err(|refusal| {
            let text = format!("Field `{}`: {}", field.name, refusal.message);
            Refusal::invalid(&refusal.id, &text)
        })?;
        let stored = draft.stored(None);
        self.nested.entry(field.name.clone()).or_default().push(stored.clone());
        Ok(stored)
    }

    fn child_rows(&self, field: &Field, model: &'static Model) -> Vec<Row> {
        let done = self.nested.get(&field.name).into_iter().flatten().enumerate();
        done.map(|(at, stored)| {
            crate::represent::child(
                self.firewall,
                model,
                Some(json!(at)),
                self.id.clone(),
                &self.values,
                stored,
            )
        })
        .collect()
    }

    /// Sorts the children as their model does, and shows them.
    fn put_children(&mut self, field: &'static Field, mut children: Vec<Object>) {
        let Some(model) = field.nested.as_deref().and_then(|name| Facts::get().model(name)) else { return };
        children.sort_by(|one, other| {
            let by = model.sort.iter().map(|key| {
                let value = |object: &Object| object.get(key).cloned().unwrap_or(Value::Null);
                php::compare(&value(one), &value(other), "SORT_REGULAR")
            });
            by.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        self.nested.insert(field.name.clone(), children);
        let rows = self.child_rows(field, model);
        let items: Vec<Value> = rows.iter().map(|row| shown(self.firewall, model, row)).collect();
        self.set(&field.name, json!(items));
    }

    /// The rows of its list, without children of other parents.
    pub(crate) fn take_siblings(&mut self) {
        let parent = self.parent.as_ref().map(|parent| parent.id.clone());
        let all = rows(self.firewall, self.model);
        self.siblings = all.into_iter().filter(|row| parent.is_none() || row.parent == parent).collect();
    }
}
