//! Notices inside the service: every addressee sees them, and marks them as read separately.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::notification::Audience;
use heddle_core::page::{Cursor, CursorPage};
use heddle_core::{OrgId, Role};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::{Access, Unscoped};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::walk_query;
use heddle_store::Tx;
use heddle_store::notices::{self, NewNotice, Notice, NoticeId, Reader};
use schemars::JsonSchema;
use serde::Serialize;

use super::message::{BODY_CHARS_MAX, Message, SUBJECT_CHARS_MAX};

walk_query! {
    struct ListQuery of Notice {
        /// True: only notices that the caller has not read. False: only those that they have read.
        unread: Option<bool>,
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UnreadNotices")]
struct Unread {
    unread: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReadNotices")]
struct Read {
    /// How many were unread before.
    read: u64,
}

pub(super) fn routes() -> Routes {
    let mine = Access::Authenticated(Unscoped("notices are written to a person"));
    Routes::default()
        .get(
            "/notifications",
            mine,
            list,
            doc("The caller's notices, the newest first")
                .query::<ListQuery>()
                .answers::<CursorPage<Notice>>(200),
        )
        .get(
            "/notifications/unread",
            mine,
            unread,
            doc("How many are not read").named("count_unread_notifications").answers::<Unread>(200),
        )
        .post(
            "/notifications/read-all",
            mine,
            read_all,
            doc("All are read").named("mark_all_notifications_read").answers::<Read>(200),
        )
        .post(
            "/notifications/{notice_id}/read",
            mine,
            read,
            doc("One is read; again changes nothing").named("mark_notification_read").answers::<Notice>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<CursorPage<Notice>>, Error> {
    let request = query.walk()?;
    let mut tx = app.db.read().await?;
    let is_read = query.unread.map(|unread| !unread);
    let walked = notices::walk(&mut tx, reader(&caller), is_read, request).await?;
    let cursor = |notice: &Notice| Cursor { occurred_at: notice.created_at, seq: 0, id: notice.id.0 };
    Ok(Answer(request.of(walked, cursor)))
}

async fn unread(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<Unread>, Error> {
    let mut tx = app.db.read().await?;
    Ok(Answer(Unread { unread: notices::count_unread(&mut tx, reader(&caller)).await? }))
}

async fn read(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<NoticeId>,
) -> Result<Answer<Notice>, Error> {
    let mut tx = app.db.write().await?;
    let notice = notices::read(&mut tx, reader(&caller), id, app.clock.now()).await?;
    tx.commit().await?;
    notice.map(Answer).ok_or(Error::NotFound("notice"))
}

async fn read_all(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<Read>, Error> {
    let mut tx = app.db.write().await?;
    let read = notices::read_all(&mut tx, reader(&caller), app.clock.now()).await?;
    tx.commit().await?;
    Ok(Answer(Read { read }))
}

fn reader(caller: &Caller) -> Reader {
    // Scopes name no role, so a caller with scopes does not read notices for administrators.
    let role = if caller.scopes.is_some() { Role::Guest } else { caller.role };
    Reader { org: caller.org_id, user: caller.user_id, role }
}

/// Notifies the administrators of an organization, in the transaction of the cause.
///
/// With an origin, the same message is sent only once.
pub async fn tell_administrators(
    tx: &mut Tx,
    app: &App,
    org: OrgId,
    message: &Message,
    origin: Option<String>,
) -> Result<NoticeId, Error> {
    let new = NewNotice {
        id: app.clock.new_id(),
        org_id: org,
        audience: Audience::Administrators,
        user_id: None,
        severity: message.severity,
        subject: bounded(&message.subject, SUBJECT_CHARS_MAX),
        body: bounded(&message.body, BODY_CHARS_MAX),
        source: message.source.to_owned(),
        origin,
        now: app.clock.now(),
    };
    Ok(notices::insert(tx, &new).await?)
}

/// Returns the text as both databases can store it.
fn bounded(text: &str, chars_max: usize) -> String {
    text.chars().filter(|letter| *letter != '\0').take(chars_max).collect()
}
