//! What sets do with their parts. A part is a change, or the row of a set of one controller. Which changes form a set, and in
//! which order parts are applied, is for the room of the sets.

use heddle_core::change::{ApplyStep, ChangeSpec, ChangeStatus, Danger, Stage};
use heddle_core::file::GivenFile;
use heddle_core::{ChangeId, Timestamp, UserId};
use heddle_files::named;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_kernel::resource::By;
use heddle_runtime::{Adapter, SecretBook};
use heddle_store::changes::{self, ChangeRow, NewChange, Planned, Window};
use heddle_store::{ControllerTarget, Set, Tx};
use serde_json::Value;

use super::apply::{self, ApplyRequest, Begins, under_way};
use super::cause::Cause;
use super::drive::{self, Start};
use super::drivers::{DriverClaim, Drivers};
pub use super::gates::platform_is_writable;
use super::outcome::{self, Actor, Step};
use super::place::{Place, caller_may_write, place_is_the_same, used_place_of};
use super::plan::{self, Asked, asked_of, secrets_of, specs_of, ttl};
use super::{expressed, gates, new_key, set, settle, window};

/// Returns the changes in the given order, when the caller may move each of them and each can join a set.
pub async fn eligible(app: &App, caller: &Caller, ids: &[ChangeId]) -> Result<Vec<ChangeRow>, Error> {
    let mut found = {
        let mut tx = app.db.read().await?;
        changes::find_many(&mut tx, &caller.scope(), ids).await?
    };
    let mut members = Vec::with_capacity(ids.len());
    for (at, id) in ids.iter().enumerate() {
        if ids[..at].contains(id) {
            return Err(Error::field("change_ids", format!("change {id} is named twice")));
        }
        let place = found.iter().position(|row| row.id == *id && !row.is_set);
        let row = found.swap_remove(place.ok_or(Error::NotFound("change"))?);
        gates::change_is_permitted(caller, &row)?;
        gates::change_is_pending(row.status)?;
        gates::change_is_its_own(&row)?;
        gates::change_has_not_expired(&row, app.clock.now())?;
        gates::outcome_is_settled(&row)?;
        if row.apply_step != ApplyStep::Idle {
            return Err(under_way(&row));
        }
        members.push(new_key::current(app, row).await?);
    }
    Ok(members)
}

/// Changes of one site of one controller that were planned together.
pub struct Gathered {
    place: Place,
    members: Vec<ChangeRow>,
    specs: Vec<ChangeSpec>,
    id: ChangeId,
    planned: Planned,
}

/// Plans changes of one site of one controller together.
pub async fn gather(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    members: Vec<ChangeRow>,
) -> Result<Gathered, Error> {
    let place = used_place_of(app, caller, &members[0]).await?;
    let adapter = app.adapter(&place.controller.vendor)?;
    let mut secrets = SecretBook::default();
    for member in &members {
        secrets.entries.extend(secrets_of(app, member)?.entries);
    }
    members.iter().try_for_each(|member| is_expressed(&adapter, member))?;
    let specs: Vec<ChangeSpec> = members.iter().flat_map(specs_of).collect();
    let given: Vec<GivenFile> = members.iter().flat_map(named::given_by).collect();
    let meant: Vec<ChangeSpec> = members.iter().flat_map(asked_of).collect();
    let asked = Asked { place: &place, specs: &specs, given: &given, meant: &meant };
    let planned = plan::ask(app, &adapter, &cause.request_id(), asked, &secrets).await?;
    let worst = members.iter().map(|member| member.danger).max().unwrap_or(Danger::Normal);
    let danger = expressed::permitted(caller, &adapter, &planned, worst)?;
    let id: ChangeId = app.clock.new_id();
    let planned = plan::record_of(app, id, planned, danger);
    Ok(Gathered { place, members, specs, id, planned })
}

