//! Routes that show installed adapters, whether they take calls and which credentials they take, and that release an adapter
//! that failed too often.
//!
//! Each process suspends an adapter because of the failures that it saw itself. A release is stored in the database,
//! where the other processes find it.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::Timestamp;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_marketplace::manifest::{FieldKind, Manifest, Shape};
use heddle_runtime::Adapter;
use heddle_store::adapter_releases::{self, Release};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::installed::Turns;
use super::named::id_of;
use crate::controllers::declarations::CONTROLLER_READ;

/// How often a process with a suspended adapter checks whether the adapter was released.
const RELEASES_INTERVAL: Duration = Duration::from_secs(1);

/// An adapter that is installed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InstalledAdapter", example = example())]
struct View {
    /// Its id, which is also the `vendor` of controllers that it serves.
    id: String,
    /// Version of the package, such as `1.4.0`.
    version: String,
    /// SHA-256 of its code, hexadecimal.
    component_sha256: String,
    /// It failed so often that it takes no calls until it is released. Changes that are in flight are finished.
    quarantined: bool,
    /// The adapter takes no calls until then, because it failed in several organizations.
    suspended_until: Option<Timestamp>,
    /// Why this process does not serve the package that was installed last; null where it does. It goes on with the one
    /// before.
    behind: Option<String>,
    /// The shapes of credentials that it takes, of which a controller's credential has to complete one. Where there are none,
    /// it takes every credential.
    credentials: Vec<ShapeView>,
}

/// Fields that a credential has to have, all of them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CredentialShape")]
struct ShapeView {
    /// Id of the shape, such as `open-api`.
    id: String,
    /// Name for people.
    title: String,
    /// The fields, in the order of their names.
    fields: Vec<FieldView>,
}

/// A field of a credential.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CredentialShapeField")]
struct FieldView {
    /// Its name: `username`, `password`, `api-key`, or a name in a credential's `fields`.
    name: String,
    /// Its value is taken out of every answer of a device.
    is_secret: bool,
}

fn shapes_of(manifest: &Manifest) -> Vec<ShapeView> {
    let field = |(name, kind): (&String, &FieldKind)| FieldView {
        name: name.clone(),
        is_secret: *kind == FieldKind::Secret,
    };
    let shape = |(id, shape): (&String, &Shape)| ShapeView {
        id: id.clone(),
        title: shape.title.clone(),
        fields: shape.fields.iter().map(field).collect(),
    };
    manifest.credentials.iter().map(shape).collect()
}

fn example() -> serde_json::Value {
    json!({
        "id": "acme",
        "version": "0.1.0",
        "component_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "quarantined": false,
        "suspended_until": null,
        "behind": null,
        "credentials": [{
            "id": "web",
            "title": "Web login",
            "fields": [{ "name": "password", "is_secret": true }, { "name": "username", "is_secret": false }],
        }],
    })
}

/// The installed adapters, by id. They are few, so there are no pages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InstalledAdapters")]
struct List {
    items: Vec<View>,
}

impl View {
    fn of(app: &App, adapter: &Adapter) -> Self {
        let standing = adapter.standing();
        Self {
            behind: app.part::<Turns>().behind(adapter.id()),
            id: adapter.id().to_owned(),
            version: adapter.version().to_owned(),
            component_sha256: adapter.component_sha256().to_owned(),
            quarantined: standing.is_quarantined,
            suspended_until: standing.suspended_until,
            credentials: shapes_of(adapter.manifest()),
        }
    }
}

/// The example of an id is an adapter that is installed.
pub(crate) fn routes(installed: &[String]) -> Routes {
    Routes::default()
        .get(
            "/adapters",
            Access::Permission(CONTROLLER_READ),
            list,
            doc("Adapters that are installed in this process, and whether they take calls")
                .answers::<List>(200),
        )
        .get(
            "/adapters/{adapter_id}",
            Access::Permission(CONTROLLER_READ),
            get,
            doc("One adapter that is installed in this process, and which credentials it takes")
                .answers::<View>(200)
                .example("adapter_id", installed.first().map(String::as_str)),
        )
        .post(
            "/adapters/{adapter_id}/release",
            Access::SuperAdmin,
            release,
            doc("Let an adapter take calls again that was suspended or quarantined, in every process")
                .answers::<View>(200)
                .example("adapter_id", installed.first().map(String::as_str)),
        )
}

async fn list(State(app): State<SharedApp>, _: Caller) -> Answer<List> {
    Answer(List { items: app.runtime.adapters().iter().map(|adapter| View::of(&app, adapter)).collect() })
}

/// Id of an adapter in a path.
#[derive(Debug, Deserialize)]
struct OnAdapter {
    adapter_id: String,
}

async fn get(
    State(app): State<SharedApp>,
    _: Caller,
    At(path): At<OnAdapter>,
) -> Result<Answer<View>, Error> {
    let adapter = app.runtime.adapter(&path.adapter_id).ok_or(Error::NotFound("adapter"))?;
    Ok(Answer(View::of(&app, &adapter)))
}

/// Releases after the audit entry is committed, so that no release is without its entry. A process that ends in between
/// also ends its suspensions.
async fn release(by: By, At(path): At<OnAdapter>) -> Result<Answer<View>, Error> {
    let By { app, caller, origin } = &by;
    let adapter = app.runtime.adapter(&path.adapter_id).ok_or(Error::NotFound("adapter"))?;
    let before = View::of(app, &adapter);
    let detail = json!({
        "adapter": before.id,
        "version": before.version,
        "component_sha256": before.component_sha256,
        "was_quarantined": before.quarantined,
        "was_suspended_until": before.suspended_until,
    });
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action: "adapter.released",
        target: ("adapter", id_of(&before.component_sha256)),
        detail,
    };
    let mut tx = app.db.write().await?;
    entry::record(&mut tx, app, origin, entry).await?;
    let release = Release {
        adapter_id: before.id.clone(),
        component_sha256: before.component_sha256.clone(),
        released_at: app.clock.now(),
    };
    adapter_releases::record(&mut tx, &release).await?;
    tx.commit().await?;
    adapter.release();
    tracing::warn!(
        component = before.id, user.id = %caller.user_id, request.id = origin.request_id,
        "adapter {} was released", before.id
    );
    Ok(Answer(View::of(app, &adapter)))
}

/// Applies releases of other processes until the service stops. Does not read the database while no adapter is
/// suspended.
pub(super) async fn follow_releases(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RELEASES_INTERVAL) => {}
        }
        if let Err(error) = take_over_releases(&app).await {
            tracing::warn!(error = %error, "releases of adapters cannot be read; tried again");
        }
    }
}

async fn take_over_releases(app: &SharedApp) -> Result<(), Error> {
    let is_suspended = |adapter: &Adapter| {
        let standing = adapter.standing();
        standing.is_quarantined || standing.suspended_until.is_some()
    };
    let suspended: Vec<Adapter> = app.runtime.adapters().into_iter().filter(is_suspended).collect();
    if suspended.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.read().await?;
    let releases = adapter_releases::all(&mut tx).await?;
    drop(tx);
    for adapter in suspended {
        let same = |release: &&Release| {
            release.adapter_id == adapter.id() && release.component_sha256 == adapter.component_sha256()
        };
        if releases.iter().find(same).is_some_and(|release| adapter.release_as_of(release.released_at)) {
            tracing::warn!(component = adapter.id(), "adapter {} was released elsewhere", adapter.id());
        }
    }
    Ok(())
}
