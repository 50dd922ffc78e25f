//! Objects of a controller, read at the time of the request.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use heddle_core::OrgId;
use heddle_core::adapter::{Completeness, Description, Object, ObjectKind};
use heddle_core::bounds::is_small;
use heddle_core::redact::mask;
use heddle_inventory::adapters::call_for;
use heddle_inventory::controllers::releases::lacking;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::nearest::nearest;
use heddle_runtime::{Adapter, Call, LIGHT_BYTES};
use heddle_store::ControllerTarget;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place::{Asked, Place, controller_on_path};
use super::routes::{Mounted, OnController, Who};

const PER_PAGE_DEFAULT: u32 = 200;
const PER_PAGE_MAX: u32 = 1000;
const FILTERS_MAX: usize = 16;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    /// Continues after the answer with this `next_cursor`.
    cursor: Option<String>,
    /// From 1 to 1000; 200 when absent.
    #[schemars(range(min = 1, max = 1000))]
    per_page: Option<u32>,
    /// Another word for `per_page`.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Only objects with these values, such as the entries of a log in a range of time: up to 16 of `name:value`,
    /// separated by commas. The adapter refuses a name that it cannot filter by.
    filter: Option<String>,
    /// Id or name of one of the vendor's sites, where the controller has several here.
    site_ref: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneQuery {
    /// Id or name of one of the vendor's sites, where the controller has several here.
    pub(super) site_ref: Option<String>,
}

/// Objects as the controller has them now.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LiveObjectPage")]
pub(super) struct LivePage {
    items: Vec<Object>,
    /// Total number of objects, where the controller gives it.
    total: Option<u64>,
    /// Most objects of one answer.
    per_page: u32,
    /// Cursor of the objects that follow; null at the end.
    next_cursor: Option<String>,
    /// Whether the controller listed all objects.
    complete: Completeness,
}

impl LiveQuery {
    fn per_page(&self) -> Result<u32, Error> {
        let (field, given) = match (self.per_page, self.limit) {
            (Some(_), Some(_)) => {
                return Err(Error::field("limit", "limit is another word for per_page; send one of them"));
            }
            (None, Some(limit)) => ("limit", limit),
            (per_page, None) => ("per_page", per_page.unwrap_or(PER_PAGE_DEFAULT)),
        };
        if (1..=PER_PAGE_MAX).contains(&given) {
            return Ok(given);
        }
        Err(Error::field(field, format!("{field} must be from 1 to {PER_PAGE_MAX}")))
    }

    fn filter(&self) -> Result<Vec<(String, String)>, Error> {
        let pairs = self.filter.iter().flat_map(|text| text.split(','));
        let pairs = pairs.map(|pair| match pair.split_once(':') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(Error::field(
                "filter",
                "filter is name:value, separated by commas, such as 'severity:error'",
            )),
        });
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        if pairs.len() > FILTERS_MAX {
            return Err(Error::field("filter", format!("filter has at most {FILTERS_MAX} names")));
        }
        Ok(pairs)
    }
}

/// Returns the kind that a path names, in this area: one of objects, or a file.
pub(super) fn kind_of<'d>(
    description: &'d Description,
    area: &str,
    id: &str,
    is_file: bool,
) -> Result<&'d ObjectKind, Error> {
    let of_area = || description.kinds.iter().filter(|kind| kind.area == area);
    match of_area().find(|kind| kind.id == id) {
        Some(kind) if kind.file.is_some() == is_file => Ok(kind),
        Some(_) if is_file => Err(Error::Unknown(format!("'{id}' is no file; its objects are listed"))),
        Some(_) => Err(Error::Unknown(format!("'{id}' is a file; fetch it with POST …/files/{id}"))),
        None => {
            let meant = of_area().filter(|kind| kind.file.is_some() == is_file).map(|kind| kind.id.as_str());
            let meant = nearest(id, meant).map(|kind| format!("; nearest is '{kind}'")).unwrap_or_default();
            let what = if is_file { "file" } else { "resource" };
            Err(Error::Unknown(format!("{what} not found in area '{area}'{meant}")))
        }
    }
}

/// What a live read needs.
struct Read {
    controller: ControllerTarget,
    adapter: Adapter,
    kind: String,
    site_ref: Option<String>,
    call: Call,
}

impl Read {
    async fn of(
        app: &App,
        caller: &Caller,
        origin: &Origin,
        mounted: &Mounted,
        (path, site_ref): (&OnController, Option<&str>),
    ) -> Result<Self, Error> {
        let vendor = mounted.vendor.as_deref();
        let (controller_id, site_id) = (path.controller_id, path.site_id);
        let asked = Asked { controller_id, site_id, vendor, site_ref, is_of_site: true };
        let seen = controller_on_path(app, caller, asked).await?;
        let adapter = app.adapter(&seen.controller.vendor)?;
        let resource = path.resource.as_deref().unwrap_or_default();
        let kind = kind_of(adapter.description(), &mounted.area, resource, false)?;
        let what = format!("resource '{}'", kind.id);
        if let Some(message) = lacking(&what, kind.releases.as_ref(), &seen.controller) {
            return Err(Error::Unknown(message));
        }
        let asked = Asked { is_of_site: kind.is_of_site, ..asked };
        let Place { controller, site_ref, .. } = seen.place(caller, asked)?;
        let call = call_for(&controller, &origin.request_id)?;
        let kind = kind.id.clone();
        Ok(Self { controller, adapter, kind, site_ref, call })
    }
}

pub(super) async fn list(
    mounted: Mounted,
    (State(app), caller, origin): Who,
    At(path): At<OnController>,
    Params(query): Params<LiveQuery>,
) -> Result<Response, Error> {
    let (per_page, filter) = (query.per_page()?, query.filter()?);
    let asked = (&path, query.site_ref.as_deref());
    let Read { controller, adapter, kind, site_ref, call } =
        Read::of(&app, &caller, &origin, &mounted, asked).await?;
    let (site, cursor) = (site_ref.as_deref(), query.cursor.as_deref());
    let page = adapter.list_objects(&call, &kind, site, cursor, per_page, &filter).await?;
    let page = LivePage {
        items: page.items,
        total: page.total,
        per_page,
        next_cursor: page.next,
        complete: page.complete,
    };
    let hide = |page: &mut LivePage| page.items.iter_mut().for_each(|object| mask(&mut object.body));
    answer(&app, controller.org_id, page, hide).await
}

/// Masks secrets in live objects and serializes them. Large answers are processed outside the API's threads.
async fn answer<T: Serialize + Send + 'static>(
    app: &App,
    org: OrgId,
    mut read: T,
    hide: fn(&mut T),
) -> Result<Response, Error> {
    let bytes = if is_small(&read, LIGHT_BYTES) { 0 } else { usize::MAX };
    let work = move || {
        hide(&mut read);
        serde_json::to_vec(&read)
    };
    let written = app.runtime.apart(org, bytes, work).await?.map_err(Error::internal)?;
    Ok(([(CONTENT_TYPE, "application/json")], written).into_response())
}

pub(super) async fn get(
    mounted: Mounted,
    (State(app), caller, origin): Who,
    At(path): At<OnController>,
    Params(query): Params<OneQuery>,
) -> Result<Response, Error> {
    let asked = (&path, query.site_ref.as_deref());
    let Read { controller, adapter, kind, site_ref, call } =
        Read::of(&app, &caller, &origin, &mounted, asked).await?;
    let key = path.key.as_deref().unwrap_or_default();
    let object = adapter.get_object(&call, &kind, site_ref.as_deref(), key).await?;
    answer(&app, controller.org_id, object, |object| mask(&mut object.body)).await
}
