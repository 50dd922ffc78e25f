//! Files that payloads name: their ids become what adapters know of a file, and changes keep the files that they send.

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_core::OrgId;
use heddle_core::change::{ChangeSpec, NativeCall, Plan};
use heddle_core::file::GivenFile;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_runtime::{FileBook, FileContent};
use heddle_store::changes::{self, ChangeRow};
use heddle_store::files::{self, File, FileId};
use heddle_store::{Scope, Tx};
use serde_json::Value;

use crate::declarations::FILE_READ;
use crate::download::{content, key_of};
use crate::rights::{may_have, of_user};

/// Most files that a change names.
const OF_CHANGE_MAX: usize = 16;

/// Replaces each id of a file in a payload by what an adapter may know of it. A field is one where the schema says
/// `"x-file": true`.
pub async fn take(
    app: &App,
    caller: &Caller,
    org: OrgId,
    schema: &Value,
    payload: &mut Value,
) -> Result<(), Error> {
    for Field { name, place, bytes_max } in fields_of(schema, payload)? {
        let file = file_of(app, caller, org, place, &name).await?;
        let size = u64::try_from(file.size_bytes).unwrap_or(0);
        if let Some(most) = bytes_max.filter(|most| size > *most) {
            let message = format!("'{}' has {size} bytes, at most {most} are taken here", file.name);
            return Err(Error::field(&name, message));
        }
        *place =
            serde_json::to_value(GivenFile::new(&file.name, size, &file.sha256)).map_err(Error::internal)?;
    }
    Ok(())
}

/// A field of a payload that names a file.
struct Field<'a> {
    name: String,
    place: &'a mut Value,
    bytes_max: Option<u64>,
}

fn fields_of<'a>(schema: &Value, payload: &'a mut Value) -> Result<Vec<Field<'a>>, Error> {
    let mut fields = Vec::new();
    find_fields(schema, payload, "payload", &mut fields);
    if fields.len() > OF_CHANGE_MAX {
        let message = format!("names {} files; a change sends at most {OF_CHANGE_MAX}", fields.len());
        return Err(Error::field("payload", message));
    }
    Ok(fields)
}

fn find_fields<'a>(schema: &Value, value: &'a mut Value, name: &str, found: &mut Vec<Field<'a>>) {
    if schema.get("x-file").and_then(Value::as_bool).unwrap_or(false) {
        if value.is_string() {
            let bytes_max = schema.get("x-max-bytes").and_then(Value::as_u64);
            found.push(Field { name: name.to_owned(), place: value, bytes_max });
        }
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if let Some(schema) = schema.get("properties").and_then(|all| all.get(key)) {
                    find_fields(schema, field, &format!("{name}.{key}"), found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                let items = items.iter_mut().enumerate();
                items.for_each(|(at, item)| find_fields(schema, item, &format!("{name}.{at}"), found));
            }
        }
        _ => {}
    }
}

async fn file_of(app: &App, caller: &Caller, org: OrgId, id: &Value, name: &str) -> Result<File, Error> {
    let found = match serde_json::from_value::<FileId>(id.clone()).ok() {
        Some(id) => {
            let mut tx = app.db.single().await?;
            files::find(&mut tx, &Scope::organization(org), of_user(caller), id).await?
        }
        None => None,
    };
    let found = found.ok_or_else(|| {
        Error::field(name, "must be the id of a file of this organization; upload one with POST /files")
    })?;
    // Sending a file somewhere is as good as reading it.
    caller.require(FILE_READ)?;
    may_have(app, caller, &found).await?;
    Ok(found)
}

/// The files that stand in payloads.
pub fn given_in(specs: &[ChangeSpec]) -> Vec<GivenFile> {
    specs.iter().flat_map(|spec| GivenFile::all_in(&spec.payload)).collect()
}

/// The files that people named in a change. One that takes another back is the adapter's own, and sends none.
pub fn given_by(row: &ChangeRow) -> Vec<GivenFile> {
    if row.reverts.is_some() {
        return Vec::new();
    }
    let also = row.also.iter().map(|spec| &spec.payload);
    std::iter::once(&row.payload).chain(also).flat_map(GivenFile::all_in).collect()
}

