//! The secret with which a controller proves its requests: made for people to enter at the controller, and shown once.

use axum::Json as Answer;
use axum::http::StatusCode;
use heddle_core::secret::random_secret;
use heddle_core::{ControllerId, Role};
use heddle_inventory::controllers::Controllers;
use heddle_inventory::controllers::declarations::CONTROLLER_WRITE;
use heddle_kernel::http::PREFIX;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::IfMatch;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{self, By};
use heddle_store::push::hooks;
use heddle_store::sealed::SealedColumn;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::plan;

/// The column of the sealed secret.
pub(crate) const COLUMN: SealedColumn =
    SealedColumn { table: "controller", column: "push_secret", key_id: None };

/// What a person enters at the controller.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ControllerPushSecret")]
struct Made {
    /// Proves the requests of this controller. It is shown this once.
    secret: String,
    /// Where the controller sends them.
    hooks: Vec<Hook>,
}

/// A channel that the controller opens.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ControllerPushHook")]
struct Hook {
    /// Its name in the manifest of the adapter.
    channel: String,
    /// Begins with `PUBLIC_URL`.
    url: String,
}

pub(crate) fn routes() -> Routes {
    let path = "/controllers/{controller_id}/push/secret";
    let write = Access::RoleWith(Role::OrgAdmin, CONTROLLER_WRITE);
    Routes::default()
        .post(
            path,
            write,
            make,
            doc("Make the secret with which a controller says what changed; the one before is worthless at once")
                .named("make_controller_push_secret")
                .answers::<Made>(200),
        )
        .delete(
            path,
            write,
            forget,
            doc("Take no more requests of a controller that say what changed")
                .named("forget_controller_push_secret")
                .untagged()
                .empty(204),
        )
}

/// What the secret of a controller is sealed for.
pub(crate) fn context(id: ControllerId) -> String {
    format!("{}:{id}", COLUMN.table)
}

async fn make(by: By, At(id): At<ControllerId>) -> Result<Answer<Made>, Error> {
    let By { app, .. } = &by;
    let secret = random_secret();
    let sealed = app.keys.seal(&context(id), secret.expose().as_bytes());
    let mut tx = app.db.write().await?;
    let controller = resource::locked::<Controllers>(&mut tx, &by, id, &IfMatch::default()).await?;
    let adapter = app.adapter(&controller.vendor)?;
    let names = plan::hooks(&adapter.manifest().push, controller.firmware.as_deref());
    if names.is_empty() {
        return Err(Error::Conflict {
            kind: "no_hook",
            message: format!("controllers of '{}' send no requests that say what changed", controller.vendor),
        });
    }
    hooks::set_secret(&mut tx, id, Some(&sealed)).await?;
    let detail = json!({ "name": controller.name, "hooks": names });
    by.record::<Controllers>(&mut tx, &controller, "controller.push_secret_made", detail).await?;
    tx.commit().await?;
    let base = app.config.link_base();
    let hook =
        |channel: String| Hook { url: format!("{base}{PREFIX}/controllers/{id}/push/{channel}"), channel };
    Ok(Answer(Made { secret: secret.expose().to_owned(), hooks: names.into_iter().map(hook).collect() }))
}

/// An adapter that is out of service keeps no secret.
async fn forget(by: By, At(id): At<ControllerId>) -> Result<StatusCode, Error> {
    let mut tx = by.app.db.write().await?;
    let controller = resource::locked::<Controllers>(&mut tx, &by, id, &IfMatch::default()).await?;
    if !hooks::set_secret(&mut tx, id, None).await? {
        return Err(Error::NotFound("secret of the controller"));
    }
    let detail = json!({ "name": controller.name });
    by.record::<Controllers>(&mut tx, &controller, "controller.push_secret_forgotten", detail).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
