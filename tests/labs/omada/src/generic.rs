//! What every collection and every document does, from the facts alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::{Created, Field, Role, facts};
use crate::naming::{CHOOSING, ids_of, is_chosen, named, names_many, of_body, texts};
use crate::outcome::{Failure, INVALID, NAME_TAKEN, Outcome, own_code};
use crate::page::{page, show};
use crate::shape;
use crate::store::is;

impl Omada {
    /// Answers a call that has no behaviour of its own.
    pub(crate) fn generic(&mut self, call: &Call) -> Outcome {
        match call.route.role {
            Role::List if call.item.is_collection => Ok(self.list(call)),
            Role::List | Role::Get | Role::Read => self.get(call),
            Role::Create if call.item.is_collection => self.create(call),
            Role::Delete if call.item.is_collection => self.delete(call),
            Role::Update | Role::Toggle if call.item.is_collection => self.update(call),
            Role::Update => Ok(self.write_document(call)),
            Role::Order => {
                self.reorder(call);
                Ok(Value::Null)
            }
            Role::Create | Role::Delete | Role::Toggle | Role::Do => Ok(self.done(call)),
        }
    }

    /// An action that changes nothing here; its task gets an id.
    fn done(&mut self, call: &Call) -> Value {
        let mut result = call.route.answer.as_ref().map_or(Value::Null, shape::blank);
        for name in ["taskId", "id"] {
            if result[name].is_string() {
                result[name] = json!(self.store.new_id());
            }
        }
        result
    }

    pub(crate) fn list(&self, call: &Call) -> Value {
        let rows = self.store.rows(call.scope(), &call.collection());
        page(call, rows.iter().filter(|row| is_chosen(call, row)).collect(), Clone::clone)
    }

    fn get(&mut self, call: &Call) -> Outcome {
        if call.item.is_collection && call.route.role == Role::Get {
            let elsewhere = || {
                let (name, field, id) = self.elsewhere(call)?;
                self.store.find(call.scope(), &name, &field, &id)
            };
            let row = self.row(call).or_else(elsewhere).ok_or_else(|| not_found(call))?;
            return Ok(show(call, row));
        }
        let stored = self.store.document(call.scope(), &call.document());
        let answer = call.route.answer.as_ref();
        let is_page = match answer {
            Some(field) => field.child("data").is_some(),
            None => call.route.method == "GET" && call.route.role == Role::Read && has_pages(call),
        };
        if is_page && stored.is_none() {
            return Ok(page(call, Vec::new(), Clone::clone));
        }
        let mut document = answer.or_else(|| written_shape(call)).map_or_else(|| json!({}), shape::blank);
        // A task without a state of its own counts as finished, so that polling it ends.
        for name in ["finished", "success"] {
            if document.get(name).is_some() {
                document[name] = json!(true);
            }
        }
        if let Some(stored) = stored {
            shape::lay_over(&mut document, stored);
        }
        Ok(show(call, &document))
    }

    /// The row that the path or the body names.
    pub(crate) fn row(&self, call: &Call) -> Option<&Value> {
        let (field, id) = self.address(call)?;
        self.store.rows(call.scope(), &call.collection()).iter().find(|row| is(row, &field, &id))
    }

    /// The field that identifies rows of the collection, and the value that the call gives.
    fn address(&self, call: &Call) -> Option<(String, String)> {
        let rows = self.store.rows(call.scope(), &call.collection());
        let Some((name, id)) = call.row_id() else { return of_body(call, rows) };
        let fields = [call.item.id_field.as_str(), "id", name]
            .into_iter()
            .chain(call.item.key.iter().map(String::as_str));
        let field = fields.into_iter().find(|field| rows.iter().any(|row| is(row, field, id)))?;
        Some((field.to_owned(), id.to_owned()))
    }

    fn create(&mut self, call: &Call) -> Outcome {
        if !call.body.is_object() {
            return Err(Failure::new(INVALID));
        }
        self.refuse_taken(call, None)?;
        let row = call.body.clone();
        let id = self.insert(call, row);
        Ok(created(call, &id))
    }

    /// Stores a new row and gives its id.
    pub(crate) fn insert(&mut self, call: &Call, mut row: Value) -> String {
        let id = self.store.new_id();
        let name = call.collection();
        let is_numbered = matches!(call.item.created, Created::Inner);
        let rows = self.store.rows_mut(call.scope(), &name);
        if is_numbered {
            number(call, &mut row, &id);
        }
        if let (Some(fields), false) = (row.as_object_mut(), is_numbered) {
            fields.insert(call.item.id_field.clone(), json!(id));
            fields.insert("id".to_owned(), json!(id));
        }
        if call.item.id.ends_with("-acl") {
            row["index"] = json!(rows.len() + 1);
        }
        rows.push(row);
        id
    }

