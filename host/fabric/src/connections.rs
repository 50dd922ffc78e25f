//! Connections, and rules, which are the same under another path: list, write, pause, remove, restore.

use axum::response::Response;
use heddle_core::condition::Conditions;
use heddle_core::operation::{ConnectionKind, ConnectionState};
use heddle_core::page::Page;
use heddle_core::shape::Shape;
use heddle_core::{ConnectionId, OrgId, Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};
use heddle_kernel::events::patterns::PATTERN_CHARS_MAX;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{Actions, By, actions, owner};
use heddle_store::connections::{self, CONNECTIONS_MAX, ConnectionRow, OF_PATTERN_MAX};
use heddle_store::{Tx, events};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declared;
use super::kinds::{self, Connections, Kind, ListQuery, READ, Rules, WRITE};
use super::operations::Operations;
use super::provided::require_offered;
use super::steps::{self, STEPS_MAX, Step};

/// Longest pause between two firings: a day.
pub(super) const COOLDOWN_SECS_MAX: i64 = 86_400;
const COOLDOWN_KEY_CHARS_MAX: usize = 200;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Connection")]
pub(crate) struct View {
    id: ConnectionId,
    organization_id: OrgId,
    name: String,
    description: Option<String>,
    /// A type of events, or a pattern such as `device.*`.
    source_event: String,
    conditions: Conditions,
    steps: Vec<Step>,
    /// Seconds in which it does not fire again.
    cooldown: i64,
    /// Firings with different values of this key have separate pauses.
    cooldown_key: Option<String>,
    state: ConnectionState,
    /// Why it is broken.
    state_reason: Option<String>,
    /// The user who last edited the steps; they run with this user's rights.
    author_id: UserId,
    /// Counts edits.
    revision: i64,
    last_fired_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

heddle_store::revised!(View);

impl View {
    fn of(app: &App, caller: &Caller, row: ConnectionRow) -> Result<Self, Error> {
        let steps = steps::views(app, caller, &row)?;
        Ok(Self {
            id: row.id,
            organization_id: row.org_id,
            name: row.name,
            description: row.description,
            source_event: row.source_event,
            conditions: row.conditions,
            steps,
            cooldown: row.cooldown_secs,
            cooldown_key: row.cooldown_key,
            state: row.state,
            state_reason: row.state_reason,
            author_id: row.author_id,
            revision: row.revision,
            last_fired_at: row.last_fired_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

heddle_core::words! {
    /// The states that users can set; a Connection becomes broken by itself.
    pub enum WantedState {
        Draft = "draft",
        Enabled = "enabled",
        Paused = "paused",
    }
}

impl From<WantedState> for ConnectionState {
    fn from(wanted: WantedState) -> Self {
        match wanted {
            WantedState::Draft => ConnectionState::Draft,
            WantedState::Enabled => ConnectionState::Enabled,
            WantedState::Paused => ConnectionState::Paused,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewConnection")]
pub(crate) struct NewBody {
    /// Made from the event when absent.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// Up to 2000 characters.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// A type of events, or a pattern such as `device.*`.
    #[schemars(length(min = 1, max = PATTERN_CHARS_MAX))]
    source_event: String,
    #[serde(default)]
    conditions: Conditions,
    #[schemars(length(min = 1, max = STEPS_MAX))]
    steps: Vec<Step>,
    /// Seconds in which it does not fire again.
    #[serde(default)]
    #[schemars(range(min = 0, max = COOLDOWN_SECS_MAX))]
    cooldown: i64,
    /// Makes the pause count separately for each value of this, such as `{{trigger.device_id}}`: of events with the
    /// same value only the first one within the pause fires. Up to 200 characters, with references to the event.
    #[schemars(length(min = 1, max = COOLDOWN_KEY_CHARS_MAX))]
    cooldown_key: Option<String>,
    /// `enabled` when absent.
    state: Option<WantedState>,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

impl NewBody {
    /// What can be said of it without its event and its operations.
    pub(crate) fn checked(&self, app: &App) -> Result<(), Error> {
        let mut checks = Checks::default();
        if let Some(name) = &self.name {
            checks.name("name", name);
        }
        checks.description(self.description.as_deref());
        check_fields(&mut checks, app, None, Some(&self.conditions), Some(self.cooldown));
        check_key_length(&mut checks, self.cooldown_key.as_deref());
        checks.done()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ConnectionUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = DESCRIPTION_CHARS_MAX), extend("x-nullable" = true))]
    description: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = PATTERN_CHARS_MAX))]
    source_event: Option<String>,
    #[serde(default, deserialize_with = "given")]
    conditions: Option<Conditions>,
    /// All of them; the user who sends them is their author from then on.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = STEPS_MAX))]
    steps: Option<Vec<Step>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(range(min = 0, max = COOLDOWN_SECS_MAX))]
    cooldown: Option<i64>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = COOLDOWN_KEY_CHARS_MAX), extend("x-nullable" = true))]
    cooldown_key: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    state: Option<WantedState>,
}

