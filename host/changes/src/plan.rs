//! Staging and planning: the calls of a change are computed before it can be applied.

use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::adapter::{Feature, FeatureOperation};
use heddle_core::blast_radius::BlastRadius;
use heddle_core::change::{AdapterPlan, ChangeSpec, Danger, Operation, Plan};
use heddle_core::fault::FaultKind;
use heddle_core::file::GivenFile;
use heddle_core::organization_settings::OrganizationSettings;
use heddle_core::saga::SagaStep;
use heddle_core::{ChangeId, ControllerId, SiteId, SiteLevel};
use heddle_files::named;
use heddle_inventory::adapters::{self, call_for};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::keys::Keys;
use heddle_kernel::nearest::nearest;
use heddle_runtime::{Adapter, CallError, SecretBook};
use heddle_store::changes::{self, ChangeRow, NewChange, Planned as PlanRecord, RunStep};
use heddle_store::{Tx, sagas};
use heddle_topology::Question;
use serde_json::{Value, json};

use super::cause::Cause;
use super::detail::takes_all_warning;
use super::outcome::{Actor, Step, record};
use super::place::{self, Place};
use super::view::{Beside, view};
use super::{expressed, gates, new_key, payload, set};
use crate::declarations::{CHANGE_STAGED, ChangesSettings};

/// The request of a client.
#[derive(Debug)]
pub struct Request {
    pub controller_id: ControllerId,
    /// Where the path names a site, the place must be there.
    pub site_id: Option<SiteId>,
    /// The vendor's site that is meant, by its id or its name.
    pub site_ref: Option<String>,
    pub vendor: Option<String>,
    pub area: String,
    pub feature: String,
    pub operation: Operation,
    pub payload: Value,
    /// Further changes that are planned and applied together with this one.
    pub also: Vec<ChangeSpec>,
    pub notes: Option<String>,
}

/// A change that takes another one back.
#[derive(Debug)]
pub(super) struct Inverse {
    pub(super) of: ChangeId,
    pub(super) secrets: SecretBook,
    pub(super) warnings: Vec<String>,
}

/// The result of asking the adapter: a plan, or why there is none.
pub(super) struct Planned {
    pub(super) plan: Option<(Plan, AdapterPlan)>,
    error: Option<Value>,
    secrets: SecretBook,
    /// What changes in the words of the model are in the vendor's own.
    pub(super) expressed_as: Option<Vec<ChangeSpec>>,
}

/// Returns the feature and its operation, or an error that lists the existing ones.
fn feature_of<'a>(
    adapter: &'a Adapter,
    area: &str,
    feature: &str,
    operation: Operation,
) -> Result<(&'a Feature, &'a FeatureOperation), Error> {
    let description = adapter.description();
    let Some(found) = description.feature(feature).filter(|found| found.area == area) else {
        let features = &description.features;
        let known: Vec<&str> = features.iter().filter(|f| f.area == area).map(|f| f.id.as_str()).collect();
        let hint = match nearest(feature, known.iter().copied()) {
            Some(meant) => format!("nearest is '{meant}'"),
            None => format!("there are: {}", known.join(", ")),
        };
        return Err(Error::Unknown(format!("feature not found in area '{area}'; {hint}")));
    };
    let of_operation = found.operation(operation).ok_or_else(|| {
        let known: Vec<&str> = found.operations.iter().map(|o| o.operation.as_str()).collect();
        Error::field("operation", format!("'{feature}' has no '{operation}'; it has: {}", known.join(", ")))
    })?;
    Ok((found, of_operation))
}

/// Stages a change: validated, planned, recorded. The device is only read.
pub(super) async fn stage(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    creation: Creation,
    request: Request,
) -> Result<Response, Error> {
    let ready = prepare(app, caller, Cause::Request(origin), request).await?;
    let mut tx = app.db.write().await?;
    let staged = ready.write(app, caller, &mut tx).await?;
    answer(app, tx, staged, creation).await
}

/// Checks and plans a request: the device is read, and nothing is written.
///
/// # Errors
/// As for a request of a client.
pub async fn prepare(app: &App, caller: &Caller, cause: Cause<'_>, request: Request) -> Result<Ready, Error> {
    let (place, adapter) = place_of(app, caller, &request).await?;
    let checked = check(app, caller, place, adapter, request).await?;
    ready(app, caller, cause, checked).await
}