    /// Refuses a natural key that another row of the collection has.
    fn refuse_taken(&self, call: &Call, own: Option<&Value>) -> Result<(), Failure> {
        let key: Vec<String> =
            call.item.key.iter().map(|field| format!("/{}", field.replace('.', "/"))).collect();
        let wanted: Vec<Option<&Value>> = key.iter().map(|field| call.body.pointer(field)).collect();
        if key.is_empty() || wanted.iter().all(Option::is_none) {
            return Ok(());
        }
        let same =
            |row: &&Value| key.iter().zip(&wanted).all(|(field, wanted)| row.pointer(field) == *wanted);
        let rows = self.store.rows(call.scope(), &call.collection());
        match rows.iter().filter(|row| own != Some(*row)).find(same) {
            None => Ok(()),
            Some(_) => Err(Failure::new(
                own_code(&call.route.codes, &[NAME_TAKEN, -33506, -34511]).unwrap_or(NAME_TAKEN),
            )),
        }
    }

    fn update(&mut self, call: &Call) -> Outcome {
        if call.row_id().is_none() && self.address(call).is_none() && names_many(call) {
            self.update_many(call);
            return Ok(inner(call));
        }
        let (name, field, id) = match self.address(call) {
            Some((field, id)) => (call.collection(), field, id),
            None => self.elsewhere(call).ok_or_else(|| not_found(call))?,
        };
        let own =
            self.store.find(call.scope(), &name, &field, &id).cloned().ok_or_else(|| not_found(call))?;
        self.refuse_taken(call, Some(&own))?;
        let had: Vec<String> = own.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let mut row = own;
        overwrite(&mut row, call);
        if let Some(fields) = row.as_object_mut() {
            // Words of the dialogue with the person, not of the row.
            fields.retain(|name, _| name != "skipConfirm" && name != "forceDelete");
        }
        if let (Some(fields), None) = (row.as_object_mut(), call.row_id()) {
            // What names the row, or chooses rows, is no field of it.
            let is_new = |name: &String| !had.contains(name);
            fields.retain(|name, _| {
                !(CHOOSING.contains(&name.as_str()) || call.item.parents.contains(name) && is_new(name))
            });
        }
        if let Some(stored) = self.store.find_mut(call.scope(), &name, &field, &id) {
            *stored = row;
        }
        Ok(inner(call))
    }

    /// Carries out one write for several rows: what it adds, changes and deletes.
    fn update_many(&mut self, call: &Call) {
        for (name, rows) in call.fields() {
            let rows = rows.as_array().cloned().unwrap_or_default();
            if name.starts_with("add") {
                for row in rows {
                    self.insert(call, row);
                }
            } else if name.starts_with("delete") {
                let named: Vec<String> = rows.iter().flat_map(texts).collect();
                let stored = self.store.rows_mut(call.scope(), &call.collection());
                stored.retain(|row| !ids_of(call, row).any(|id| named.contains(&id)));
            } else {
                for row in rows {
                    let ids: Vec<String> = ids_of(call, &row).collect();
                    let stored = self.store.rows_mut(call.scope(), &call.collection());
                    let own =
                        stored.iter_mut().find(|stored| ids_of(call, stored).any(|id| ids.contains(&id)));
                    if let Some(own) = own {
                        shape::lay_over(own, &row);
                    }
                }
            }
        }
    }

    /// The row in another table of the scope: some writes serve several tables.
    fn elsewhere(&self, call: &Call) -> Option<(String, String, String)> {
        let (_, id) = call.row_id()?;
        let name = self.store.collection_of(call.scope(), id)?;
        Some((name, "id".to_owned(), id.to_owned()))
    }

    pub(crate) fn write_document(&mut self, call: &Call) -> Value {
        let name = call.document();
        let mut document = self.store.document(call.scope(), &name).cloned().unwrap_or(json!({}));
        overwrite(&mut document, call);
        self.store.set_document(call.scope(), &name, document);
        inner(call)
    }

    fn delete(&mut self, call: &Call) -> Outcome {
        let name = call.collection();
        let Some((_, id)) = call.row_id() else {
            let named = named(&call.body);
            self.store
                .rows_mut(call.scope(), &name)
                .retain(|row| !ids_of(call, row).any(|id| named.contains(&id)));
            return Ok(inner(call));
        };
        // One path may name several, and some tables share the delete route of another.
        for id in id.split(',') {
            self.refuse_used(call, id)?;
            let before = self.store.rows(call.scope(), &name).len();
            self.store.rows_mut(call.scope(), &name).retain(|row| !ids_of(call, row).any(|own| own == id));
            if self.store.rows(call.scope(), &name).len() == before {
                let other = self.store.collection_of(call.scope(), id).ok_or_else(|| not_found(call))?;
                self.store.rows_mut(call.scope(), &other).retain(|row| row["id"] != id);
            }
        }
        Ok(inner(call))
    }

