//! Tells plugins of the settings that organizations gave them.

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::plugins::organizations::{self, OrganizationRow};
use heddle_store::plugins::values::Keeper;

use super::migrate::{Brought, bring, hold, put_back};
use super::ready::{Callee, Ready, What, ready};
use super::{Occasions, is_final, is_unmade, pause};
use crate::operations::Behalf;
use crate::storage;

/// How long after a failure that may pass the plugin is told again.
const AGAIN: TimeDelta = TimeDelta::minutes(5);
/// How long after another process may have taken the work that this one could not do.
const ELSEWHERE: TimeDelta = TimeDelta::seconds(2);

/// Why a plugin did not take its settings, where that is to be shown, and when it is told again.
type Untaken = (Option<String>, Option<Timestamp>);

/// Has a plugin take over what another version stored, tells it of its settings, and writes how it took them.
pub(super) async fn configure(app: &SharedApp, mut set: OrganizationRow) -> Result<(), Error> {
    if !hold(app, &mut set).await? {
        return Ok(());
    }
    put_back(app, &set).await?;
    let keeper = Keeper { org: set.org_id, plugin: set.plugin_uid };
    let mut tx = app.db.read().await?;
    let ready = ready(app, &mut tx, keeper, What::Settings).await?;
    drop(tx);
    let now = app.clock.now();
    let callee = match ready {
        Ready::Yes(callee) => callee,
        Ready::Off => return write(app, &set, None, (None, None)).await,
        Ready::Later(problem, after) => {
            return write(app, &set, None, (Some(problem), Some(now + after))).await;
        }
        Ready::Elsewhere(_) => return write(app, &set, None, (None, Some(now + ELSEWHERE))).await,
    };
    match bring(app, &mut set, &callee).await? {
        Brought::Done => {}
        Brought::Lost => return Ok(()),
        Brought::Failed(problem, again) => return write(app, &set, None, (problem, again)).await,
    }
    // With the storage as it is now.
    let mut tx = app.db.read().await?;
    let stored = storage::of(&mut tx, &callee.plugin, keeper).await?;
    drop(tx);
    if storage::unfit(&callee.plugin, stored.as_ref()).is_some() || !hold(app, &mut set).await? {
        return Ok(());
    }
    let callee = Callee { storage: stored, ..*callee };
    let configured = format!("{}:{}", callee.plugin.manifest_sha256(), callee.set.revision);
    match told(app, &callee).await {
        Ok(()) => write(app, &set, Some(&configured), (None, None)).await?,
        Err(untaken) => write(app, &set, Some(&configured), untaken).await?,
    }
    // What waits for it goes on.
    Occasions::of(app).wake.notify_one();
    Ok(())
}

async fn told(app: &SharedApp, callee: &Callee) -> Result<(), Untaken> {
    let behalf = Behalf::by_itself(app, callee.author.clone(), callee.generation());
    let request_id = format!("settings-{}", behalf.run_id);
    let call = callee.call(behalf, request_id);
    callee.plugin.configure(&call).await.map_err(|error| {
        let now = app.clock.now();
        if is_unmade(&error) {
            return (None, Some(now + pause(1)));
        }
        let again = (!is_final(&error)).then(|| now + AGAIN);
        (Some(Error::from(error).to_string()), again)
    })
}

/// Writes how the plugin took its settings: `configured` where it was told of them.
async fn write(
    app: &SharedApp,
    set: &OrganizationRow,
    configured: Option<&str>,
    (problem, again): Untaken,
) -> Result<(), Error> {
    let configured = configured.unwrap_or(&set.configured);
    let mut tx = app.db.write().await?;
    organizations::configured(&mut tx, set, configured, (problem.as_deref(), again)).await?;
    Ok(tx.commit().await?)
}