impl Kind for Connections {
    const KIND: ConnectionKind = ConnectionKind::Connection;
    const PATH: &'static str = "/fabric/connections";
    const ONE: &'static str = "/fabric/connections/{connection_id}";
    const ACTIONS: Actions = actions!("connection");
    const TESTED: &'static str = "connection.tested";
    type View = View;

    fn view(row: ConnectionRow, app: &App, caller: &Caller) -> Result<View, Error> {
        View::of(app, caller, row)
    }
}

impl Kind for Rules {
    const KIND: ConnectionKind = ConnectionKind::Rule;
    const PATH: &'static str = "/automation/rules";
    const ONE: &'static str = "/automation/rules/{rule_id}";
    const ACTIONS: Actions = actions!("rule");
    const TESTED: &'static str = "rule.tested";
    type View = View;

    fn view(row: ConnectionRow, app: &App, caller: &Caller) -> Result<View, Error> {
        View::of(app, caller, row)
    }
}

/// The routes of one of the kinds that events start.
pub(super) fn routes<K: Kind<View = View>>() -> Routes {
    Routes::default()
        .get(
            K::PATH,
            READ,
            kinds::list::<K>,
            doc("What events start which steps").query::<ListQuery>().answers::<Page<View>>(200),
        )
        .post(
            K::PATH,
            WRITE,
            create::<K>,
            doc("Have an event start steps; they run with the rights of who writes them")
                .body::<NewBody>()
                .answers::<View>(201),
        )
        .get(
            K::ONE,
            READ,
            kinds::get::<K>,
            doc("One of them; parameters are shown to their author").answers::<View>(200),
        )
        .patch(
            K::ONE,
            WRITE,
            update::<K>,
            doc("Change, enable or pause it").body::<UpdateBody>().answers::<View>(200),
        )
        .delete(
            K::ONE,
            WRITE,
            kinds::remove::<K>,
            doc("Remove it; what waits of it does not run any more").empty(204),
        )
        .post(
            &format!("{}/restore", K::ONE),
            WRITE,
            kinds::restore::<K>,
            doc("Bring a removed one back; what happened meanwhile does not start it").answers::<View>(200),
        )
}

async fn create<K: Kind<View = View>>(
    by: By,
    creation: Creation,
    Json(body): Json<NewBody>,
) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = body.name.unwrap_or_else(|| format!("On {}", body.source_event));
    let name = checks.name("name", &name);
    check_fields(&mut checks, app, Some(&body.source_event), Some(&body.conditions), Some(body.cooldown));
    checks.description(body.description.as_deref());
    checks.add(steps::faults(app, &body.steps).await?);
    let shape = Shape::of_pattern(&app.declared().events, &body.source_event);
    checks.add(declared::key_fault(&shape, body.cooldown_key.as_deref()));
    check_key_length(&mut checks, body.cooldown_key.as_deref());
    checks.add(declared::faults(app, &shape, Some(&body.conditions), &body.steps));
    checks.done()?;
    let outlines = steps::outlines(&body.steps);
    steps::require(app, caller, &outlines)?;
    steps::require_readable(app, caller, &body.source_event)?;
    let mut tx = app.db.write().await?;
    let org = owner(&mut tx, caller, body.organization_id).await?;
    declared::require_known_ids(&mut tx, app, org, &body.steps).await?;
    require_offered(&mut tx, app, org, &outlines).await?;
    refuse_more(&mut tx, org).await?;
    let mut row = ConnectionRow::draft(app.clock.new_id(), K::KIND, org, caller.user_id, app.clock.now());
    row.name = name;
    row.description = body.description;
    row.source_event = body.source_event;
    row.conditions = body.conditions;
    row.secret = steps::seal(&app.keys, row.id, &body.steps);
    row.steps = outlines;
    row.cooldown_secs = body.cooldown;
    row.cooldown_key = body.cooldown_key;
    row.state = body.state.map_or(ConnectionState::Enabled, ConnectionState::from);
    if row.state == ConnectionState::Enabled {
        refuse_more_of_pattern(&mut tx, org, &row.source_event).await?;
    }
    row.after_seq = events::last_seq(&mut tx, org).await?;
    kinds::created::<K>(tx, &by, creation, &row).await
}