    /// Refuses to delete what a row of another collection names, where the vendor has a code for it.
    pub(crate) fn refuse_used(&self, call: &Call, id: &str) -> Result<(), Failure> {
        let users = facts().items.iter().filter(|item| item.uses.contains(&call.item.id));
        let users: Vec<&str> = users.map(|item| item.id.as_str()).chain(["switch.port-profile"]).collect();
        let code = own_code(&call.route.codes, &[-33566, -33560]);
        match code.filter(|_| self.store.is_used(call.scope(), id, &users)) {
            None => Ok(()),
            Some(code) => Err(Failure::with(code, format!("{} is in use.", call.item.id))),
        }
    }

    fn reorder(&mut self, call: &Call) {
        let wanted: BTreeMap<String, i64> =
            call.body["indexes"].as_object().map_or_else(BTreeMap::new, |indexes| {
                indexes.iter().filter_map(|(id, index)| Some((id.clone(), index.as_i64()?))).collect()
            });
        let own = wanted.keys().find_map(|id| self.store.collection_of(call.scope(), id));
        let name = own.unwrap_or_else(|| call.collection());
        let rows = self.store.rows_mut(call.scope(), &name);
        for row in rows.iter_mut() {
            if let Some(index) = row["id"].as_str().and_then(|id| wanted.get(id)) {
                row["index"] = json!(index);
            }
        }
        rows.sort_by_key(|row| row["index"].as_i64().unwrap_or(i64::MAX));
        for (row, index) in rows.iter_mut().zip(1..) {
            row["index"] = json!(index);
        }
    }
}

/// What a create answers: an id in one of the vendor's forms, or nothing.
pub(crate) fn created(call: &Call, id: &str) -> Value {
    match &call.item.created {
        _ if call.route.is_web && call.route.answer.is_none() => Value::Null,
        Created::Nothing => Value::Null,
        Created::Bare => json!(id),
        Created::Object(name) => json!({name: id}),
        Created::Inner => inner(call),
    }
}

/// The inner envelope of calls that are passed on to an OLT.
fn inner(call: &Call) -> Value {
    match call.item.created {
        Created::Inner => json!({"errcode": 0, "message": "success"}),
        _ => Value::Null,
    }
}

/// Writes the body into a stored object: as a whole, or only the fields that it names.
///
/// As a whole means: a field that the route knows and the body lacks goes back to its default. What the
/// route does
/// not know is the controller's own and stays.
pub(crate) fn overwrite(stored: &mut Value, call: &Call) {
    let Some(stored) = stored.as_object_mut() else { return };
    let merges = if call.route.is_web { call.item.web_merges } else { call.item.merges };
    if !merges && call.route.role != Role::Toggle {
        match call.route.body.as_ref().and_then(Field::inside) {
            Some(known) => stored.retain(|name, _| {
                let is_own = name == "id" || *name == call.item.id_field;
                is_own || !known.iter().any(|(field, _)| field == name)
            }),
            None => stored.retain(|name, _| OWN.contains(&name.as_str()) || *name == call.item.id_field),
        }
    }
    for (name, value) in call.fields() {
        stored.insert(name.clone(), value.clone());
    }
}

/// Whether the route wants to be asked for a page.
pub(crate) fn has_pages(call: &Call) -> bool {
    call.route.query.is_some_and(|number| facts().shape(number).iter().any(|(name, _)| name == "page"))
}

/// What a device chooses where a create does not: a key, or the next number.
fn number(call: &Call, row: &mut Value, id: &str) {
    let lists = facts().routes.iter().filter(|route| {
        std::ptr::eq(&raw const facts().items[route.item], call.item) && route.role == Role::List
    });
    for list in lists {
        let Some(answer) = &list.answer else { continue };
        if answer.child("key").is_some() && row["key"].is_null() {
            row["key"] = json!(id);
        }
    }
}

/// Fields that belong to the controller.
const OWN: [&str; 5] = ["id", "index", "site", "resource", "primary"];

pub(crate) fn not_found(call: &Call) -> Failure {
    Failure::with(INVALID, format!("{} does not exist.", call.item.id))
}

/// The body of the item's own write, for a document whose read is not described.
fn written_shape(call: &Call) -> Option<&'static Field> {
    let same = |route: &&crate::facts::Route| route.item == call.route.item && route.role == Role::Update;
    facts().routes.iter().filter(same).find_map(|route| route.body.as_ref())
}
