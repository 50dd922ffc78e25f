//! What clients make, read, edit, remove and bring back: what these verbs do for every kind of object.
//!
//! Plain functions. A feature routes to those that fit and writes the others itself, of the same parts: an object is locked
//! as the client saw it, what happened to it is recorded with what differs, and the answer has its entity tag.

mod by;
mod steps;
mod verbs;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::event::NewEvent;
use heddle_core::page::Page;
use heddle_core::{OrgId, SiteId, SiteLevel};
use heddle_store::object::{Object, Revised as _};
use heddle_store::{Organization, Tx, events};
use serde::Serialize;
use serde_json::Value;

pub use self::by::By;
pub use self::steps::{KnownIds, ReadOperation, StepObject, Takes};
pub use self::verbs::Verbs;
use crate::app::{App, SharedApp};
use crate::audit::entry;
use crate::caller::Caller;
use crate::http::conditional::{IfMatch, One, Tagged};
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::{At, Params};
use crate::http::list_query::{ListQuery, Listing};

/// A kind of object, as a unit struct: its rows are a type of the store's.
///
/// Everything that has a default is what holds for most kinds; a kind says only where it differs.
pub trait Resource: Send + Sync + 'static {
    type Row: Object + Sync;
    /// The name of one object, in messages: `webhook template`.
    const NOUN: &'static str;
    /// Where they are, below the prefix: `/webhooks/templates`.
    const PATH: &'static str;
    /// The names of it, and of what is done to it, in the audit log.
    const ACTIONS: Actions;
    /// What must be unique.
    const UNIQUE: &'static [Unique<Self::Row>] = &[];
    /// As clients see it.
    type View: Serialize + Tagged + Send;

    /// Makes what clients see of a row; every verb that answers one calls it. It must hold no secret: an
    /// update records how the views before and after differ in the audit log.
    fn view(row: Self::Row, app: &App) -> Result<Self::View, Error>;

    /// What entries in the audit log say of it.
    fn detail(row: &Self::Row) -> Value;

    /// The event that tells others of it, where there is one. It is appended in the transaction of the change.
    fn event(_done: Done, _row: &Self::Row, _by: &By) -> Option<NewEvent> {
        None
    }

    /// 403 unless the caller may change objects of this kind.
    fn admit(caller: &Caller) -> Result<(), Error> {
        caller.require_all_sites()
    }

    /// The site whose level decides which callers may change it, and that level, where one does.
    fn site(_row: &Self::Row) -> Option<(SiteId, SiteLevel)> {
        None
    }

    /// The object, if the caller sees it.
    fn find(
        tx: &mut Tx,
        caller: &Caller,
        id: Id<Self>,
    ) -> impl Future<Output = Result<Option<Self::Row>, Error>> + Send {
        async move { Ok(Self::Row::find(tx, &caller.scope(), id).await?) }
    }

    /// The same as it is until the transaction ends, with what else must not change until then.
    fn lock(
        tx: &mut Tx,
        by: &By,
        id: Id<Self>,
    ) -> impl Future<Output = Result<Option<Self::Row>, Error>> + Send {
        async move { Ok(Self::Row::lock(tx, &by.caller.scope(), id).await?) }
    }

    /// 409 when something that the kind knows needs it. The [guards](crate::feature::Feature::guards) of other features are
    /// asked of every kind.
    fn may_remove(
        _row: &Self::Row,
        _tx: &mut Tx,
        _by: &By,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Ends what ends with it, and returns what the audit log says of its removal.
    fn end_with(
        row: &Self::Row,
        _tx: &mut Tx,
        _by: &By,
    ) -> impl Future<Output = Result<Value, Error>> + Send {
        std::future::ready(Ok(Self::detail(row)))
    }

    /// Locks what every change of such an object locks first, and refuses callers that may not bring this one back.
    fn before_restore(
        _tx: &mut Tx,
        _by: &By,
        _id: Id<Self>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// 409 when it cannot come back. Asked when it is back, in the transaction that brought it.
    fn may_restore(
        _row: &Self::Row,
        _tx: &mut Tx,
        _by: &By,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A field that no two objects may share.
pub struct Unique<Row> {
    /// The index that keeps it so.
    pub index: &'static str,
    /// In messages: `user name`.
    pub field: &'static str,
    pub value: fn(&Row) -> &str,
}

/// A kind of which clients read lists.
pub trait Listed: Resource {
    /// What a client can ask of the list.
    type Query: ListQuery<Row = Self::Row>;

    /// A page of the objects that the caller sees and the query asks for, and how many there are on all pages.
    fn page(
        tx: &mut Tx,
        caller: &Caller,
        query: Self::Query,
        asked: Listing<Self::Row>,
    ) -> impl Future<Output = Rows<Self::Row>> + Send;
}

/// Rows of a page, and how many there are on all pages.
pub type Rows<T> = Result<(Vec<T>, i64), Error>;

pub(crate) type Id<R> = <<R as Resource>::Row as Object>::Id;

/// What was done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    Created,
    Updated,
    Removed,
    Restored,
}

/// The names of a kind of object, and of what is done to it, in the audit log.
pub struct Actions {
    pub target: &'static str,
    pub created: &'static str,
    pub updated: &'static str,
    pub removed: &'static str,
    pub restored: &'static str,
}

impl Actions {
    /// Returns the name of what was done.
    pub fn of(&self, done: Done) -> &'static str {
        match done {
            Done::Created => self.created,
            Done::Updated => self.updated,
            Done::Removed => self.removed,
            Done::Restored => self.restored,
        }
    }
}

/// The names of a kind: its target, and what its actions begin with where that is another word.
#[macro_export]
macro_rules! actions {
    ($target:literal) => {
        $crate::actions!($target, $target)
    };
    ($target:literal, $kind:literal) => {
        $crate::resource::Actions {
            target: $target,
            created: concat!($kind, ".created"),
            updated: concat!($kind, ".updated"),
            removed: concat!($kind, ".removed"),
            restored: concat!($kind, ".restored"),
        }
    };
}
pub use actions;

/// Records what was done to an object: an entry in the audit log and, where the kind has one, an event.
async fn record<R: Resource>(
    tx: &mut Tx,
    by: &By,
    object: &R::Row,
    done: Done,
    detail: Value,
) -> Result<(), Error> {
    by.record::<R>(tx, object, R::ACTIONS.of(done), detail).await?;
    append(tx, by, R::event(done, object, by)).await
}

/// 403 unless the caller may change this one.
fn admit_to<R: Resource>(object: &R::Row, caller: &Caller) -> Result<(), Error> {
    R::site(object).map_or(Ok(()), |(site, level)| caller.require_level(site, level))
}

/// The organization that a new object belongs to: the caller's, or the one that it names and may see.
pub async fn owner(tx: &mut Tx, caller: &Caller, named: Option<OrgId>) -> Result<OrgId, Error> {
    let Some(named) = named.filter(|named| *named != caller.org_id) else { return Ok(caller.org_id) };
    let found = Organization::find(tx, &caller.scope(), named).await?;
    found.map(|found| found.id).ok_or_else(|| Error::field("organization_id", "organization not found"))
}

/// 409 that names what another object has, or else the error of the database. The values are those of the unique fields, in
/// their order.
pub fn taken<R: Resource>(error: heddle_store::Error, values: &[&str]) -> Error {
    debug_assert_eq!(R::UNIQUE.len(), values.len(), "each unique field of a {} has its value", R::NOUN);
    let fields = R::UNIQUE.iter().zip(values);
    match fields.into_iter().find(|(unique, _)| error.is_unique(unique.index)) {
        Some((unique, value)) => Error::conflict(format!(
            "{} '{value}' is taken by another {}: choose another",
            unique.field,
            R::NOUN
        )),
        None => error.into(),
    }
}

/// `GET` of a list.
pub async fn list<R: Listed>(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(mut query): Params<R::Query>,
) -> Result<Answer<Page<R::View>>, Error> {
    let asked = query.listing()?;
    let page = asked.page;
    let mut tx = app.db.read().await?;
    let (items, total) = R::page(&mut tx, &caller, query, asked).await?;
    drop(tx);
    let items: Result<Vec<R::View>, Error> = items.into_iter().map(|object| R::view(object, &app)).collect();
    Ok(Answer(page.of(items?, total)))
}

/// `GET` of one.
pub async fn get<R: Resource>(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<Id<R>>,
) -> Result<One<R::View>, Error> {
    let mut tx = app.db.single().await?;
    let found = R::find(&mut tx, &caller, id).await?;
    R::view(found.ok_or(Error::NotFound(R::NOUN))?, &app).map(One)
}

/// Records the new object, keeps the answer for the request's key, commits, and answers 201.
pub async fn created<R: Resource>(
    tx: Tx,
    by: &By,
    creation: Creation,
    object: R::Row,
    detail: Value,
) -> Result<Response, Error> {
    created_as::<R, _>(tx, by, creation, object, detail, |view| view).await
}

/// The same for an object whose answer shows more this once: a secret.
pub async fn created_as<R: Resource, V: Serialize + Tagged>(
    mut tx: Tx,
    by: &By,
    creation: Creation,
    object: R::Row,
    detail: Value,
    reveal: impl FnOnce(R::View) -> V,
) -> Result<Response, Error> {
    record::<R>(&mut tx, by, &object, Done::Created, detail).await?;
    let path = format!("{}/{}", R::PATH, object.revision().object);
    let revealed = reveal(R::view(object, &by.app)?);
    creation.finish(tx, &by.app, &path, &revealed).await
}

/// The object, which this caller may change, as the client saw it; nothing else changes it until the transaction ends.
pub async fn locked<R: Resource>(
    tx: &mut Tx,
    by: &By,
    id: Id<R>,
    if_match: &IfMatch,
) -> Result<R::Row, Error> {
    let object = R::lock(tx, by, id).await?.ok_or(Error::NotFound(R::NOUN))?;
    admit_to::<R>(&object, &by.caller)?;
    if_match.check(&object)?;
    Ok(object)
}

/// Records what differs from before, commits, and answers the object as it is now. The event of an edit that says what was
/// changed is the handler's own.
pub async fn updated<R: Resource>(
    mut tx: Tx,
    by: &By,
    (before, after): (R::Row, Option<R::Row>),
    detail: Value,
) -> Result<One<R::View>, Error> {
    let after = after.ok_or(Error::NotFound(R::NOUN))?;
    let target = by::target::<R>(&after);
    let event = R::event(Done::Updated, &after, by);
    let (shown, now) = (R::view(before, &by.app)?, R::view(after, &by.app)?);
    let detail = entry::with_difference(detail, &shown, &now);
    by.record_of(&mut tx, target, R::ACTIONS.updated, detail).await?;
    append(&mut tx, by, event).await?;
    tx.commit().await?;
    Ok(One(now))
}

async fn append(tx: &mut Tx, by: &By, event: Option<NewEvent>) -> Result<(), Error> {
    if let Some(event) = event {
        events::append(tx, &event, &by.app.clock).await?;
    }
    Ok(())
}

/// `DELETE`: hides one that nothing needs.
pub async fn remove<R: Resource>(by: By, At(id): At<Id<R>>, if_match: IfMatch) -> Result<StatusCode, Error> {
    R::admit(&by.caller)?;
    let mut tx = by.app.db.write().await?;
    let object = locked::<R>(&mut tx, &by, id, &if_match).await?;
    R::may_remove(&object, &mut tx, &by).await?;
    by.app.require_unused(&mut tx, R::NOUN, object.organization(), object.revision().object).await?;
    if !R::Row::remove(&mut tx, &by.caller.scope(), id, by.app.clock.now()).await? {
        return Err(Error::NotFound(R::NOUN));
    }
    let detail = R::end_with(&object, &mut tx, &by).await?;
    record::<R>(&mut tx, &by, &object, Done::Removed, detail).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST …/restore`: brings a removed one back.
pub async fn restore<R: Resource>(by: By, At(id): At<Id<R>>) -> Result<One<R::View>, Error> {
    R::admit(&by.caller)?;
    let mut tx = by.app.db.write().await?;
    R::before_restore(&mut tx, &by, id).await?;
    let object = match R::Row::restore(&mut tx, &by.caller.scope(), id, by.app.clock.now()).await {
        Ok(restored) => restored.ok_or(Error::NotFound(R::NOUN))?,
        Err(error) => {
            drop(tx);
            return Err(taken_since::<R>(&by, id, error).await?);
        }
    };
    admit_to::<R>(&object, &by.caller)?;
    R::may_restore(&object, &mut tx, &by).await?;
    record::<R>(&mut tx, &by, &object, Done::Restored, R::detail(&object)).await?;
    tx.commit().await?;
    R::view(object, &by.app).map(One)
}

/// The error where what must be unique was taken while the object was removed, or else the error of the database.
async fn taken_since<R: Resource>(by: &By, id: Id<R>, error: heddle_store::Error) -> Result<Error, Error> {
    let Some(unique) = R::UNIQUE.iter().find(|unique| error.is_unique(unique.index)) else {
        return Ok(error.into());
    };
    // On PostgreSQL a transaction that failed refuses every further statement.
    let mut tx = by.app.db.single().await?;
    let removed = R::Row::find_removed(&mut tx, &by.caller.scope(), id).await?;
    let removed = removed.ok_or(Error::NotFound(R::NOUN))?;
    admit_to::<R>(&removed, &by.caller)?;
    Ok(Error::conflict(format!(
        "{} '{}' of the removed {noun} is taken by another {noun}: it comes back when that one has another or is removed",
        unique.field,
        (unique.value)(&removed),
        noun = R::NOUN
    )))
}