/// Plans what a change asked for that was applied before, with its secrets.
pub(super) async fn prepare_again(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    row: ChangeRow,
    notes: String,
) -> Result<Ready, Error> {
    gates::change_is_permitted(caller, &row)?;
    let place = place::used_place_of(app, caller, &row).await?;
    let adapter = app.adapter(&place.controller.vendor)?;
    let row = new_key::current(app, row).await?;
    let secrets = secrets_of(app, &row)?;
    let request = Request {
        controller_id: row.controller_id,
        site_id: None,
        site_ref: None,
        vendor: None,
        area: row.area,
        feature: row.feature,
        operation: row.operation,
        payload: row.payload,
        also: row.also,
        notes: Some(notes),
    };
    let checked = Checked { place, adapter, request, danger: row.danger, secrets, inverse: None };
    ready(app, caller, cause, checked).await
}

/// Returns the place and its adapter, if the caller may see it and write there.
async fn place_of(app: &App, caller: &Caller, request: &Request) -> Result<(Place, Adapter), Error> {
    let asked = place::Asked {
        controller_id: request.controller_id,
        site_id: request.site_id,
        vendor: request.vendor.as_deref(),
        site_ref: request.site_ref.as_deref(),
        is_of_site: true,
    };
    let seen = place::controller_on_path(app, caller, asked).await?;
    let adapter = app.adapter(&seen.controller.vendor)?;
    let feature = adapter.description().feature(&request.feature);
    let is_of_site = feature.is_none_or(|feature| feature.is_of_site);
    let place = seen.place(caller, place::Asked { is_of_site, ..asked })?;
    caller.require_level(place.site_id, SiteLevel::Write)?;
    Ok((place, adapter))
}

/// Checks a request against its feature, puts what adapters know of files in the place of their ids, and takes its secrets
/// out.
async fn check(
    app: &App,
    caller: &Caller,
    place: Place,
    adapter: Adapter,
    mut request: Request,
) -> Result<Checked, Error> {
    let found = feature_of(&adapter, &request.area, &request.feature, request.operation);
    let danger = found.as_ref().map_or(Danger::Normal, |(_, operation)| operation.danger);
    // Only callers that may change an area learn what exists in it.
    gates::feature_is_permitted(caller, &request.feature, danger)?;
    let (feature, operation) = found?;
    gates::catastrophe_needs_site_admin(caller, operation.danger)?;
    let schema =
        adapter.payload_schema(&request.feature, request.operation).await.map_err(Error::internal)?;
    let schema = schema.ok_or_else(|| Error::internal("a declared operation has no compiled schema"))?;
    adapters::validate(&schema, &request.payload, "payload")?;
    let org = place.controller.org_id;
    payload::refuse_references(&request.payload, "payload")?;
    named::take(app, caller, org, schema.document(), &mut request.payload).await?;
    let key = app.keys.reference_key(place.controller.id);
    // The names are those of the vendor's objects: in the words of the model, `key` is none of its secrets.
    let names = if feature.model.is_some() { &[] } else { adapter.secret_fields() };
    let secrets = payload::take_secrets(schema.document(), names, &mut request.payload, &key);
    Ok(Checked { place, adapter, request, danger, secrets, inverse: None })
}

/// Plans the inverse of a change; its payload comes from the adapter.
pub(super) async fn prepare_inverse(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    place: Place,
    mut request: Request,
    inverse: Inverse,
) -> Result<Ready, Error> {
    let adapter = app.adapter(&place.controller.vendor)?;
    // The inverse of a set over several areas begins with the last member.
    if let Some(feature) = adapter.description().feature(&request.feature) {
        request.area.clone_from(&feature.area);
    }
    let (_, operation) = feature_of(&adapter, &request.area, &request.feature, request.operation)?;
    caller.require_level(place.site_id, SiteLevel::Write)?;
    gates::feature_is_permitted(caller, &request.feature, operation.danger)?;
    let mut danger = operation.danger;
    for spec in &request.also {
        // The inverse of a set may reach into several areas.
        let area = adapter.description().feature(&spec.feature);
        let area = area.map_or(request.area.as_str(), |feature| feature.area.as_str());
        let (_, operation) = feature_of(&adapter, area, &spec.feature, spec.operation)?;
        gates::feature_is_permitted(caller, &spec.feature, operation.danger)?;
        danger = danger.max(operation.danger);
    }
    gates::catastrophe_needs_site_admin(caller, danger)?;
    let secrets = inverse.secrets.clone();
    let checked = Checked { place, adapter, request, danger, secrets, inverse: Some(inverse) };
    ready(app, caller, Cause::Request(origin), checked).await
}