/// Refuses when an organization has no room for one more.
pub(crate) async fn refuse_more(tx: &mut Tx, org: OrgId) -> Result<(), Error> {
    if connections::count(tx, org).await? < CONNECTIONS_MAX {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "organization has {CONNECTIONS_MAX} Connections, rules and schedules already; remove some first"
    )))
}

/// Refuses when one event, or one minute, would start too many; a few more can be there if they are enabled at the same
/// moment.
pub(crate) async fn refuse_more_of_pattern(tx: &mut Tx, org: OrgId, pattern: &str) -> Result<(), Error> {
    if connections::count_enabled(tx, org, pattern).await? < OF_PATTERN_MAX {
        return Ok(());
    }
    if pattern.is_empty() {
        return Err(Error::conflict(format!(
            "organization has {OF_PATTERN_MAX} enabled schedules already; pause or remove some, or put steps together"
        )));
    }
    Err(Error::conflict(format!(
        "organization has {OF_PATTERN_MAX} enabled Connections and rules with 'source_event' '{pattern}' already; \
         pause or remove some, put steps together, or name a narrower event"
    )))
}

fn check_fields(
    checks: &mut Checks,
    app: &App,
    source_event: Option<&str>,
    conditions: Option<&Conditions>,
    cooldown: Option<i64>,
) {
    if let Some(message) = source_event.and_then(|pattern| steps::pattern_fault(app, pattern)) {
        checks.require(false, "source_event", &message);
    }
    if let Some(conditions) = conditions {
        checks.add(steps::condition_faults(conditions));
    }
    let fits = cooldown.is_none_or(|secs| (0..=COOLDOWN_SECS_MAX).contains(&secs));
    checks.require(fits, "cooldown", &format!("must be from 0 to {COOLDOWN_SECS_MAX} seconds"));
}

fn check_key_length(checks: &mut Checks, key: Option<&str>) {
    let fits = key.is_none_or(|key| (1..=COOLDOWN_KEY_CHARS_MAX).contains(&key.chars().count()));
    checks.require(fits, "cooldown_key", &format!("must have from 1 to {COOLDOWN_KEY_CHARS_MAX} characters"));
}