/// Refuses a change in the words of the model of which it is not known what it is in the vendor's own: what the device says
/// of the set could not be told apart by its members.
fn is_expressed(adapter: &Adapter, member: &ChangeRow) -> Result<(), Error> {
    if member.expressed_as.is_some() || !expressed::is_in_model(adapter, &specs_of(member)) {
        return Ok(());
    }
    Err(Error::Conflict {
        kind: "not_planned",
        message: format!(
            "the controller could not be read when change {} was planned; plan it again first",
            member.id
        ),
    })
}

impl Gathered {
    /// Writes the set of these changes, and has them join it.
    pub async fn insert(self, tx: &mut Tx, app: &App, caller: &Caller) -> Result<ChangeRow, Error> {
        let Self { place, members, specs, id, planned } = self;
        let controller = &place.controller;
        let now = app.clock.now();
        let settings = place_is_the_same(tx, &place).await?;
        let first_to_expire = members.iter().map(|member| member.expires_at).min();
        let mut also = specs.into_iter();
        let own = also.next().ok_or_else(|| Error::internal("a set has members"))?;
        let new = NewChange {
            id,
            org_id: controller.org_id,
            site_id: place.site_id,
            site_ref: place.site_ref.clone(),
            controller_id: controller.id,
            vendor: controller.vendor.clone(),
            area: members[0].area.clone(),
            feature: own.feature,
            operation: own.operation,
            payload: own.payload,
            also: also.collect(),
            notes: None,
            staged_by: caller.user_id,
            expires_at: first_to_expire.unwrap_or(now + ttl(app, &settings)),
            planned,
            now,
            reverts: None,
            run: None,
            is_set: true,
        };
        let row = changes::insert(tx, &new).await?;
        let read: Vec<_> = members.iter().map(|member| (member.id, member.updated_at)).collect();
        if !changes::join(tx, id, &read, now).await? {
            return Err(moved_on());
        }
        Ok(row)
    }
}

/// The refusal where a change was written since it was read.
pub fn moved_on() -> Error {
    Error::conflict("a change was moved on meanwhile; read them again")
}

