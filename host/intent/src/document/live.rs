//! What readings found at a site, as far as documents have it.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::adapter::{Completeness, Origin};
use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use heddle_inventory::controllers::releases::is_offered;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_marketplace::model::ModelKind;
use heddle_runtime::Adapter;
use heddle_store::model_readings::{self, SiteList};
use heddle_store::object::Object as _;
use heddle_store::{Scope, Site, Tx, model_objects};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::bounds::{DOCUMENT_BYTES_MAX, Problem, refused};
use super::diff::{Can, LiveObject};
use super::model::{Named, Objects, Place, Wanted};
use crate::settable::{self, Content};

/// Objects that are loaded at once.
const PART: i64 = 500;

/// How old what is known of a list is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "IntentFreshness")]
pub(crate) struct Freshness {
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the objects are the controller's.
    site_ref: Option<String>,
    kind: String,
    /// When a reading last came to the end of the list; null if never.
    read_at: Option<Timestamp>,
    /// Seconds since then.
    #[schemars(range(min = 0))]
    age_secs: Option<i64>,
    /// Whether the last reading gave all that there is. Of a list that is not complete nothing is deleted.
    complete: Completeness,
    /// What was wrong with the last reading; null where nothing was.
    error: Option<String>,
}

/// A list of a site that documents have.
#[derive(Debug)]
pub(crate) struct LiveList {
    pub(crate) kind: &'static ModelKind,
    pub(crate) can: Can,
    pub(crate) freshness: Freshness,
    pub(crate) objects: Vec<LiveObject>,
}

impl LiveList {
    pub(crate) fn is_read(&self) -> bool {
        self.freshness.read_at.is_some()
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.is_read() && self.freshness.complete == Completeness::Complete
    }
}

/// What is known of a site.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) org_id: OrgId,
    pub(crate) site: (SiteId, String),
    pub(crate) controllers: BTreeMap<ControllerId, Named>,
    pub(crate) lists: BTreeMap<(Place, String), LiveList>,
}

/// Which part of a site is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) controller_id: Option<ControllerId>,
    pub(crate) kind: Option<&'static ModelKind>,
    /// Only these lists, where a document names them.
    pub(crate) lists: Option<BTreeSet<(Place, String)>>,
}

/// Loads a site, if the caller may see it.
pub(crate) async fn load(app: &App, caller: &Caller, site: SiteId, part: &Part) -> Result<Live, Error> {
    let mut tx = app.db.read().await?;
    let scope = caller.scope();
    if !caller.may_access_site(site) {
        return Err(Error::NotFound("site"));
    }
    let found = Site::find(&mut tx, &scope, site).await?.ok_or(Error::NotFound("site"))?;
    let rows = model_readings::of_site(&mut tx, &scope, site).await?;
    let mut live = Live {
        org_id: found.org_id,
        site: (site, found.name),
        controllers: BTreeMap::new(),
        lists: BTreeMap::new(),
    };
    for row in rows.into_iter().filter(|row| part.controller_id.is_none_or(|id| id == row.controller_id)) {
        live.add(app, part, row);
    }
    live.fill(&mut tx, &scope, site).await?;
    Ok(live)
}

impl Live {
    fn add(&mut self, app: &App, part: &Part, row: SiteList) {
        let (Ok(adapter), Some(kind)) = (app.adapter(&row.vendor), settable::find(&row.kind)) else { return };
        let named = Named { name: row.name.clone(), vendor: row.vendor.clone() };
        self.controllers.entry(row.controller_id).or_insert(named);
        let is_asked = part.kind.is_none_or(|asked| asked.id == kind.id);
        let can = offered(&adapter, kind, row.firmware.as_deref());
        let Some(can) = can.filter(|can| is_asked && can.is_any()) else { return };
        let place = Place { controller_id: row.controller_id, site_ref: row.site_ref.clone() };
        let named = (place, row.kind.clone());
        if part.lists.as_ref().is_some_and(|lists| !lists.contains(&named)) {
            return;
        }
        let freshness = Freshness {
            controller_id: row.controller_id,
            site_ref: Some(row.site_ref).filter(|site_ref| !site_ref.is_empty()),
            kind: row.kind,
            read_at: row.read_at,
            age_secs: row.read_at.map(|at| (app.clock.now() - at).num_seconds().max(0)),
            complete: row.complete,
            error: row.error,
        };
        self.lists.insert(named, LiveList { kind, can, freshness, objects: Vec::new() });
    }

    /// Loads the objects of the lists. Together they are not larger than a document may be.
    async fn fill(&mut self, tx: &mut Tx, scope: &Scope, site: SiteId) -> Result<(), Error> {
        let kinds: BTreeSet<String> = self.lists.keys().map(|(_, kind)| kind.clone()).collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let (mut offset, mut bytes) = (0, 0);
        loop {
            let part = model_objects::slice_of_site(tx, scope, site, &kinds, (PART, offset)).await?;
            offset += i64::try_from(part.len()).unwrap_or(i64::MAX);
            let is_last = i64::try_from(part.len()).unwrap_or(i64::MAX) < PART;
            for object in part {
                let place = Place {
                    controller_id: object.controller_id,
                    site_ref: object.site_ref.clone().unwrap_or_default(),
                };
                let Some(list) = self.lists.get_mut(&(place, object.kind.clone())) else { continue };
                // Ports and radios come with the device, and people only set them. Other objects count when people made them.
                let is_made = list.kind.verbs().any(|verb| verb == "create");
                if is_made && object.origin != Origin::Own {
                    continue;
                }
                let fields = settable::fields(list.kind).filter(|field| list.can.has(field)).collect();
                let content = Content::of(&fields, &object.fields);
                bytes += content.to_value().to_string().len() + object.key.len();
                list.objects.push(LiveObject { key: object.key, label: object.label, content });
            }
            if bytes > DOCUMENT_BYTES_MAX {
                let message = format!(
                    "the site has more than a document of {DOCUMENT_BYTES_MAX} bytes; ask for one controller (controller_id) or one kind (kind)"
                );
                return Err(refused(&[Problem::at("", message, "too_large")]));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The objects as a document has them.
    pub(crate) fn places(&self) -> BTreeMap<Place, BTreeMap<String, Objects>> {
        let mut places: BTreeMap<Place, BTreeMap<String, Objects>> = BTreeMap::new();
        for ((place, kind), list) in self.lists.iter().filter(|(_, list)| list.is_read()) {
            let objects =
                list.objects.iter().map(|object| (object.key.clone(), list.wanted(object))).collect();
            places.entry(place.clone()).or_default().insert(kind.clone(), objects);
        }
        places
    }
}

impl LiveList {
    fn wanted(&self, object: &LiveObject) -> Wanted {
        let secrets = settable::secrets(self.kind).filter(|secret| self.can.has(secret));
        let is_known = |(field, value): &(&String, &Value)| !settable::is_unknown(self.kind, field, value);
        let known = object.content.0.iter().filter(is_known);
        Wanted {
            fields: known.map(|(field, value)| (field.clone(), value.clone())).collect(),
            secrets: secrets.map(|secret| (secret.to_owned(), None)).collect(),
        }
    }
}

/// What can be asked of a kind at the release that a controller runs.
fn offered(adapter: &Adapter, kind: &'static ModelKind, firmware: Option<&str>) -> Option<Can> {
    let filled = settable::filled(adapter.description(), kind.id)?;
    is_offered(filled.releases.as_ref(), firmware).then(|| Can::of(adapter.description(), kind))
}
