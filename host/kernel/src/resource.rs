//! What clients make, read, edit, remove and bring back: what these verbs do for every kind of object.
//!
//! Plain functions. A feature routes to those that fit and writes the others itself, of the same parts: an object is locked
//! as the client saw it, what happened to it is recorded with what differs, and the answer has its entity tag.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::page::{Page, PageRequest};
use heddle_core::{OrgId, SiteId, SiteLevel};
use heddle_store::object::Object;
use heddle_store::{Organization, Tx};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, SharedApp};
use crate::audit::entry::{self, NewEntry};
use crate::caller::Caller;
use crate::http::conditional::{IfMatch, One, Tagged};
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::{At, Origin};

/// A kind of object, as a unit struct: its rows are a type of the store's.
pub trait Resource: Send + 'static {
    type Row: Object;
    /// The name of one object, in messages: `webhook template`.
    const NOUN: &'static str;
    /// Where they are, below the prefix: `/webhooks/templates`.
    const PATH: &'static str;
    /// The names of it, and of what is done to it, in the audit log.
    const ACTIONS: Actions;
    /// What must be unique: the index that keeps it so, and the field.
    const UNIQUE: Option<(&'static str, &'static str)> = None;
    /// Whether only a caller of all sites may change objects of this kind.
    const NEEDS_ALL_SITES: bool = true;
    /// As clients see it.
    type View: Serialize + Tagged + Send;

    /// Makes what clients see of a row; every verb that answers one calls it. It must hold no secret: an
    /// update records how the views before and after differ in the audit log.
    fn view(row: Self::Row, app: &App) -> Result<Self::View, Error>;

    /// The organization that has it, and its id.
    fn identity(row: &Self::Row) -> (OrgId, Uuid);

    /// What entries in the audit log say of it.
    fn detail(row: &Self::Row) -> Value;

    /// What the entry of its restore says.
    fn restore_detail(_row: &Self::Row) -> Value {
        json!({})
    }

    /// The site whose level decides which callers may change it, where a level does.
    fn site(_row: &Self::Row) -> Option<SiteId> {
        None
    }

    /// 409 when something needs it.
    fn may_remove(
        _row: &Self::Row,
        _tx: &mut Tx,
        _app: &App,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// 409 when it cannot come back.
    fn may_restore(
        _row: &Self::Row,
        _tx: &mut Tx,
        _app: &App,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }
}

type Id<R> = <<R as Resource>::Row as Object>::Id;

/// The names of a kind of object, and of what is done to it, in the audit log.
pub struct Actions {
    pub target: &'static str,
    pub created: &'static str,
    pub updated: &'static str,
    pub removed: &'static str,
    pub restored: &'static str,
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

/// The caller of a request, and where it came from.
#[derive(Clone, Copy)]
pub struct By<'r> {
    app: &'r SharedApp,
    caller: &'r Caller,
    origin: &'r Origin,
}

impl<'r> By<'r> {
    /// Brings together what the audit entries of a request need. It checks nothing and stores nothing.
    pub fn of(app: &'r SharedApp, caller: &'r Caller, origin: &'r Origin) -> Self {
        Self { app, caller, origin }
    }

    /// Writes an entry in the audit log, in the transaction of what it says.
    pub async fn record<R: Resource>(
        self,
        tx: &mut Tx,
        object: &R::Row,
        action: &'static str,
        detail: Value,
    ) -> Result<(), Error> {
        self.record_of::<R>(tx, R::identity(object), action, detail).await
    }

    async fn record_of<R: Resource>(
        self,
        tx: &mut Tx,
        (org, id): (OrgId, Uuid),
        action: &'static str,
        detail: Value,
    ) -> Result<(), Error> {
        let actor = self.caller.actor();
        let entry = NewEntry { org, actor, action, target: (R::ACTIONS.target, id), detail };
        entry::record(tx, self.app, self.origin, entry).await
    }
}

/// 403 unless the caller may change objects of this kind.
pub fn admit<R: Resource>(caller: &Caller) -> Result<(), Error> {
    if R::NEEDS_ALL_SITES { caller.require_all_sites() } else { Ok(()) }
}

/// 403 unless the caller may change this one.
fn admit_to<R: Resource>(object: &R::Row, caller: &Caller) -> Result<(), Error> {
    R::site(object).map_or(Ok(()), |site| caller.require_level(site, SiteLevel::Admin))
}