/// A checked request that may be staged.
struct Checked {
    place: Place,
    adapter: Adapter,
    request: Request,
    danger: Danger,
    secrets: SecretBook,
    inverse: Option<Inverse>,
}

/// A request that was checked and planned: the device was read, and nothing is written.
pub struct Ready {
    place: Place,
    actor: Actor,
    run: Option<RunStep>,
    area: String,
    spec: ChangeSpec,
    also: Vec<ChangeSpec>,
    notes: Option<String>,
    planned: Planned,
    danger: Danger,
    reverts: Option<ChangeId>,
}

/// Asks the adapter for the plan.
async fn ready(app: &App, caller: &Caller, cause: Cause<'_>, checked: Checked) -> Result<Ready, Error> {
    let Checked { place, adapter, request, danger, secrets, inverse } = checked;
    let Request { area, feature, operation, payload, mut also, notes, .. } = request;
    also.iter_mut().for_each(|spec| spec.site.clone_from(&place.site_ref));
    let spec = ChangeSpec { feature, operation, site: place.site_ref.clone(), payload };
    let specs: Vec<ChangeSpec> = std::iter::once(spec.clone()).chain(also.iter().cloned()).collect();
    // What takes a change back is the adapter's own, and sends no file.
    let given = if inverse.is_none() { named::given_in(&specs) } else { Vec::new() };
    let asked = Asked { place: &place, specs: &specs, given: &given, meant: &specs };
    let mut planned = ask(app, &adapter, &cause.request_id(), asked, &secrets).await?;
    if let (Some((plan, _)), Some(inverse)) = (&mut planned.plan, &inverse) {
        plan.warnings.extend(inverse.warnings.iter().cloned());
    }
    let danger = expressed::permitted(caller, &adapter, &planned, danger)?;
    let (actor, run) = (cause.actor(caller), cause.step());
    let reverts = inverse.map(|inverse| inverse.of);
    Ok(Ready { place, actor, run, area, spec, also, notes, planned, danger, reverts })
}

impl Ready {
    /// Writes the change in an open transaction, and neither records nor commits it yet.
    ///
    /// # Errors
    /// A conflict where the place is another one by now.
    pub async fn write(self, app: &App, caller: &Caller, tx: &mut Tx) -> Result<Staged, Error> {
        let Self { place, actor, run, area, spec, also, notes, planned, danger, reverts } = self;
        let controller = &place.controller;
        let id: ChangeId = app.clock.new_id();
        let now = app.clock.now();
        let settings = place::place_is_the_same(tx, &place).await?;
        let new = NewChange {
            id,
            org_id: controller.org_id,
            site_id: place.site_id,
            site_ref: place.site_ref.clone(),
            controller_id: controller.id,
            vendor: controller.vendor.clone(),
            area,
            feature: spec.feature,
            operation: spec.operation,
            payload: spec.payload,
            also,
            notes,
            staged_by: caller.user_id,
            expires_at: now + ttl(app, &settings),
            planned: record_of(app, id, planned, danger),
            now,
            reverts,
            run,
            is_set: false,
        };
        let row = changes::insert(tx, &new).await.map_err(staged_already)?;
        named::hold(tx, app, &row).await?;
        let step = Step::new("change.staged", actor).event(CHANGE_STAGED);
        Ok(Staged { row, step })
    }
}

/// A change that is written in an open transaction, and not recorded yet.
pub struct Staged {
    pub row: ChangeRow,
    step: Step,
}

impl Staged {
    /// Records the change: from then on other writers of the organization wait.
    ///
    /// # Errors
    /// The database gives no answer.
    pub async fn record(&self, tx: &mut Tx, app: &App) -> Result<(), Error> {
        record(tx, app, &self.row, &self.step).await
    }
}

/// The conflict when another process carries out the same step: it has already staged the change.
pub(super) const STAGED_ALREADY: &str = "staged_already";

fn staged_already(error: heddle_store::Error) -> Error {
    if error.is_unique("change_run_key") {
        return Error::Conflict {
            kind: STAGED_ALREADY,
            message: "this step has staged its change already".to_owned(),
        };
    }
    error.into()
}

