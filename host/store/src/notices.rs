//! Notifications inside the service, and which users have read them. A notice is never changed; it is deleted after a
//! while.

use heddle_core::notification::{Audience, Severity};
use heddle_core::page::{WalkRequest, Walked};
use heddle_core::{OrgId, Role, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};
use crate::sort::{Key, Sorted};

heddle_core::ids! {
    /// A notification inside the service.
    pub NoticeId,
}

/// A notice as one user sees it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct Notice {
    pub id: NoticeId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub audience: Audience,
    pub severity: Severity,
    pub subject: String,
    pub body: String,
    /// What wrote it: `fabric.notify`, `connection`.
    pub source: String,
    pub created_at: Timestamp,
    /// When the caller read it; null while they have not.
    pub read_at: Option<Timestamp>,
}

impl Sorted for Notice {
    const KEYS: &'static [Key] = &[Key::of("created_at", "n.created_at")];
    const DEFAULT: &'static str = "-created_at";
    const LAST: &'static [&'static str] = &["n.id"];
}

/// A row of `notice` about to be written. Without an `origin` it is always a notice of its own.
#[derive(Debug, Clone)]
pub struct NewNotice {
    pub id: NoticeId,
    pub org_id: OrgId,
    pub audience: Audience,
    /// With [`Audience::User`].
    pub user_id: Option<UserId>,
    pub severity: Severity,
    pub subject: String,
    pub body: String,
    pub source: String,
    /// Within the organization; the same again is the same notice.
    pub origin: Option<String>,
    pub now: Timestamp,
}

/// The user who reads their notices.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    pub org: OrgId,
    pub user: UserId,
    pub role: Role,
}

const SELECT: &str =
    "SELECT n.id, n.org_id, n.audience, n.severity, n.subject, n.body, n.source, n.created_at,
    r.read_at";

/// Writes a notice, unless its origin has written it before; answers which one is there.
pub async fn insert(tx: &mut Tx, new: &NewNotice) -> Result<NoticeId> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        INSERT INTO notice (id, org_id, audience, user_id, severity, subject, body, source, origin, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (org_id, origin) DO UPDATE SET origin = excluded.origin
        RETURNING id")
        .bind(new.id).bind(new.org_id).bind(new.audience).bind(new.user_id).bind(new.severity)
        .bind(&new.subject).bind(&new.body).bind(&new.source).bind(new.origin.as_ref()).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

/// A reader's notices, the newest first.
pub async fn walk(
    tx: &mut Tx,
    reader: Reader,
    is_read: Option<bool>,
    request: WalkRequest,
) -> Result<Walked<Notice>> {
    let select = match is_read {
        Some(true) => of(reader).and("r.read_at IS NOT NULL"),
        Some(false) => of(reader).and("r.read_at IS NULL"),
        None => of(reader),
    };
    select.walk::<_, Notice>(tx, request).await
}

/// Counts the notices that [`walk`] shows to the reader and that the reader has not read.
pub async fn count_unread(tx: &mut Tx, reader: Reader) -> Result<i64> {
    of(reader).and("r.read_at IS NULL").count(tx).await
}

/// Marks a notice of the reader as read, if it is not; `None` when it is not theirs.
pub async fn read(tx: &mut Tx, reader: Reader, id: NoticeId, now: Timestamp) -> Result<Option<Notice>> {
    let found: Option<Notice> = of(reader).and_bind("n.id = ?", Bind::Id(id.0)).one(tx).await?;
    if found.as_ref().is_none_or(|notice| notice.read_at.is_some()) {
        return Ok(found);
    }
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO notice_read (notice_id, user_id, read_at) VALUES ($1, $2, $3)
        ON CONFLICT (notice_id, user_id) DO NOTHING"
        )
        .bind(id)
        .bind(reader.user)
        .bind(now)
    );
    of(reader).and_bind("n.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Marks all notices of the reader as read; tells how many were not.
pub async fn read_all(tx: &mut Tx, reader: Reader, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO notice_read (notice_id, user_id, read_at)
        SELECT n.id, $2, $3 FROM notice n
        WHERE n.org_id = $1
            AND (n.user_id = $2 OR n.audience = 'organization' OR ($4 AND n.audience = 'administrators'))
        ON CONFLICT (notice_id, user_id) DO NOTHING"
        )
        .bind(reader.org)
        .bind(reader.user)
        .bind(now)
        .bind(reader.role.is_at_least(Role::OrgAdmin))
    ))
}

/// Forgets notices from before this time, the oldest first, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM notice WHERE id IN (
            SELECT id FROM notice WHERE created_at < $1 ORDER BY created_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