/// The organization that a new object belongs to: the caller's, or the one that it names and may see.
pub async fn owner(tx: &mut Tx, caller: &Caller, named: Option<OrgId>) -> Result<OrgId, Error> {
    let Some(named) = named.filter(|named| *named != caller.org_id) else { return Ok(caller.org_id) };
    let found = Organization::find(tx, &caller.scope(), named).await?;
    found.map(|found| found.id).ok_or_else(|| Error::field("organization_id", "organization not found"))
}

/// A page of a list.
pub fn listed<R: Resource>(
    app: &App,
    page: PageRequest,
    (items, total): (Vec<R::Row>, i64),
) -> Result<Answer<Page<R::View>>, Error> {
    let items: Result<Vec<R::View>, Error> = items.into_iter().map(|object| R::view(object, app)).collect();
    Ok(Answer(page.of(items?, total)))
}

/// `GET` of one.
pub async fn get<R: Resource>(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<Id<R>>,
) -> Result<One<R::View>, Error> {
    let mut tx = app.db.single().await?;
    let found = R::Row::find(&mut tx, &caller.scope(), id).await?;
    R::view(found.ok_or(Error::NotFound(R::NOUN))?, &app).map(One)
}

/// Records the new object, keeps the answer for the request's key, commits, and answers 201.
pub async fn created<R: Resource>(
    mut tx: Tx,
    by: By<'_>,
    creation: Creation,
    object: R::Row,
    detail: Value,
) -> Result<Response, Error> {
    by.record::<R>(&mut tx, &object, R::ACTIONS.created, detail).await?;
    let path = format!("{}/{}", R::PATH, R::identity(&object).1);
    creation.finish(tx, by.app, &path, &R::view(object, by.app)?).await
}

/// The object, which this caller may change, as the client saw it; nothing else changes it until the transaction ends.
pub async fn locked<R: Resource>(
    tx: &mut Tx,
    caller: &Caller,
    id: Id<R>,
    if_match: &IfMatch,
) -> Result<R::Row, Error> {
    let object = R::Row::lock(tx, &caller.scope(), id).await?.ok_or(Error::NotFound(R::NOUN))?;
    admit_to::<R>(&object, caller)?;
    if_match.check(&object)?;
    Ok(object)
}

/// Records what differs from before, commits, and answers the object as it is now.
pub async fn updated<R: Resource>(
    mut tx: Tx,
    by: By<'_>,
    (before, after): (R::Row, Option<R::Row>),
    detail: Value,
) -> Result<One<R::View>, Error> {
    let after = after.ok_or(Error::NotFound(R::NOUN))?;
    let identity = R::identity(&after);
    let (shown, now) = (R::view(before, by.app)?, R::view(after, by.app)?);
    let detail = entry::with_difference(detail, &shown, &now);
    by.record_of::<R>(&mut tx, identity, R::ACTIONS.updated, detail).await?;
    tx.commit().await?;
    Ok(One(now))
}

/// `DELETE`: hides one that nothing needs.
pub async fn remove<R: Resource>(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<Id<R>>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    admit::<R>(&caller)?;
    let by = By::of(&app, &caller, &origin);
    let mut tx = app.db.write().await?;
    let object = locked::<R>(&mut tx, &caller, id, &if_match).await?;
    R::may_remove(&object, &mut tx, &app).await?;
    if !R::Row::remove(&mut tx, &caller.scope(), id, app.clock.now()).await? {
        return Err(Error::NotFound(R::NOUN));
    }
    by.record::<R>(&mut tx, &object, R::ACTIONS.removed, R::detail(&object)).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST …/restore`: brings a removed one back.
pub async fn restore<R: Resource>(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<Id<R>>,
) -> Result<One<R::View>, Error> {
    admit::<R>(&caller)?;
    let by = By::of(&app, &caller, &origin);
    let mut tx = app.db.write().await?;
    let restored = R::Row::restore(&mut tx, &caller.scope(), id, app.clock.now()).await;
    let object = restored.map_err(taken_since::<R>)?.ok_or(Error::NotFound(R::NOUN))?;
    admit_to::<R>(&object, &caller)?;
    R::may_restore(&object, &mut tx, &app).await?;
    by.record::<R>(&mut tx, &object, R::ACTIONS.restored, R::restore_detail(&object)).await?;
    tx.commit().await?;
    R::view(object, &app).map(One)
}

fn taken_since<R: Resource>(error: heddle_store::Error) -> Error {
    match R::UNIQUE {
        Some((index, field)) if error.is_unique(index) => Error::conflict(format!(
            "{field} of the removed {} was taken by another one; change that one's {field} first",
            R::NOUN
        )),
        _ => error.into(),
    }
}