/// Records in the audit log what was done to a set of one controller.
pub async fn record(
    tx: &mut Tx,
    app: &App,
    row: &ChangeRow,
    action: &'static str,
    (caller, cause): (&Caller, Cause<'_>),
) -> Result<(), Error> {
    outcome::record(tx, app, row, &Step::new(action, cause.actor(caller))).await
}

/// Dissolves a set of one controller that is pending and not being applied: its members become separate changes again.
pub async fn dissolve(by: &By, row: ChangeRow) -> Result<ChangeRow, Error> {
    let By { app, caller, origin } = by;
    gates::change_is_permitted(caller, &row)?;
    let mut tx = app.db.write().await?;
    let row = apply::get(&mut tx, row.id).await?;
    caller_may_write(&mut tx, caller, &row).await?;
    gates::change_is_its_own(&row)?;
    let row = dissolve_in(&mut tx, app, row).await?;
    record(&mut tx, app, &row, "change_set.dissolved", (caller, Cause::Request(origin))).await?;
    tx.commit().await?;
    Ok(row)
}

/// [`dissolve`] in an open transaction, also of a part of a set over several controllers.
pub async fn dissolve_in(tx: &mut Tx, app: &App, row: ChangeRow) -> Result<ChangeRow, Error> {
    gates::change_is_pending(row.status)?;
    gates::outcome_is_settled(&row)?;
    let now = app.clock.now();
    // The set first, as an apply does, then its members: so the two do not wait for each other.
    changes::lock(tx, row.id).await?;
    changes::free_members(tx, &row, None, now).await?;
    let discarded = changes::discard_part(tx, row.id, row.saga_id, Some("set dissolved"), now).await?;
    discarded.ok_or_else(|| under_way(&row))
}

/// Plans a part again. Its set is pending, and nothing of it is being applied.
pub async fn plan_again(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    row: ChangeRow,
) -> Result<ChangeRow, Error> {
    plan::plan_pending(app, caller, cause, row).await
}

/// Checks what every request needs that continues a part: its permissions, the level at its present site, and site admin for
/// what is catastrophic.
pub async fn may_be_moved_on(tx: &mut Tx, caller: &Caller, row: &ChangeRow) -> Result<(), Error> {
    gates::change_is_permitted(caller, row)?;
    gates::catastrophe_needs_site_admin(caller, row.danger)?;
    caller_may_write(tx, caller, row).await
}

/// Checks all gates of an apply but those of the release, which the device is asked for; returns the controller.
pub async fn may_be_applied(
    app: &App,
    caller: &Caller,
    tx: &mut Tx,
    row: &ChangeRow,
    request: &ApplyRequest,
) -> Result<ControllerTarget, Error> {
    let row = as_its_own(row.clone());
    Ok(apply::may_be_applied(app, caller, tx, &row, request).await?.controller)
}

/// The part as a change that belongs to no set, for what its set has decided on.
pub fn as_its_own(row: ChangeRow) -> ChangeRow {
    ChangeRow { saga_id: None, ..row }
}

fn has(row: &ChangeRow, stage: Stage) -> bool {
    row.plan.as_ref().is_some_and(|plan| plan.native.iter().any(|call| call.stage == stage))
}

/// Whether the plan sends nothing, or has a way back that a person has reviewed and that works once the part is permanent.
pub fn is_compensable(row: &ChangeRow) -> bool {
    !has(row, Stage::Apply) || has(row, Stage::Restore)
}

/// Whether the part can be taken back as it stands: before it is permanent, the device may drop it.
pub fn can_be_taken_back(row: &ChangeRow) -> bool {
    is_compensable(row) || (has(row, Stage::Undo) && row.status != ChangeStatus::Applied)
}

/// The right of this process's task to drive a part, before the transaction that moves the part is open.
pub struct Ready {
    driver: DriverClaim,
    term: Term,
}

/// Returns the right to drive a part; `None` while another task drives it.
pub async fn ready(app: &SharedApp, row: &ChangeRow) -> Result<Option<Ready>, Error> {
    let term = app.membership.term()?;
    drive::prepare(app, row).await?;
    Ok(Drivers::of(app).claim(row.id).map(|driver| Ready { driver, term }))
}

/// A part that was moved on. It is driven once the transaction is committed.
pub struct Moved {
    pub row: ChangeRow,
    ready: Ready,
    start: Start,
    /// Another process may hold the session of the device.
    is_taken: bool,
}

impl Moved {
    /// Drives the part in the background.
    pub fn drive(self, app: &SharedApp) {
        let Self { row, ready: Ready { driver, term }, start, is_taken } = self;
        if is_taken {
            // The state that the device holds belongs to the session of the process that wrote it.
            app.runtime.forget_write_session(row.controller_id);
        }
        drop(drive::spawn_claimed(app, driver, term, start));
    }
}

/// The user for whom a set moves its parts.
#[derive(Debug, Clone)]
pub struct Starter {
    pub user: UserId,
    /// The API key or app that acted for them.
    pub via: Option<Value>,
}

impl Starter {
    fn actor(&self) -> Actor {
        Actor { user: Some(self.user), via: self.via.clone(), ..Actor::service() }
    }
}

/// Begins the apply of a part. Checks again what may have changed since the apply of its set began.
pub async fn begin(
    tx: &mut Tx,
    app: &SharedApp,
    ready: Ready,
    starter: &Starter,
    window: Window,
) -> Result<Moved, Error> {
    let row = changes::hold(tx, ready.driver.change).await?.ok_or(Error::NotFound("change"))?;
    let plan_hash = apply::plan_to_send(app, tx, &row).await?.hash.clone();
    let begins = Begins {
        actor: starter.actor(),
        started_by: starter.user,
        via: starter.via.clone(),
        window,
        owner: ready.term.id,
    };
    let row = apply::begin(tx, app, &row, plan_hash, begins).await?;
    Ok(Moved { row, ready, start: Start::Fresh, is_taken: false })
}

/// Reads a part that waits for its confirmation over a new connection: only a state that can be read is confirmed. Returns
/// what to store of it.
pub async fn read_held(app: &SharedApp, row: &ChangeRow) -> Result<Set<Value>, Error> {
    app.runtime.reconnect(row.controller_id);
    let (adapter, call) = drive::prepare(app, row).await?;
    let token = row.plan_token.as_deref().unwrap_or_default();
    let found = adapter.compare(&call, &specs_of(row), token).await?;
    Ok(settle::seen(row, &found))
}

/// Confirms a part that waits for its confirmation and was read; `None` when it no longer waits.
pub async fn confirm(
    tx: &mut Tx,
    app: &SharedApp,
    ready: Ready,
    row: &ChangeRow,
    (seen, starter): (&Set<Value>, &Starter),
) -> Result<Option<Moved>, Error> {
    let now = app.clock.now();
    let taken = changes::take_held(tx, row.id, ready.term.id, seen, now).await?;
    let Some(taken) = taken else { return Ok(None) };
    set::follow(tx, &taken, now).await?;
    outcome::record(tx, app, &taken, &Step::new("change.confirmed", starter.actor())).await?;
    let is_taken = row.apply_owner != Some(ready.term.id);
    Ok(Some(Moved { row: taken, ready, start: Start::Again, is_taken }))
}

/// Begins to take back a part; `None` when it has been taken back already, or another change holds its controller.
pub async fn take_back(
    tx: &mut Tx,
    app: &SharedApp,
    ready: Ready,
    row: &ChangeRow,
    (reason, starter): (&str, &Starter),
) -> Result<Option<Moved>, Error> {
    let now = app.clock.now();
    let taken = window::begin_back(tx, row, ready.term.id, reason, now).await?;
    let Some((taken, start)) = taken else { return Ok(None) };
    set::follow(tx, &taken, now).await?;
    let step = Step::new("change.take_back_started", starter.actor()).message(reason);
    outcome::record(tx, app, &taken, &step).await?;
    let is_taken = row.apply_owner != Some(ready.term.id);
    Ok(Some(Moved { row: taken, ready, start, is_taken }))
}

/// Moves the end of the window of a part; false when it waits no more.
pub async fn extend(tx: &mut Tx, app: &App, row: &ChangeRow, to: Timestamp) -> Result<bool, Error> {
    let Some(from) = row.confirm_deadline else { return Ok(false) };
    let mut told = row.clone();
    told.confirm_deadline = Some(to);
    let (message, now) = (drive::held_message(&told), app.clock.now());
    let Some(row) = changes::extend_window(tx, row.id, from, to, &message, now).await? else {
        return Ok(false);
    };
    set::follow(tx, &row, now).await?;
    Ok(true)
}

/// Discards a part with its set. What is in effect stays as it is; with `force`, an apply that gets no answer is given up.
pub async fn discard(
    tx: &mut Tx,
    app: &App,
    row: ChangeRow,
    by: Option<&By>,
    force: bool,
) -> Result<(), Error> {
    if row.status != ChangeStatus::Pending {
        return Ok(());
    }
    let mut row = row;
    if force && row.apply_step != ApplyStep::Idle {
        let message = "given up while the device gave no answer";
        let given_up = changes::give_up_unknown(tx, &row, message, app.clock.now()).await?;
        row = given_up.ok_or_else(|| under_way(&row))?;
    }
    let actor = by.map_or_else(Actor::service, |by| Actor::caller(&by.caller, &by.origin));
    settle::discard_in(tx, app, row, actor).await.map(drop)
}

/// Compares the device of a part with its plan, and settles an outcome that was in doubt.
pub async fn verify(by: &By, row: ChangeRow) -> Result<(), Error> {
    settle::verify(&by.app, &by.caller, &by.origin, as_its_own(row)).await.map(drop)
}