fn of(reader: Reader) -> Select {
    let joined = "FROM notice n LEFT JOIN notice_read r ON r.notice_id = n.id AND r.user_id = ?";
    let select = Select::with_bind(SELECT, joined, Bind::Id(reader.user.0))
        .and_bind("n.org_id = ?", Bind::Id(reader.org.0));
    if reader.role.is_at_least(Role::OrgAdmin) {
        select.and_bind(
            "(n.user_id = ? OR n.audience IN ('organization', 'administrators'))",
            Bind::Id(reader.user.0),
        )
    } else {
        select.and_bind("(n.user_id = ? OR n.audience = 'organization')", Bind::Id(reader.user.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, first, on_both};

    fn new(world: &World, audience: Audience, subject: &str) -> NewNotice {
        // Two at the same microsecond have no order.
        world.clock.advance(chrono::TimeDelta::microseconds(1));
        NewNotice {
            id: world.clock.new_id(),
            org_id: world.org,
            audience,
            user_id: (audience == Audience::User).then_some(world.user),
            severity: Severity::Warning,
            subject: subject.to_owned(),
            body: "b".to_owned(),
            source: "test".to_owned(),
            origin: None,
            now: world.clock.now(),
        }
    }

    async fn subjects(tx: &mut Tx, reader: Reader, is_read: Option<bool>) -> Vec<String> {
        let walked = walk(tx, reader, is_read, first(10)).await.unwrap();
        walked.items.into_iter().map(|notice| notice.subject).collect()
    }

    on_both! {
        async fn everybody_sees_their_own_and_reads_for_themselves(db) {
            let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
            let mut tx = db.write().await.unwrap();
            let other = a.clock.new_id();
            crate::users::insert(&mut tx, &a.new_user(other, "bob")).await.unwrap();
            let admin = Reader { org: a.org, user: a.user, role: Role::OrgAdmin };
            let viewer = Reader { org: a.org, user: other, role: Role::Viewer };
            let (to_user, to_admins, to_all) = (
                new(&a, Audience::User, "user"),
                new(&a, Audience::Administrators, "admins"),
                new(&a, Audience::Organization, "all"),
            );
            for notice in [&to_user, &to_admins, &to_all, &new(&b, Audience::Organization, "foreign")] {
                insert(&mut tx, notice).await.unwrap();
            }
            assert_eq!(subjects(&mut tx, admin, None).await, ["all", "admins", "user"]);
            assert_eq!(subjects(&mut tx, viewer, None).await, ["all"]);
            let now = a.clock.now();
            assert!(read(&mut tx, viewer, to_admins.id, now).await.unwrap().is_none());
            let seen = read(&mut tx, admin, to_all.id, now).await.unwrap().unwrap();
            let later = now + chrono::TimeDelta::seconds(5);
            assert_eq!(read(&mut tx, admin, to_all.id, later).await.unwrap().unwrap(), seen, "the first time counts");
            assert_eq!(subjects(&mut tx, admin, Some(false)).await, ["admins", "user"]);
            assert_eq!(subjects(&mut tx, admin, Some(true)).await, ["all"]);
            assert_eq!(count_unread(&mut tx, viewer).await.unwrap(), 1, "another's reading is not one's own");
            assert_eq!(read_all(&mut tx, admin, later).await.unwrap(), 2);
            assert_eq!(read_all(&mut tx, admin, later).await.unwrap(), 0);
            assert_eq!(count_unread(&mut tx, admin).await.unwrap(), 0);
        }

        async fn the_same_origin_writes_once_and_old_notices_go(db) {
            let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
            let mut tx = db.write().await.unwrap();
            let keyed = |world: &World| NewNotice { origin: Some("step".to_owned()), ..new(world, Audience::Organization, "s") };
            let (one, same, other) = (keyed(&a), keyed(&a), keyed(&b));
            assert_eq!(insert(&mut tx, &one).await.unwrap(), one.id);
            assert_eq!(insert(&mut tx, &same).await.unwrap(), one.id);
            assert_eq!(insert(&mut tx, &other).await.unwrap(), other.id);
            insert(&mut tx, &new(&a, Audience::Organization, "unnamed")).await.unwrap();
            insert(&mut tx, &new(&a, Audience::Organization, "unnamed")).await.unwrap();
            let reader = Reader { org: a.org, user: a.user, role: Role::Viewer };
            let walked = walk(&mut tx, reader, None, first(2)).await.unwrap();
            assert_eq!((walked.total, walked.has_more), (3, true));
            let last = &walked.items[1];
            let cursor = heddle_core::page::Cursor { occurred_at: last.created_at, seq: 0, id: last.id.0 };
            let behind = WalkRequest { per_page: 2, place: heddle_core::page::Place::Behind(cursor), is_ascending: false };
            let rest = walk(&mut tx, reader, None, behind).await.unwrap();
            assert_eq!((rest.items.len(), rest.has_more), (1, false));
            read(&mut tx, reader, one.id, a.clock.now()).await.unwrap();
            assert_eq!(trim(&mut tx, one.now, 10).await.unwrap(), 0);
            let later = a.clock.now() + chrono::TimeDelta::seconds(1);
            assert_eq!(trim(&mut tx, later, 10).await.unwrap(), 4);
            assert_eq!(count_unread(&mut tx, reader).await.unwrap(), 0);
        }
    }
}
