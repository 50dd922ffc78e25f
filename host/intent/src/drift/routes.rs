//! Differences as clients see them, and what people decide about them.

use axum::response::Response;
use heddle_changes::declarations::NOTES_CHARS_MAX;
use heddle_changes::seam::{self, InModel};
use heddle_changes::{Asked, Cause, ChangeView, controller_on_path};
use heddle_core::change::ChangeStatus;
use heddle_core::drift::{DriftChange, DriftLabel, DriftStatus, WantedBasis};
use heddle_core::{ChangeId, ControllerId, SiteId, SiteLevel, Timestamp};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::{
    self, Actions, By, Listed, ReadOperation, Resource, Rows, StepObject, Takes, Verbs, actions,
};
use heddle_sets::Pending;
use heddle_store::drift::{self, Drift, DriftFilter, DriftId, Said};
use heddle_store::model_objects::record::List;
use heddle_store::object::Object as _;
use heddle_store::wanted::{self, WantedObject};
use heddle_store::{Controller, Scope, Tx, changes, events};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::declarations::DRIFT_WRITE;
use super::outcome::closed;
use super::put_back::{self, Way};
use crate::settable::Content;

/// Differences between what is wanted and what was observed.
pub(super) struct Drifts;

list_query! {
    /// Part of the object's name or key.
    pub(super) struct ListQuery of Drift {
        site_id: Option<SiteId>,
        controller_id: Option<ControllerId>,
        /// Kind of the model, such as `vlan`.
        kind: Option<String>,
        /// Originator of the differences.
        label: Option<DriftLabel>,
        status: Option<DriftStatus>,
    }
}

/// What a person decides about a difference.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DriftDecision")]
struct Decision {
    /// Who made the difference, where the user knows: `person` or `other_tool`.
    label: Option<DriftLabel>,
    /// Up to 2000 characters.
    #[schemars(length(max = NOTES_CHARS_MAX))]
    notes: Option<String>,
}

impl Decision {
    fn check(&self) -> Result<(), Error> {
        refuse_longer("notes", self.notes.as_deref().unwrap_or_default(), NOTES_CHARS_MAX)?;
        match self.label {
            None | Some(DriftLabel::Person | DriftLabel::OtherTool) => Ok(()),
            Some(other) => Err(Error::field(
                "label",
                format!("'{other}' follows from evidence; people name 'person' or 'other_tool'"),
            )),
        }
    }

    fn said<'a>(&'a self, by: &By) -> Said<'a> {
        Said { user: Some(by.caller.user_id), label: self.label, notes: self.notes.as_deref() }
    }
}

pub(super) fn routes(read: Access) -> Routes {
    let one = "/drift/{drift_id}";
    Verbs::<Drifts>::of("drift_id", read, Access::Permission(DRIFT_WRITE))
        .listed(doc("Objects that are not as they are wanted, or were not for a while").named("list_drift"))
        .get(resource::get::<Drifts>, doc("One object that is not as it is wanted").named("get_drift"))
        .routes()
        .post(
            &format!("{one}/adopt"),
            Access::Permission(DRIFT_WRITE),
            adopt,
            doc("Want from now on what was observed; nothing is sent to the device")
                .named("adopt_drift")
                .body::<Decision>()
                .answers::<Drift>(200)
                .as_seen(),
        )
        .post(
            &format!("{one}/put-back"),
            Access::ByFeature,
            stage_back,
            doc("Stage the change that brings back what is wanted; the device is only read")
                .named("stage_drift_put_back")
                .body::<Decision>()
                .answers::<ChangeView>(201)
                .calls_adapter(),
        )
}

impl Resource for Drifts {
    type Row = Drift;
    const NOUN: &'static str = "drift";
    const PATH: &'static str = "/drift";
    const ACTIONS: Actions = actions!("drift");
    type View = Drift;

    fn view(drift: Drift, _: &App) -> Result<Drift, Error> {
        Ok(drift)
    }

    fn detail(drift: &Drift) -> Value {
        let fields: Vec<&str> = drift.differences.iter().map(|one| one.field.as_str()).collect();
        json!({
            "controller_id": drift.controller_id,
            "kind": drift.kind,
            "key": drift.key,
            "change": drift.change,
            "label": drift.label,
            "fields": fields,
        })
    }