async fn update<K: Kind<View = View>>(
    by: By,
    At(id): At<ConnectionId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    let By { app, caller, .. } = &by;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    check_fields(&mut checks, app, body.source_event.as_deref(), body.conditions.as_ref(), body.cooldown);
    checks.description(body.description.as_ref().and_then(Option::as_deref));
    if let Some(steps) = &body.steps {
        checks.add(steps::faults(app, steps).await?);
    }
    let key = body.cooldown_key.as_ref().and_then(Option::as_deref);
    check_key_length(&mut checks, key);
    checks.done()?;
    let mut tx = app.db.write().await?;
    let current = kinds::lock::<K>(&mut tx, caller, id).await?;
    caller.require_all_sites()?;
    if_match.check(&current)?;
    let aims = body.source_event.is_some() || body.conditions.is_some();
    if aims && body.steps.is_none() && !caller.is_author(current.author_id) {
        let message =
            "another event or condition is for the author of the steps alone: send the steps, too, and be it";
        return Err(super::trial::not_author(message));
    }
    let mut row = current.clone();
    row.name = name.unwrap_or(row.name);
    row.description = body.description.unwrap_or(row.description);
    row.conditions = body.conditions.unwrap_or(row.conditions);
    row.cooldown_secs = body.cooldown.unwrap_or(row.cooldown_secs);
    let is_new_key = body.cooldown_key.is_some();
    row.cooldown_key = body.cooldown_key.unwrap_or(row.cooldown_key);
    row.source_event = body.source_event.unwrap_or(row.source_event);
    if let Some(steps) = &body.steps {
        (row.steps, row.secret) = (steps::outlines(steps), steps::seal(&app.keys, id, steps));
        row.author_id = caller.user_id;
    }
    if aims || is_new_key || body.steps.is_some() {
        refuse_undeclared(&mut tx, app, &row, body.steps.as_deref()).await?;
    }
    edited_state(&mut row, body.state);
    if row.state == ConnectionState::Enabled || body.steps.is_some() {
        refuse_unfit(&mut tx, app, caller, &row).await?;
    }
    let starts_anew = current.state != ConnectionState::Enabled || current.source_event != row.source_event;
    if row.state == ConnectionState::Enabled && starts_anew {
        refuse_more_of_pattern(&mut tx, row.org_id, &row.source_event).await?;
        row.after_seq = events::last_seq(&mut tx, row.org_id).await?;
    }
    kinds::updated::<K>(tx, &by, &row).await
}

/// Refuses what does not fit what is declared: the events that it is for, and the organization's objects. `written` are
/// its steps where they are new.
async fn refuse_undeclared(
    tx: &mut Tx,
    app: &App,
    row: &ConnectionRow,
    written: Option<&[Step]>,
) -> Result<(), Error> {
    // A caller that changes the event or the conditions without sending the steps is their author.
    let kept = match written {
        Some(_) => Vec::new(),
        None => steps::open(&app.keys, row.id, &row.steps, &row.secret)?,
    };
    let mut checks = Checks::default();
    let shape = Shape::of_pattern(&app.declared().events, &row.source_event);
    checks.add(declared::faults(app, &shape, Some(&row.conditions), written.unwrap_or(&kept)));
    checks.add(declared::key_fault(&shape, row.cooldown_key.as_deref()));
    checks.done()?;
    declared::require_known_ids(tx, app, row.org_id, written.unwrap_or_default()).await
}

/// Sets the state that an edit asks for.
pub(crate) fn edited_state(row: &mut ConnectionRow, wanted: Option<WantedState>) {
    if let Some(wanted) = wanted {
        row.state = wanted.into();
        row.state_reason = None;
    }
}

/// Refuses unless the author of the steps may have them run now.
pub(crate) async fn refuse_unfit(
    tx: &mut Tx,
    app: &App,
    caller: &Caller,
    row: &ConnectionRow,
) -> Result<(), Error> {
    require_offered(tx, app, row.org_id, &row.steps).await?;
    if row.author_id == caller.user_id {
        return require_fit(app, caller, row);
    }
    let unfit = |why: String| Error::Conflict {
        kind: "author_unfit",
        message: format!("{why}; send its steps to become their author yourself"),
    };
    let author = super::author::author_of(tx, row.org_id, row.author_id, row.id).await?.map_err(unfit)?;
    require_fit(app, &author, row).map_err(|error| unfit(format!("its author may not do it: {error}")))
}

pub(super) fn require_fit(app: &App, author: &Caller, row: &ConnectionRow) -> Result<(), Error> {
    let gone = row.steps.iter().find(|step| Operations::of(app).find(&step.operation_id).is_none());
    if let Some(step) = gone {
        return Err(Error::conflict(format!("operation '{}' does not exist any more", step.operation_id)));
    }
    require_rights(app, author, row)
}

/// Requires that the author may do what the steps do, as far as their operations are known, and read what starts them.
pub(super) fn require_rights(app: &App, author: &Caller, row: &ConnectionRow) -> Result<(), Error> {
    steps::require(app, author, &row.steps)?;
    if row.kind == ConnectionKind::Schedule {
        Ok(())
    } else {
        steps::require_readable(app, author, &row.source_event)
    }
}
