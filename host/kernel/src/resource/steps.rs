//! Kinds of object in the steps of Connections, rules and schedules: how a step names one, and by which operations it reads.
//!
//! A kind declares it as data. What a step is, and when it runs, is not known here.

use std::collections::HashSet;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::page::PageRequest;
use heddle_core::{OrgId, Permission};
use heddle_store::{Tx, known};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Id, Listed, Resource};
use crate::app::App;
use crate::caller::Caller;
use crate::http::error::Error;
use crate::http::list_query::Listing;
use crate::schema::schema_of;

/// Objects of a list where the parameters do not say how many, and at most.
const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 200;

/// A kind of object as steps know it.
pub struct StepObject {
    /// The parameter that holds the id of one, in whichever operation: `site_id`.
    pub parameter: &'static str,
    /// The name of one object, in messages.
    pub noun: &'static str,
    pub known: KnownIds,
    /// The operations that read such objects.
    pub reads: &'static [ReadOperation],
}

/// Returns which of the ids are of objects that the organization has and that are not removed.
pub type KnownIds =
    for<'a> fn(&'a mut Tx, OrgId, &'a [Uuid]) -> BoxFuture<'a, heddle_store::Result<HashSet<Uuid>>>;

impl StepObject {
    /// Describes a kind that steps can name and do not read. Struct update syntax adds operations that read.
    pub const fn named<R: Resource>(parameter: &'static str) -> Self {
        Self {
            parameter,
            noun: R::NOUN,
            known: |tx, org, ids| known::known::<R::Row>(tx, org, ids).boxed(),
            reads: &[],
        }
    }
}

/// An operation that reads objects of a kind. It shows what the author of the step may see.
pub struct ReadOperation {
    /// `sites.list`.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// What the author of the step must hold.
    pub permission: Permission,
    asks: Asks,
    /// JSON Schema of one object.
    view: fn() -> Value,
}

/// What the operation is asked for.
enum Asks {
    /// The first objects that fit the filters.
    List(&'static [(&'static str, Takes)], ReadList),
    /// The object of an id.
    One(ReadOne),
}

type ReadList = for<'a> fn(&'a App, &'a Caller, Value) -> BoxFuture<'a, Result<Value, Error>>;
type ReadOne = for<'a> fn(&'a App, &'a Caller, Uuid) -> BoxFuture<'a, Result<Value, Error>>;

/// What a filter of a list takes.
pub enum Takes {
    /// The id of an object.
    Id,
    Text,
    /// One of the words in the array that this returns.
    WordOf(fn() -> Value),
}

impl Takes {
    /// JSON Schema of the value.
    fn schema(&self) -> Value {
        match self {
            Self::Id => json!({ "type": "string", "format": "uuid" }),
            Self::Text => json!({ "type": "string", "maxLength": 200 }),
            Self::WordOf(words) => json!({ "type": "string", "enum": words() }),
        }
    }
}

impl ReadOperation {
    /// Describes the operation that lists a kind. Each filter is a field of the query of its list.
    pub const fn list<R: Listed>(
        id: &'static str,
        title: &'static str,
        permission: Permission,
        filters: &'static [(&'static str, Takes)],
    ) -> Self
    where
        R::View: JsonSchema,
    {
        Self { id, title, permission, asks: Asks::List(filters, list::<R>), view: schema_of::<R::View> }
    }

    /// Describes the operation that reads one object of a kind by its id.
    pub const fn one<R: Resource>(id: &'static str, title: &'static str, permission: Permission) -> Self
    where
        R::View: JsonSchema,
        Id<R>: From<Uuid>,
    {
        Self { id, title, permission, asks: Asks::One(one::<R>), view: schema_of::<R::View> }
    }

    /// JSON Schema of the parameters.
    pub fn params_schema(&self, of: &StepObject) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        match &self.asks {
            Asks::List(filters, _) => {
                for (name, takes) in *filters {
                    properties.insert((*name).to_owned(), takes.schema());
                }
                let limit = json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX });
                properties.insert("limit".to_owned(), limit);
            }
            Asks::One(_) => {
                properties.insert(of.parameter.to_owned(), Takes::Id.schema());
                required.push(of.parameter);
            }
        }
        json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        })
    }

    /// JSON Schema of what [`Self::read`] returns.
    pub fn output_schema(&self) -> Value {
        let one = (self.view)();
        match self.asks {
            Asks::List(..) => json!({
                "type": "object",
                "properties": {
                    "items": { "type": "array", "items": one },
                    "total": { "type": "integer", "minimum": 0, "description": "How many there are in all" },
                },
                "required": ["items", "total"],
                "additionalProperties": false,
            }),
            Asks::One(_) => one,
        }
    }

    /// Reads what the parameters ask for and the caller may see. The parameters fit their schema.
    ///
    /// # Errors
    /// 404 where there is no such object; 400 for a value that the schema allows and that is not valid.
    pub async fn read(
        &self,
        of: &StepObject,
        app: &App,
        caller: &Caller,
        mut params: Value,
    ) -> Result<Value, Error> {
        match &self.asks {
            Asks::List(_, read) => read(app, caller, params).await,
            Asks::One(read) => read(app, caller, parsed(taken(&mut params, of.parameter))?).await,
        }
    }
}

fn list<'a, R: Listed>(
    app: &'a App,
    caller: &'a Caller,
    mut params: Value,
) -> BoxFuture<'a, Result<Value, Error>> {
    async move {
        let search: Option<String> = parsed(taken(&mut params, "search"))?;
        let limit: Option<u32> = parsed(taken(&mut params, "limit"))?;
        let page = PageRequest { page: 1, per_page: limit.unwrap_or(LIMIT_DEFAULT) };
        let asked = Listing { page, search, order: page.into() };
        let query: R::Query = parsed(params)?;
        let mut tx = app.db.read().await?;
        let (rows, total) = R::page(&mut tx, caller, query, asked).await?;
        drop(tx);
        let items: Result<Vec<R::View>, Error> = rows.into_iter().map(|row| R::view(row, app)).collect();
        let items = serde_json::to_value(items?).map_err(Error::internal)?;
        Ok(json!({ "items": items, "total": total }))
    }
    .boxed()
}

fn one<'a, R: Resource>(app: &'a App, caller: &'a Caller, id: Uuid) -> BoxFuture<'a, Result<Value, Error>>
where
    Id<R>: From<Uuid>,
{
    async move {
        let mut tx = app.db.read().await?;
        let found = R::find(&mut tx, caller, id.into()).await?;
        drop(tx);
        let view = R::view(found.ok_or(Error::NotFound(R::NOUN))?, app)?;
        serde_json::to_value(view).map_err(Error::internal)
    }
    .boxed()
}

/// Takes a parameter out of all; null where it is absent.
fn taken(params: &mut Value, name: &str) -> Value {
    params.as_object_mut().and_then(|params| params.shift_remove(name)).unwrap_or_default()
}

fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| Error::BadRequest { kind: "bad_request", message: error.to_string() })
}
