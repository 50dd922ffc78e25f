//! Purposes that follow the events for good: what starts Connections, what fills webhooks.
//!
//! What follows from an event is written in the transaction that moves the purpose's place on, so a crash leaves
//! neither an event without what follows from it nor what follows from it twice. Every process runs every purpose;
//! they wait for each other per organization.

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

/// An event from which nothing follows moves the place in memory only; it is written at least every so many.
const UNWRITTEN_MAX: i64 = 500;
/// Looks although nothing was published.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between the beginnings of two looks, where the first left nothing to take: while many events are
/// published, one look takes several. The first event after a pause is taken without delay.
const LOOK_INTERVAL: Duration = Duration::from_millis(25);
/// Every so many looks all sequences are compared, for clocks that are far apart.
const FULL_LOOK: u32 = 20;

/// An event of a type that this version does not know is left to a newer process for so long: what follows from it is
/// not this one's to say. Where there is none, after a downgrade, it is passed over then.
const NEWER_WAIT: TimeDelta = TimeDelta::minutes(5);

/// Follows the events for a purpose.
///
/// After a crash `wants` may see events again from which nothing followed: what is set up since an event must say so
/// by a number of its own, and not be moved by it.
pub(crate) trait Consumer: Send + Sync + 'static {
    /// Of the purpose; never changed once released.
    const NAME: &'static str;
    /// Events of one read of one organization.
    const BATCH: u32 = 500;

    /// Whether events of an organization wait for now, because what followed before is still to be done. Reads only.
    fn is_held_up(
        &self,
        _app: &SharedApp,
        _tx: &mut Tx,
        _org: OrgId,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(false))
    }

    /// Whether anything follows from these events of one organization. Reads only.
    fn wants(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Writes what follows from them, as far as one transaction should hold. Nothing else is written in it but the
    /// place.
    fn take(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> impl Future<Output = Result<Took, Error>> + Send;

    /// What `take` wrote is committed.
    fn taken(&self, app: &SharedApp);

    /// It was seen which events there are.
    fn looked(&self, _app: &SharedApp) {}

    /// Ends when what was left for later may be taken.
    fn called(&self, _app: &SharedApp) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// How far what follows from a stretch of events was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Took {
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

/// Where a purpose stands.
#[derive(Debug, Default)]
struct Places {
    /// Everything up to here was looked at by this process, or by another.
    seen: HashMap<OrgId, i64>,
    written: HashMap<OrgId, i64>,
    /// Where something is left, however old its newest event is.
    left: BTreeSet<OrgId>,
    looks: u32,
}

/// Follows the events until the service stops.
pub(crate) async fn consume<C: Consumer>(app: SharedApp, consumer: C) {
    let stop = app.tasks.stopping();
    let mut published = app.hub.published();
    let mut places: Option<Places> = None;
    loop {
        let began = Instant::now();
        let looked = look(&app, &consumer, &mut places).await;
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

/// Looks at what is new once; whether there may be more.
async fn look<C: Consumer>(
    app: &SharedApp,
    consumer: &C,
    places: &mut Option<Places>,
) -> Result<bool, Error> {
    let places = if let Some(places) = places {
        places
    } else {
        let mut tx = app.db.single().await?;
        let written = event_consumers::positions(&mut tx, C::NAME).await?;
        places.insert(Places { seen: written.clone(), written, ..Places::default() })
    };
    let is_full_look = places.looks.is_multiple_of(FULL_LOOK);
    places.looks = places.looks.wrapping_add(1);
    let since = (!is_full_look).then(|| app.clock.now() - RECENT);
    let mut tx = app.db.single().await?;
    let heads = events::heads(&mut tx, since).await?;
    drop(tx);
    let is_new = |(org, head): &(OrgId, i64)| *head > places.seen.get(org).copied().unwrap_or_default();
    let mut orgs: BTreeSet<OrgId> = heads.into_iter().filter(is_new).map(|(org, _)| org).collect();
    orgs.extend(&places.left);
    let (mut has_more, mut failed) = (false, None);
    for org in orgs {
        let followed = follow(app, consumer, places, org).await;
        if matches!(followed, Ok(Followed::All)) {
            places.left.remove(&org);
        } else {
            places.left.insert(org);
        }
        match followed {
            Ok(followed) => has_more |= followed == Followed::More,
            // What one organization cannot do holds no other up.
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

/// One stretch of one organization.
async fn follow<C: Consumer>(
    app: &SharedApp,
    consumer: &C,
    places: &mut Places,
    org: OrgId,
) -> Result<Followed, Error> {
    let seen = places.seen.get(&org).copied().unwrap_or_default();
    let mut tx = app.db.read().await?;
    if consumer.is_held_up(app, &mut tx, org).await? {
        return Ok(Followed::Left);
    }
    let mut is_left = false;
    let mut stretch = events::list(&mut tx, &app.declared.events, org, seen, None, C::BATCH).await?;
    if let Some((seq, at)) = stretch.unknown
        && app.clock.now() - at < NEWER_WAIT
    {
        stretch.events.retain(|stored| stored.event.seq < seq);
        (stretch.last_seq, stretch.is_full) = (seq - 1, false);
        is_left = true;
    }
    let is_wanted = !stretch.events.is_empty() && consumer.wants(app, &mut tx, org, &stretch.events).await?;
    drop(tx);
    let written = places.written.get(&org).copied().unwrap_or_default();
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
        places.written.insert(org, reached.max(last));
        if is_wanted {
            consumer.taken(app);
        }
    }
    places.seen.insert(org, last);
    Ok(match is_left {
        _ if stretch.is_full || last < stretch.last_seq => Followed::More,
        true => Followed::Left,
        false => Followed::All,
    })
}
