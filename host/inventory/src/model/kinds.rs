//! The kinds of the model, and their schemas.

use std::collections::HashMap;

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::Permission;
use heddle_core::declared::SubscriptionAccess;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::nearest::nearest;
use heddle_marketplace::model::{self, KINDS, ModelKind};
use heddle_store::model_objects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kinds, in the order of the model. They are few, so there are no pages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelKinds")]
pub(super) struct Kinds {
    items: Vec<Kind>,
}

/// A kind of object in words that all vendors share.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelKind")]
struct Kind {
    /// Such as `vlan`.
    id: &'static str,
    /// As people call one object, such as `VLAN`.
    title: String,
    /// Version of the kind; 0 where it may still change.
    version: u64,
    /// Objects of it that the caller sees.
    #[schemars(range(min = 0))]
    objects: i64,
    /// Installed adapters that fill it.
    vendors: Vec<String>,
    /// What its objects may say.
    fields: Vec<Field>,
}

/// A field of the objects of a kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelField")]
struct Field {
    name: String,
    /// What it says.
    description: String,
    /// Whether it moves without anything having been changed, such as a counter: then no event tells of it.
    is_measured: bool,
    /// Whether it is a secret: it can be written, and is never shown.
    is_secret: bool,
}

/// JSON Schema 2020-12 of the fields of a kind.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "ModelSchema")]
pub(super) struct KindSchema(Map<String, Value>);

#[derive(Debug, Deserialize)]
pub(super) struct OnKind {
    model_kind: String,
}

impl OnKind {
    pub(super) fn kind(&self) -> &str {
        &self.model_kind
    }
}

/// The kind of a path; else 404 that names the nearest.
///
/// # Errors
/// There is no such kind.
pub fn kind_of(id: &str) -> Result<&'static ModelKind, Error> {
    model::find(id).ok_or_else(|| {
        let hint = nearest(id, KINDS.iter().map(|kind| kind.id)).map(|near| format!("; nearest is '{near}'"));
        Error::Unknown(format!("kind of objects not found{}", hint.unwrap_or_default()))
    })
}

/// The permission that the events of a kind need; its objects need the same.
fn permission(app: &App, kind: &ModelKind) -> Option<Permission> {
    match app.declared().for_subscription(kind.event_prefix()) {
        SubscriptionAccess::Permission(permission) => Some(permission),
        _ => None,
    }
}

/// Refuses callers that may not read the events of the kind.
pub(super) fn admit(app: &App, caller: &Caller, kind: &ModelKind) -> Result<(), Error> {
    permission(app, kind).map_or(Ok(()), |permission| caller.require(permission))
}

pub(super) async fn list(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<Kinds>, Error> {
    let mut tx = app.db.single().await?;
    let counts = model_objects::counts(&mut tx, &caller.scope()).await?;
    drop(tx);
    let counts: HashMap<String, i64> = counts.into_iter().map(|count| (count.kind, count.objects)).collect();
    let adapters = app.runtime.adapters();
    let kind = |kind: &'static ModelKind| {
        let fills = |adapter: &&heddle_runtime::Adapter| {
            adapter.description().model.iter().any(|filled| filled.kind == kind.id)
        };
        let seen = counts.get(kind.id).copied().unwrap_or_default();
        Kind {
            id: kind.id,
            title: kind.title().to_owned(),
            version: kind.version(),
            objects: admit(&app, &caller, kind).map_or(0, |()| seen),
            vendors: adapters.iter().filter(fills).map(|adapter| adapter.id().to_owned()).collect(),
            fields: fields(kind),
        }
    };
    Ok(Answer(Kinds { items: KINDS.iter().map(kind).collect() }))
}

fn fields(kind: &ModelKind) -> Vec<Field> {
    let field = |(name, says): (&String, &Value)| Field {
        name: name.clone(),
        description: says["description"].as_str().unwrap_or_default().to_owned(),
        is_measured: kind.is_measured(name),
        is_secret: kind.is_secret(name),
    };
    kind.properties().map(field).collect()
}

pub(super) async fn schema(_: Caller, At(path): At<OnKind>) -> Result<Answer<KindSchema>, Error> {
    let document = kind_of(path.kind())?.document();
    Ok(Answer(KindSchema(document.as_object().cloned().unwrap_or_default())))
}
