//! Makes sets of changes: of one controller, or a saga over several. Everything is planned before anything is written.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::response::Response;
use chrono::TimeDelta;
use futures::future::join_all;
use heddle_changes::Cause;
use heddle_changes::parts::{self, Gathered};
use heddle_changes::seam::Ready;
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_store::sagas::{self, NewPart, NewSaga};
use heddle_store::{ChangeRow, Tx};

use crate::declarations::SET_STAGED;
use crate::one;
use crate::order::{Placed, ordered};
use crate::record::{Actor, record};
use crate::saga::{Saga, load};
use crate::view::{self, AnySet};

/// How many changes a set may have.
pub(crate) const MEMBERS: std::ops::RangeInclusive<usize> = 2..=50;

/// A set that was made, in an open transaction.
enum Formed {
    OfOne(Box<(Tx, ChangeRow)>),
    OfSeveral(Box<(Tx, Saga)>),
}

/// Makes a set of pending changes and plans it. Changes of one controller keep their order.
async fn form(app: &App, caller: &Caller, cause: Cause<'_>, ids: &[ChangeId]) -> Result<Formed, Error> {
    if !MEMBERS.contains(&ids.len()) {
        return Err(Error::field("change_ids", "a set has from 2 to 50 changes"));
    }
    let members = parts::eligible(app, caller, ids).await?;
    let groups = grouped(members)?;
    if groups.len() == 1 {
        let members = groups.into_iter().flatten().collect();
        let formed = one::form(app, caller, cause, members).await?;
        return Ok(Formed::OfOne(Box::new(formed)));
    }
    Ok(Formed::OfSeveral(Box::new(form_of((app, caller, cause), groups).await?)))
}

/// Makes a set for a client.
pub(crate) async fn create(by: &By, creation: Creation, ids: &[ChangeId]) -> Result<Response, Error> {
    let (tx, id, view) = match form(&by.app, &by.caller, Cause::Request(&by.origin), ids).await? {
        Formed::OfOne(formed) => {
            let (mut tx, row) = *formed;
            let (id, view) = (row.id, one::shown_in(&mut tx, row).await?);
            (tx, id, AnySet::OfOne(Box::new(view)))
        }
        Formed::OfSeveral(formed) => {
            let (mut tx, saga) = *formed;
            let (id, view) = (saga.row.id, view::shown_in(&mut tx, saga).await?);
            (tx, id, AnySet::OfSeveral(Box::new(view)))
        }
    };
    creation.finish(tx, &by.app, &format!("/gateway-vpn/changes/sets/{id}"), &view).await
}

/// Makes a set for a rule of a room above, of one controller or over several; returns its id. It is found at
/// `/gateway-vpn/changes/sets/{id}`, whichever it is.
///
/// # Errors
/// As for a request of a client.
pub async fn make(app: &App, caller: &Caller, cause: Cause<'_>, ids: &[ChangeId]) -> Result<ChangeId, Error> {
    let (tx, id) = match form(app, caller, cause, ids).await? {
        Formed::OfOne(formed) => (formed.0, formed.1.id),
        Formed::OfSeveral(formed) => (formed.0, formed.1.row.id),
    };
    tx.commit().await?;
    Ok(id)
}

/// Writes the changes that take back the parts of a saga, and makes another saga of them, in an open transaction. `places` are
/// those of the parts.
pub(crate) async fn inverse(
    by: &By,
    prepared: Vec<Ready>,
    places: &BTreeSet<(OrgId, SiteId, ControllerId)>,
    reverts: ChangeId,
) -> Result<(Tx, Saga), Error> {
    let By { app, caller, origin } = by;
    let hops = heddle_topology::distances(app, places).await?;
    let mut tx = app.db.write().await?;
    let mut staged = Vec::with_capacity(prepared.len());
    for ready in prepared {
        staged.push(ready.write(app, caller, &mut tx).await?);
    }
    let rows: Vec<ChangeRow> = staged.iter().map(|staged| staged.row.clone()).collect();
    let saga = join((&mut tx, app, caller), &rows, &hops, Some(reverts)).await?;
    for staged in &staged {
        staged.record(&mut tx, app).await?;
    }
    record_created(&mut tx, app, &saga, &Actor::of(caller, Cause::Request(origin))).await?;
    Ok((tx, saga))
}

