//! A person lets changes be applied at a controller whose release the adapter was not tested with.

use axum::http::StatusCode;
use heddle_core::ControllerId;
use heddle_core::release::ReleaseState;
use heddle_core::storable::{VERSION_CHARS_MAX, is_whole};
use heddle_kernel::checks::Checks;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{self, By};
use heddle_runtime::Adapter;
use heddle_store::controllers::{Controller, releases};
use heddle_store::{Scope, Tx, events};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Place, changed, judge};
use crate::controllers::Controllers;

/// The version that is allowed: the one that the controller runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "UntestedRelease")]
struct AllowBody {
    /// As `firmware` of the controller says it. Another version needs another permission.
    #[schemars(length(min = 1, max = VERSION_CHARS_MAX))]
    version: String,
}

pub(crate) fn routes(write: Access) -> Routes {
    let path = "/controllers/{controller_id}/untested-release";
    Routes::default()
        .post(
            path,
            write,
            allow,
            doc(
                "Let changes be applied at a controller although the adapter was not tested with its release",
            )
            .named("allow_untested_release")
            .body::<AllowBody>()
            .answers::<Controller>(200),
        )
        .delete(
            path,
            write,
            withdraw,
            doc("Apply no more changes at a controller whose release the adapter was not tested with")
                .named("withdraw_untested_release")
                .empty(204),
        )
}

async fn allow(
    by: By,
    At(id): At<ControllerId>,
    Json(body): Json<AllowBody>,
) -> Result<One<Controller>, Error> {
    let mut checks = Checks::default();
    checks.require(!body.version.is_empty(), "version", "must not be empty");
    checks.chars("version", &body.version, VERSION_CHARS_MAX);
    checks.done()?;
    let mut tx = by.app.db.write().await?;
    // The version of the body is the state that the person saw.
    let controller = resource::locked::<Controllers>(&mut tx, &by, id, &IfMatch::default()).await?;
    let Some(runs) = controller.firmware.as_deref() else {
        return Err(Error::conflict(
            "the controller was not read yet; sync it, then allow the version that it runs",
        ));
    };
    if body.version != runs {
        let message = format!("the controller runs '{runs}'; send that as the version");
        return Err(Error::field("version", message));
    }
    if !is_whole(runs) {
        return Err(Error::conflict(
            "the version of the controller was shortened or cleaned when it was stored: other versions look the same, so \
             it cannot be allowed",
        ));
    }
    let adapter = by.app.adapter(&controller.vendor)?;
    let state = state_with(&adapter, &controller, Some(runs));
    if state != ReleaseState::Allowed {
        let message = format!("release {runs} is {state}: changes are applied without this");
        return Err(Error::conflict(message));
    }
    let after = write(&mut tx, &by, &controller, Some(runs), state).await?;
    tx.commit().await?;
    Ok(One(after))
}

/// Changes that are being applied go on to their end. An adapter that is out of service does not keep a permission.
async fn withdraw(by: By, At(id): At<ControllerId>) -> Result<StatusCode, Error> {
    let mut tx = by.app.db.write().await?;
    let controller = resource::locked::<Controllers>(&mut tx, &by, id, &IfMatch::default()).await?;
    if controller.allowed_release.is_none() {
        return Err(Error::NotFound("allowed release"));
    }
    let state = match by.app.adapter(&controller.vendor) {
        Ok(adapter) => state_with(&adapter, &controller, None),
        Err(_) if controller.release_state == ReleaseState::Allowed => ReleaseState::Untested,
        Err(_) => controller.release_state,
    };
    write(&mut tx, &by, &controller, None, state).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The state of a controller when this version is allowed there.
fn state_with(adapter: &Adapter, controller: &Controller, allowed: Option<&str>) -> ReleaseState {
    let (product, version) = (controller.product.as_deref(), controller.firmware.as_deref());
    judge(adapter.releases(), product, version, allowed)
}

/// Writes the permission, its event and its audit entry.
async fn write(
    tx: &mut Tx,
    by: &By,
    before: &Controller,
    allowed: Option<&str>,
    state: ReleaseState,
) -> Result<Controller, Error> {
    let By { app, .. } = by;
    let (scope, now) = (Scope::organization(before.org_id), app.clock.now());
    let after = releases::allow(tx, &scope, before.id, allowed, state, now).await?;
    let after = after.ok_or(Error::NotFound("controller"))?;
    let place = Place { org: after.org_id, site: after.site_id, controller: after.id };
    let version = after.firmware.as_deref().unwrap_or_default();
    if let Some(event) = changed(place, version, (before.release_state, state)) {
        events::append(tx, &event, &app.clock).await?;
    }
    let shown = |one: &Controller| json!({ "allowed_release": one.allowed_release, "release_state": one.release_state });
    let detail = json!({
        "name": after.name, "product": after.product, "version": after.firmware,
        "before": shown(before), "after": shown(&after),
    });
    let action =
        if allowed.is_some() { "controller.release_allowed" } else { "controller.release_withdrawn" };
    by.record::<Controllers>(tx, &after, action, detail).await?;
    Ok(after)
}