    /// The level at its site decides.
    fn admit(_: &Caller) -> Result<(), Error> {
        Ok(())
    }

    fn site(drift: &Drift) -> Option<(SiteId, SiteLevel)> {
        Some((drift.site_id, SiteLevel::Write))
    }
}

impl Listed for Drifts {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, query: ListQuery, asked: Listing<Drift>) -> Rows<Drift> {
        let filter = DriftFilter {
            site_id: query.site_id,
            controller_id: query.controller_id,
            kind: query.kind,
            label: query.label,
            status: query.status,
            search: asked.search,
        };
        Ok(drift::list(tx, &caller.scope(), &filter, asked.order).await?)
    }
}

/// Differences in steps.
pub(super) const IN_STEPS: StepObject = StepObject {
    reads: &[
        ReadOperation::list::<Drifts>(
            "drift.list",
            "Objects that are not as they are wanted",
            CONTROLLER_READ,
            &[
                ("site_id", Takes::Id),
                ("controller_id", Takes::Id),
                ("kind", Takes::Text),
                ("label", Takes::WordOf(|| json!(DriftLabel::ALL))),
                ("status", Takes::WordOf(|| json!(DriftStatus::ALL))),
                ("search", Takes::Text),
            ],
        ),
        ReadOperation::one::<Drifts>("drift.get", "One object that is not as it is wanted", CONTROLLER_READ),
    ],
    ..StepObject::named::<Drifts>("drift_id")
};

/// The difference, while it is open, until the transaction ends.
async fn open(tx: &mut Tx, by: &By, id: DriftId) -> Result<Drift, Error> {
    let drift = Drift::lock(tx, &by.caller.scope(), id).await?.ok_or(Error::NotFound("drift"))?;
    by.caller.require_level(drift.site_id, SiteLevel::Write)?;
    require_open(&drift)?;
    Ok(drift)
}

fn require_open(drift: &Drift) -> Result<(), Error> {
    if drift.status == DriftStatus::Open {
        return Ok(());
    }
    Err(Error::Conflict { kind: "not_open", message: format!("the drift is already {}", drift.status) })
}

async fn adopt(
    by: By,
    At(id): At<DriftId>,
    if_match: IfMatch,
    Json(decision): Json<Decision>,
) -> Result<One<Drift>, Error> {
    decision.check()?;
    let app = &by.app;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    // The list first, as a comparison does.
    let seen = Drift::find(&mut tx, &by.caller.scope(), id).await?.ok_or(Error::NotFound("drift"))?;
    wanted::hold(&mut tx, &list_of(&seen)).await?;
    let drift = open(&mut tx, &by, id).await?;
    if_match.check(&drift)?;
    want_observed(&mut tx, &drift, now).await?;
    drift::close(&mut tx, id, DriftStatus::Adopted, &decision.said(&by), now).await?;
    let adopted = Drift::find(&mut tx, &by.caller.scope(), id).await?.ok_or(Error::NotFound("drift"))?;
    by.record::<Drifts>(&mut tx, &adopted, "drift.adopted", Drifts::detail(&adopted)).await?;
    let event = closed(&adopted, DriftStatus::Adopted, Some(by.caller.user_id));
    events::append(&mut tx, &event, &app.clock).await?;
    tx.commit().await?;
    Ok(One(adopted))
}

/// The list that the object is of.
fn list_of(drift: &Drift) -> List<'_> {
    List {
        controller_id: drift.controller_id,
        kind: &drift.kind,
        site_ref: drift.site_ref.as_deref().unwrap_or_default(),
    }
}