/// Returns the changes of each controller, in the order of the controllers' ids.
fn grouped(members: Vec<ChangeRow>) -> Result<Vec<Vec<ChangeRow>>, Error> {
    let mut groups: BTreeMap<ControllerId, Vec<ChangeRow>> = BTreeMap::new();
    let org = members.first().map(|member| member.org_id);
    for member in members {
        if org != Some(member.org_id) {
            return Err(Error::field("change_ids", "the changes of a set are all of one organization"));
        }
        let group = groups.entry(member.controller_id).or_default();
        if group.first().is_some_and(|first| first.site_ref != member.site_ref) {
            let message = "the changes of a set at one controller are all of one site of the controller";
            return Err(Error::field("change_ids", message));
        }
        group.push(member);
    }
    Ok(groups.into_values().collect())
}

/// The service, the caller, and what a set is made for.
type Behalf<'a> = (&'a App, &'a Caller, Cause<'a>);

/// What was planned for one controller, and not written yet.
enum Planned {
    /// A change alone is planned again as it is.
    Alone(Box<ChangeRow>),
    Together(Box<Gathered>),
}

async fn plan_group((app, caller, cause): Behalf<'_>, mut group: Vec<ChangeRow>) -> Result<Planned, Error> {
    match group.pop() {
        Some(only) if group.is_empty() => {
            let row = Box::pin(parts::plan_again(app, caller, cause, only)).await?;
            Ok(Planned::Alone(Box::new(row)))
        }
        Some(last) => {
            group.push(last);
            let gathered = parts::gather(app, caller, cause, group).await?;
            Ok(Planned::Together(Box::new(gathered)))
        }
        None => Err(Error::internal("a group has changes")),
    }
}

async fn form_of(on_behalf: Behalf<'_>, groups: Vec<Vec<ChangeRow>>) -> Result<(Tx, Saga), Error> {
    let (app, caller, cause) = on_behalf;
    let places = places_of(groups.iter().flatten());
    let hops = heddle_topology::distances(app, &places).await?;
    let planned = join_all(groups.into_iter().map(|group| plan_group(on_behalf, group))).await;
    let planned: Vec<Planned> = planned.into_iter().collect::<Result<_, _>>()?;
    let mut tx = app.db.write().await?;
    let mut rows = Vec::with_capacity(planned.len());
    for planned in planned {
        rows.push(match planned {
            Planned::Alone(row) => *row,
            Planned::Together(gathered) => gathered.insert(&mut tx, app, caller).await?,
        });
    }
    let saga = join((&mut tx, app, caller), &rows, &hops, None).await?;
    record_created(&mut tx, app, &saga, &Actor::of(caller, cause)).await?;
    Ok((tx, saga))
}

/// Makes a saga of these parts, and records nothing yet.
async fn join(
    (tx, app, caller): (&mut Tx, &App, &Caller),
    rows: &[ChangeRow],
    hops: &HashMap<ControllerId, u32>,
    reverts: Option<ChangeId>,
) -> Result<Saga, Error> {
    let (id, now): (ChangeId, _) = (app.clock.new_id(), app.clock.now());
    let new = NewSaga {
        id,
        org_id: rows[0].org_id,
        created_by: caller.user_id,
        expires_at: rows.iter().map(|row| row.expires_at).min().unwrap_or(now + TimeDelta::hours(1)),
        reverts,
        now,
    };
    let row = sagas::insert(tx, &new, &order_of(rows, hops)).await?;
    let read: Vec<_> = rows.iter().map(|row| (row.id, row.updated_at)).collect();
    if !sagas::join(tx, id, &read, now).await? {
        return Err(parts::moved_on());
    }
    for row in rows.iter().filter(|row| row.is_set) {
        sagas::join_members(tx, id, row.id).await?;
    }
    load(tx, row).await
}

async fn record_created(tx: &mut Tx, app: &App, saga: &Saga, actor: &Actor) -> Result<(), Error> {
    record(tx, app, saga, ("change_set.created", Some(SET_STAGED)), actor).await
}

/// Where changes are for. How far that is from the service is asked before a transaction is open: the graph of a site may have to
/// be made for it.
pub(crate) fn places_of<'r>(
    rows: impl Iterator<Item = &'r ChangeRow>,
) -> BTreeSet<(OrgId, SiteId, ControllerId)> {
    rows.map(|row| (row.org_id, row.site_id, row.controller_id)).collect()
}

/// Returns the parts in the order in which they are applied.
pub(crate) fn order_of(rows: &[ChangeRow], hops: &HashMap<ControllerId, u32>) -> Vec<NewPart> {
    let placed = rows.iter().map(|row| Placed {
        part: NewPart {
            change_id: row.id,
            controller_id: row.controller_id,
            hops: hops.get(&row.controller_id).copied(),
        },
        can_be_taken_back: parts::is_compensable(row),
    });
    ordered(placed.collect())
}
