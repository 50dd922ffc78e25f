//! Tells plugins of the settings that organizations gave them.

use heddle_core::Timestamp;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::plugins::organizations::{self, OrganizationRow};
use heddle_store::plugins::values::Keeper;

use super::ready::{Callee, Ready, What, ready};
use super::{LEASE, Occasions, is_final};
use crate::operations::Behalf;

/// How long after a failure that may pass the plugin is told again.
const AGAIN: chrono::TimeDelta = chrono::TimeDelta::minutes(5);

/// Tells a plugin of its settings, and writes how it took them.
pub(super) async fn configure(app: &SharedApp, set: OrganizationRow) -> Result<(), Error> {
    let (until, term) = (app.clock.now() + LEASE, app.membership.term()?);
    let mut tx = app.db.write().await?;
    if !organizations::claim(&mut tx, &set, term.id, until).await? {
        return Ok(());
    }
    tx.commit().await?;
    let set = OrganizationRow { configure_at: Some(until), ..set };
    let keeper = Keeper { org: set.org_id, plugin: set.plugin_uid };
    let mut tx = app.db.read().await?;
    let ready = ready(app, &mut tx, keeper, What::Settings).await?;
    drop(tx);
    let callee = match ready {
        Ready::Yes(callee) => callee,
        Ready::Off => return write(app, &set, (&set.configured, None), None).await,
        Ready::Later(problem, after) => {
            let again = Some(app.clock.now() + after);
            return write(app, &set, (&set.configured, Some(&problem)), again).await;
        }
    };
    let configured = format!("{}:{}", callee.plugin.manifest_sha256(), callee.set.revision);
    let (problem, again) = match told(app, &callee).await {
        Ok(()) => (None, None),
        Err((problem, again)) => (Some(problem), again),
    };
    write(app, &set, (&configured, problem.as_deref()), again).await?;
    // What waits for it goes on.
    Occasions::of(app).wake.notify_one();
    Ok(())
}

async fn told(app: &SharedApp, callee: &Callee) -> Result<(), (String, Option<Timestamp>)> {
    let behalf = Behalf::by_itself(app, callee.author.clone());
    let request_id = format!("settings-{}", behalf.run_id);
    let call = callee.call(behalf, request_id);
    callee.plugin.configure(&call).await.map_err(|error| {
        let again = (!is_final(&error)).then(|| app.clock.now() + AGAIN);
        (Error::from(error).to_string(), again)
    })
}

async fn write(
    app: &SharedApp,
    set: &OrganizationRow,
    (configured, problem): (&str, Option<&str>),
    again: Option<Timestamp>,
) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    organizations::configured(&mut tx, set, configured, (problem, again)).await?;
    Ok(tx.commit().await?)
}