/// Records and commits the change, and returns the answer to the request.
///
/// # Errors
/// The database gives no answer.
pub async fn answer(app: &App, mut tx: Tx, staged: Staged, creation: Creation) -> Result<Response, Error> {
    let row = &staged.row;
    let conflicts_with = changes::conflicts(&mut tx, row).await?;
    let path = format!("/gateway-vpn/changes/{}", row.id);
    let shown = view(row.clone(), Beside { conflicts_with, set: None })?;
    staged.record(&mut tx, app).await?;
    let response = creation.finish(tx, app, &path, &shown).await?;
    log_staged(row);
    Ok(response)
}

pub(super) fn log_staged(row: &ChangeRow) {
    tracing::info!(change.id = %row.id, controller.id = %row.controller_id, "staged change {}", row.id);
}

/// How long a change of an organization with these settings stays pending.
pub(super) fn ttl(app: &App, settings: &OrganizationSettings) -> TimeDelta {
    TimeDelta::hours(
        settings.change_ttl_hours.unwrap_or(app.config.of::<ChangesSettings>().change_ttl_hours).into(),
    )
}

/// Plans a pending change again, against the device as it is now.
pub async fn plan_again(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    row: ChangeRow,
) -> Result<ChangeRow, Error> {
    gates::change_is_permitted(caller, &row)?;
    gates::change_is_pending(row.status)?;
    gates::change_is_its_own(&row)?;
    plan_pending(app, caller, Cause::Request(origin), row).await
}

/// The same of a change that was found to be pending, also of a part of a set over several controllers.
pub(super) async fn plan_pending(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    row: ChangeRow,
) -> Result<ChangeRow, Error> {
    gates::plan_may_be_made(&row)?;
    let place = place::used_place_of(app, caller, &row).await?;
    let adapter = app.adapter(&place.controller.vendor)?;
    let row = new_key::current(app, row).await?;
    let specs = asked_of(&row);
    let secrets = secrets_of(app, &row)?;
    let given = named::given(app, &row).await?;
    let meant = if row.is_set { set::meant(app, &row).await? } else { specs.clone() };
    let asked = Asked { place: &place, specs: &specs, given: &given, meant: &meant };
    let planned = ask(app, &adapter, &cause.request_id(), asked, &secrets).await?;
    let danger = expressed::permitted(caller, &adapter, &planned, row.danger)?;

    let mut tx = app.db.write().await?;
    if let Some(saga) = row.saga_id
        && sagas::lock(&mut tx, saga).await?.is_none_or(|saga| saga.step != SagaStep::Idle)
    {
        return Err(Error::conflict("the set is being applied; wait until that has ended"));
    }
    let record_of_plan = record_of(app, row.id, planned, danger);
    let now = app.clock.now();
    let row = changes::set_plan(&mut tx, row.id, row.saga_id, &record_of_plan, now)
        .await?
        .ok_or_else(|| Error::conflict("change is being applied, or is not pending any more"))?;
    set::follow(&mut tx, &row, now).await?;
    let step = Step::new("change.planned", cause.actor(caller));
    record(&mut tx, app, &row, &step).await?;
    tx.commit().await?;
    Ok(row)
}

/// What a plan is to be made of.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) place: &'a Place,
    pub(super) specs: &'a [ChangeSpec],
    /// The files that the plan may send.
    pub(super) given: &'a [GivenFile],
    /// The same as people asked for it: in the words of the model where it was asked in them.
    pub(super) meant: &'a [ChangeSpec],
}

/// Asks the adapter for a plan that sends no other files than those given. An unreachable device is not an error; a payload
/// that cannot work is, and a feature that the release of the device does not have.
pub(super) async fn ask(
    app: &App,
    adapter: &Adapter,
    request_id: &str,
    asked: Asked<'_>,
    secrets: &SecretBook,
) -> Result<Planned, Error> {
    let Asked { specs, given, .. } = asked;
    let controller = &asked.place.controller;
    gates::features_are_offered(adapter, specs, controller)?;
    let call = call_for(controller, request_id)?;
    let mut secrets = secrets.clone();
    let expressed_as = match expressed::express(adapter, &call, specs, &secrets).await {
        Ok(None) => None,
        Ok(Some((own, found))) => {
            secrets.entries.extend(found.entries);
            gates::features_are_offered(adapter, &own, controller)?;
            expressed::check(adapter, &own, &secrets).await?;
            Some(own)
        }
        Err(error) => return without_plan(error, secrets, None),
    };
    let specs = expressed_as.as_deref().unwrap_or(specs);
    match adapter.plan(&call, specs, &secrets, given).await {
        Ok((mut plan, found)) => {
            secrets.entries.extend(found.entries);
            let radius = reach(app, adapter, asked, &plan).await?;
            // Never weaker than the adapter's own word; the hash covers it.
            plan.lockout_risk |= radius.own_way.is_lockout_risk();
            let mut shown = Plan::of(&plan, adapter.identity(), specs);
            shown.warnings.extend(takes_all_warning(&shown));
            shown.blast_radius = Some(radius);
            Ok(Planned { plan: Some((shown, plan)), error: None, secrets, expressed_as })
        }
        Err(error) => without_plan(error, secrets, expressed_as),
    }
}

