//! Durable consumers of the events: one starts Connections, one fills webhooks.
//!
//! The effects of an event are written in the transaction that advances the consumer's position. So after a crash no
//! effect is missing, and none is there twice. Every process runs every consumer; they wait for each other per
//! organization.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::OrgId;
use heddle_store::events::{self, StoredEvent};
use heddle_store::{Tx, event_consumers};
use tokio::time::Instant;

use super::RECENT;
use crate::app::SharedApp;
use crate::http::error::Error;

/// An event without effects advances the position in memory only; it is written at least every so many events.
const UNWRITTEN_MAX: i64 = 500;
/// Time to the next look if nothing was published.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between the beginnings of two looks, where the first left nothing to take: while many events are
/// published, one look takes several. The first event after a pause is taken without delay.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// One in so many looks compares all sequences, in case clocks are far apart.
const FULL_LOOK: u32 = 20;

/// How long an event of a type that this version does not know is left to a newer process, which knows its effects. If
/// there is none, after a downgrade, the event is skipped then.
const NEWER_WAIT: TimeDelta = TimeDelta::minutes(5);

/// A consumer of the events.
///
/// After a crash `wants` may see events without effects again. So an object that was set up after an event must store
/// a number of its own that shows this, and the event must have no effect on it.
pub trait Consumer: Send + Sync + 'static {
    /// Name of the consumer; never changed once released.
    const NAME: &'static str;
    /// Events of one read of one organization.
    const BATCH: u32 = 500;

    /// Whether events of an organization wait for now, because earlier effects are still to be done. Reads only.
    fn is_held_up(
        &self,
        _app: &SharedApp,
        _tx: &mut Tx,
        _org: OrgId,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(false))
    }

    /// Whether these events of one organization have effects. Reads only.
    fn wants(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Writes their effects, as far as one transaction should hold. The transaction writes nothing else but the
    /// position.
    fn take(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> impl Future<Output = Result<Took, Error>> + Send;

    /// Called when what `take` wrote is committed.
    fn taken(&self, app: &SharedApp);

    /// Called after each successful look at the events.
    fn looked(&self, _app: &SharedApp) {}

    /// Ends when what was left for later may be taken.
    fn called(&self, _app: &SharedApp) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// How far the effects of a stretch of events were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    All,
    /// Up to this number, of which at least one is new; the rest comes next.
    UpTo(i64),
}

/// How far one organization was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    All,
    /// There is more to take at once.
    More,
    /// There is more, for later.
    Left,
}

/// The positions of a consumer.
#[derive(Debug, Default)]
struct Positions {
    /// Everything up to here was looked at by this process, or by another.
    seen: HashMap<OrgId, i64>,
    written: HashMap<OrgId, i64>,
    /// Organizations where something is left, however old their newest event is.
    left: BTreeSet<OrgId>,
    looks: u32,
}

/// Follows the events until the service stops.
pub async fn consume<C: Consumer>(app: SharedApp, consumer: C) {
    let stop = app.tasks.stopping();
    let mut published = app.hub.published();
    let mut positions: Option<Positions> = None;
    loop {
        let began = Instant::now();
        let looked = look(&app, &consumer, &mut positions).await;
        if looked.is_ok() {
            consumer.looked(&app);
        }
        match looked {
            Ok(true) => {
                if stop.is_cancelled() {
                    return;
                }
                continue;
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(error = %error, consumer = C::NAME, "events cannot be followed; tried again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = published.changed() => if changed.is_err() { return },
            () = consumer.called(&app) => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep_until(began + LOOK_INTERVAL) => {}
        }
    }
}

/// Looks at new events once. Returns whether there may be more.
async fn look<C: Consumer>(
    app: &SharedApp,
    consumer: &C,
    positions: &mut Option<Positions>,
) -> Result<bool, Error> {
    let positions = if let Some(positions) = positions {
        positions
    } else {
        let mut tx = app.db.single().await?;
        let written = event_consumers::positions(&mut tx, C::NAME).await?;
        positions.insert(Positions { seen: written.clone(), written, ..Positions::default() })
    };
    let is_full_look = positions.looks.is_multiple_of(FULL_LOOK);
    positions.looks = positions.looks.wrapping_add(1);
    let since = (!is_full_look).then(|| app.clock.now() - RECENT);
    let mut tx = app.db.single().await?;
    let heads = events::heads(&mut tx, since).await?;
    drop(tx);
    let is_new = |(org, head): &(OrgId, i64)| *head > positions.seen.get(org).copied().unwrap_or_default();
    let mut orgs: BTreeSet<OrgId> = heads.into_iter().filter(is_new).map(|(org, _)| org).collect();
    orgs.extend(&positions.left);
    let (mut has_more, mut failed) = (false, None);
    for org in orgs {
        let followed = follow(app, consumer, positions, org).await;
        if matches!(followed, Ok(Followed::All)) {
            positions.left.remove(&org);
        } else {
            positions.left.insert(org);
        }
        match followed {
            Ok(followed) => has_more |= followed == Followed::More,
            // A failure in one organization does not hold up the others.
            Err(error) => failed = Some((org, error)),
        }
    }
    match failed {
        Some((org, error)) if !has_more => {
            tracing::warn!(organization.id = %org, consumer = C::NAME, "stuck in organization {org}");
            Err(error)
        }
        _ => Ok(has_more),
    }
}

/// Follows one stretch of events of one organization.
async fn follow<C: Consumer>(
    app: &SharedApp,
    consumer: &C,
    positions: &mut Positions,
    org: OrgId,
) -> Result<Followed, Error> {
    let seen = positions.seen.get(&org).copied().unwrap_or_default();
    let mut tx = app.db.read().await?;
    if consumer.is_held_up(app, &mut tx, org).await? {
        return Ok(Followed::Left);
    }
    let mut is_left = false;
    let mut stretch = events::list(&mut tx, &app.declared().events, org, seen, None, C::BATCH).await?;
    if let Some((seq, at)) = stretch.unknown
        && app.clock.now() - at < NEWER_WAIT
    {
        stretch.events.retain(|stored| stored.event.seq < seq);
        (stretch.last_seq, stretch.is_full) = (seq - 1, false);
        is_left = true;
    }
    let is_wanted = !stretch.events.is_empty() && consumer.wants(app, &mut tx, org, &stretch.events).await?;
    drop(tx);
    let written = positions.written.get(&org).copied().unwrap_or_default();
    let mut last = stretch.last_seq;
    if is_wanted || stretch.last_seq - written >= UNWRITTEN_MAX {
        let mut tx = app.db.write().await?;
        let reached = event_consumers::hold(&mut tx, C::NAME, org).await?;
        let new: Vec<StoredEvent> =
            stretch.events.into_iter().filter(|stored| stored.event.seq > reached).collect();
        if is_wanted && !new.is_empty() {
            match consumer.take(app, &mut tx, org, &new).await? {
                Took::All => {}
                Took::UpTo(seq) => last = seq,
            }
        }
        event_consumers::advance(&mut tx, C::NAME, org, last).await?;
        tx.commit().await?;
        positions.written.insert(org, reached.max(last));
        if is_wanted {
            consumer.taken(app);
        }
    }
    positions.seen.insert(org, last);
    Ok(match is_left {
        _ if stretch.is_full || last < stretch.last_seq => Followed::More,
        true => Followed::Left,
        false => Followed::All,
    })
}