/// The same of a change or of all changes of a set.
pub async fn given(app: &App, row: &ChangeRow) -> Result<Vec<GivenFile>, Error> {
    if !row.is_set {
        return Ok(given_by(row));
    }
    let members = changes::members(&mut app.db.single().await?, row.id).await?;
    Ok(members.iter().flat_map(given_by).collect())
}

/// Keeps the files of a change that was just staged, as long as it is pending: those that people named, and those that its
/// plan sends.
pub async fn hold(tx: &mut Tx, app: &App, row: &ChangeRow) -> Result<(), Error> {
    for (sha256, name) in needed(row) {
        let file = files::lock_by_digest(tx, row.org_id, &sha256).await?;
        if file.is_none_or(|file| file.expires_at <= app.clock.now()) {
            return Err(gone(&name, &sha256));
        }
        files::hold(tx, row.id, row.org_id, &sha256).await?;
    }
    Ok(())
}

/// Digest and name of each file that a change needs, each once and in one order: changes that lock the same files do not
/// wait for each other.
fn needed(row: &ChangeRow) -> BTreeMap<String, String> {
    let named = given_by(row).into_iter().map(|given| (given.sha256, given.name));
    let calls = row.plan.iter().flat_map(|plan| &plan.native);
    let sent = calls.flat_map(NativeCall::files).map(|sent| (sent.sha256.clone(), sent.name.clone()));
    named.chain(sent).collect()
}

/// Refuses to apply a plan whose files are gone.
pub async fn require(tx: &mut Tx, org: OrgId, plan: &Plan) -> Result<(), Error> {
    let sent = || plan.native.iter().flat_map(NativeCall::files);
    let digests = sent().map(|file| file.sha256.as_str()).collect();
    let found = files::find_by_digests(tx, org, &digests).await?;
    match sent().find(|file| !found.contains_key(&file.sha256)) {
        Some(file) => Err(gone(&file.name, &file.sha256)),
        None => Ok(()),
    }
}

fn gone(name: &str, sha256: &str) -> Error {
    let message = format!("file '{name}' (SHA-256 {sha256}) is not there any more; upload it again");
    Error::Conflict { kind: "file_gone", message }
}

/// The contents that these calls send, as far as they are there: a call whose file is missing is not sent.
pub async fn book(app: &App, org: OrgId, calls: &[NativeCall]) -> Result<FileBook, Error> {
    let digests = calls.iter().flat_map(NativeCall::files).map(|file| file.sha256.as_str()).collect();
    let found = files::find_by_digests(&mut app.db.single().await?, org, &digests).await?;
    let mut book = FileBook::default();
    for (sha256, file) in found {
        let key = key_of(app, &file)?;
        let (db, id, key, size) = (app.db.clone(), file.id, Arc::new(key), file.size_bytes);
        let open = Arc::new(move || content(db.clone(), (id, Arc::clone(&key)), size));
        let content = FileContent { size_bytes: u64::try_from(size).unwrap_or(0), open };
        book.entries.insert(sha256, content);
    }
    Ok(book)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_named_wherever_the_schema_marks_it() {
        let file = json!({ "type": "string", "x-file": true, "x-max-bytes": 10 });
        let schema = json!({ "properties": {
            "image": file, "name": { "type": "string" },
            "disks": { "items": { "properties": { "image": file } } },
        } });
        let mut payload = json!({ "name": "n", "image": "a", "disks": [{ "image": "b" }, {}], "other": "c" });
        let found = fields_of(&schema, &mut payload).unwrap();
        let mut names: Vec<&str> = found.iter().map(|field| field.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["payload.disks.0.image", "payload.image"]);
        assert!(found.iter().all(|field| field.bytes_max == Some(10)));
    }

    #[test]
    fn a_change_names_few_files() {
        let schema = json!({ "properties": { "all": { "items": { "type": "string", "x-file": true } } } });
        let mut payload = json!({ "all": vec!["a"; OF_CHANGE_MAX] });
        assert_eq!(fields_of(&schema, &mut payload).unwrap().len(), OF_CHANGE_MAX);
        let mut payload = json!({ "all": vec!["a"; OF_CHANGE_MAX + 1] });
        assert!(fields_of(&schema, &mut payload).is_err());
    }
}