/// What lies behind what a plan changes, as the topology of its site tells.
async fn reach(
    app: &App,
    adapter: &Adapter,
    asked: Asked<'_>,
    plan: &AdapterPlan,
) -> Result<BlastRadius, Error> {
    let Asked { place, meant, .. } = asked;
    let question = Question {
        org_id: place.controller.org_id,
        site_id: place.site_id,
        controller_id: place.controller.id,
        description: adapter.description(),
        asked: meant,
        touches: &plan.touches,
    };
    heddle_topology::blast_radius(app, question).await
}

/// What is known where there is no plan, or the error of a request that can have none.
fn without_plan(
    error: CallError,
    secrets: SecretBook,
    expressed_as: Option<Vec<ChangeSpec>>,
) -> Result<Planned, Error> {
    match error {
        CallError::Fault(fault) if matches!(fault.kind, FaultKind::Invalid | FaultKind::NotFound) => {
            Err(fault.into())
        }
        error @ (CallError::Overload | CallError::Host(_)) => Err(error.into()),
        error => {
            let error = Error::Adapter(error);
            let reason = json!({ "type": error.kind(), "message": error.to_string() });
            Ok(Planned { plan: None, error: Some(reason), secrets, expressed_as })
        }
    }
}

pub(super) fn record_of(app: &App, id: ChangeId, planned: Planned, danger: Danger) -> PlanRecord {
    let secret = (!planned.secrets.entries.is_empty()).then(|| seal_secrets(&app.keys, id, &planned.secrets));
    let (plan, token, inverse) = match planned.plan {
        Some((plan, adapter)) => (Some(plan), Some(adapter.token), adapter.inverse),
        None => (None, None, None),
    };
    let expressed_as = planned.expressed_as;
    PlanRecord { plan, token, inverse, error: planned.error, secret, danger, expressed_as }
}

fn secret_context(id: ChangeId) -> String {
    format!("change:{id}")
}

pub(super) fn seal_secrets(keys: &Keys, id: ChangeId, secrets: &SecretBook) -> Vec<u8> {
    let plain: Vec<(&String, &str)> =
        secrets.entries.iter().map(|(name, secret)| (name, secret.expose())).collect();
    let bytes = zeroize::Zeroizing::new(serde_json::to_vec(&plain).expect("texts are valid JSON"));
    keys.seal(&secret_context(id), &bytes)
}

/// Returns the secrets to which a change's payload and plan refer.
pub(super) fn secrets_of(app: &App, row: &ChangeRow) -> Result<SecretBook, Error> {
    open_secrets(&app.keys, row)
}

pub(super) fn open_secrets(keys: &Keys, row: &ChangeRow) -> Result<SecretBook, Error> {
    let Some(sealed) = &row.secret else { return Ok(SecretBook::default()) };
    let plain = keys.open_sealed(&secret_context(row.id), sealed).map_err(Error::internal)?;
    let entries: Vec<(String, heddle_core::secret::Secret)> =
        serde_json::from_slice(&plain).map_err(Error::internal)?;
    Ok(SecretBook { entries: entries.into_iter().collect() })
}

/// Returns the change in the adapter's form, with its further changes: in the words of its own features.
pub(super) fn specs_of(row: &ChangeRow) -> Vec<ChangeSpec> {
    row.expressed_as.clone().unwrap_or_else(|| asked_of(row))
}

/// Returns what was asked for, with the further changes: it may be in the words of the model.
pub(super) fn asked_of(row: &ChangeRow) -> Vec<ChangeSpec> {
    let own = ChangeSpec {
        feature: row.feature.clone(),
        operation: row.operation,
        site: row.site_ref.clone(),
        payload: row.payload.clone(),
    };
    std::iter::once(own).chain(row.also.iter().cloned()).collect()
}