/// Makes what was observed of an object what is wanted of it. The next comparison finds what moved since.
async fn want_observed(tx: &mut Tx, drift: &Drift, now: Timestamp) -> Result<(), Error> {
    let list = list_of(drift);
    if drift.change == DriftChange::Removed {
        return Ok(wanted::remove(tx, &list, &drift.key).await?);
    }
    let row = wanted::wanted(tx, &list, &[drift.key.as_str()]).await?.remove(&drift.key);
    let mut content = row.as_ref().map(|row| Content::from_value(&row.fields)).unwrap_or_default();
    for one in &drift.differences {
        content.set(&one.field, one.observed.clone());
    }
    let adopted = WantedObject {
        key: drift.key.clone(),
        label: drift.object_label.clone(),
        device_key: drift.device_key.clone(),
        basis: WantedBasis::Adopted,
        change_id: row.as_ref().and_then(|row| row.change_id),
        fields: content.to_value(),
        seen_digest: row.map(|row| row.seen_digest).unwrap_or_default(),
    };
    Ok(wanted::write(tx, &list, &[adopted], now).await?)
}

/// Refuses where a change waits already that brings back what is wanted.
async fn nothing_waits(app: &App, drift: &Drift) -> Result<(), Error> {
    let Some(id) = drift.put_back_id else { return Ok(()) };
    let mut tx = app.db.single().await?;
    let staged = changes::find(&mut tx, &Scope::organization(drift.org_id), id).await?;
    if staged.is_none_or(|staged| staged.status != ChangeStatus::Pending) {
        return Ok(());
    }
    Err(waits(id))
}

fn waits(id: ChangeId) -> Error {
    let message = format!("change {id} of the same object waits; apply or discard it first");
    Error::Conflict { kind: "staged_already", message }
}

async fn stage_back(
    by: By,
    At(id): At<DriftId>,
    creation: Creation,
    Json(decision): Json<Decision>,
) -> Result<Response, Error> {
    decision.check()?;
    let app = &by.app;
    let drift = Drift::find(&mut app.db.single().await?, &by.caller.scope(), id).await?;
    let drift = drift.ok_or(Error::NotFound("drift"))?;
    by.caller.require_level(drift.site_id, SiteLevel::Write)?;
    require_open(&drift)?;
    nothing_waits(app, &drift).await?;
    let seen = controller_on_path(app, &by.caller, Asked::of(drift.controller_id, None)).await?;
    let adapter = app.adapter(&seen.controller.vendor)?;
    let way = put_back::way(&drift, adapter.description())
        .map_err(|message| Error::Conflict { kind: "not_writable", message })?;
    let given = decision.notes.as_deref();
    let prepared = match way {
        Way::Model { verb, payload, left } => {
            let asked = InModel {
                controller_id: drift.controller_id,
                site_ref: drift.site_ref.clone(),
                kind: &drift.kind,
                verb,
                payload,
                notes: Some(put_back::notes(&drift, given, &left)),
            };
            let request = seam::request(app, &by.caller, asked).await?;
            let features = [request.feature.as_str()];
            let pending = Pending::load(app, &by.caller, drift.site_id, &features).await?;
            if let Some(id) = pending.find(app, &request).or_else(|| pending.of_same_object(&request)) {
                return Err(waits(id));
            }
            seam::prepare(app, &by.caller, Cause::Request(&by.origin), request).await?
        }
        Way::Again(operation) => {
            let change = drift.wanted_change_id.ok_or(Error::NotFound("change"))?;
            seam::prepare_again(&by, (change, operation), put_back::notes(&drift, given, &[])).await?
        }
    };
    let mut tx = app.db.write().await?;
    // The controller first, as whoever moves it does.
    let scope = Scope::organization(drift.org_id);
    Controller::lock(&mut tx, &scope, drift.controller_id).await?.ok_or(Error::NotFound("controller"))?;
    let seen = open(&mut tx, &by, id).await?;
    if seen.revision != drift.revision {
        let message = "the drift is another one by now; read it again".to_owned();
        return Err(Error::Conflict { kind: "state_moved", message });
    }
    let staged = prepared.write(app, &by.caller, &mut tx).await?;
    drift::put_back(&mut tx, id, staged.row.id, &decision.said(&by), app.clock.now()).await?;
    let mut detail = Drifts::detail(&seen);
    detail["change_id"] = json!(staged.row.id);
    by.record::<Drifts>(&mut tx, &seen, "drift.put_back_staged", detail).await?;
    seam::answer(app, tx, staged, creation).await
}
