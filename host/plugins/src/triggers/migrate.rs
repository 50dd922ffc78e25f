//! Brings what a plugin stored for an organization to the version that serves.
//!
//! A version that exports `migration` works on a copy, while nothing else is written; the copy takes the storage's place in
//! one step. What was stored before is kept for a return to the version before. A process that is killed meanwhile leaves the
//! storage as it was, and the next one begins anew.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::notification::Severity;
use heddle_core::{OrgId, Timestamp};
use heddle_delivery::notifications::message::Message;
use heddle_delivery::notifications::notices;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_runtime::{CallError, PluginCall};
use heddle_store::Tx;
use heddle_store::audit::{self, NewAudit};
use heddle_store::plugins;
use heddle_store::plugins::organizations::{self, OrganizationRow};
use heddle_store::plugins::storage::{self, StorageRow};
use heddle_store::plugins::values::{Generation, Keeper};
use serde_json::{Value, json};

use super::ready::Callee;
use super::{LEASE, is_final, is_unmade};
use crate::index::Index;
use crate::operations::Behalf;
use crate::storage::is_older;
use crate::transition::HOST;

/// How long what was stored before is kept.
const KEPT: TimeDelta = TimeDelta::days(7);
/// What is about to be forgotten is not put back: another process may have begun.
const KEPT_MARGIN: TimeDelta = TimeDelta::minutes(1);
/// Wall time of the call, which is over before another process takes the work.
const WALL: Duration = Duration::from_mins(2);
/// How often a call that is under way looks whether it is still wanted.
const LOOK: Duration = Duration::from_secs(1);
/// How long values are kept after they stopped being the storage: longer than any call that may still read them.
const UNSEEN: TimeDelta = TimeDelta::minutes(10);
/// Values that are copied in one transaction.
const BATCH: u32 = 1_000;
/// How long after a failure that may pass it is tried again.
const AGAIN: TimeDelta = TimeDelta::minutes(5);
/// The same where others had all places, or the plugin is suspended.
const BUSY: TimeDelta = TimeDelta::seconds(30);

/// How bringing the storage to a version ended.
pub(super) enum Brought {
    Done,
    /// Something else is to be done for the plugin in the organization meanwhile.
    Lost,
    /// Why, where that is to be shown, and when it is tried again.
    Failed(Option<String>, Option<Timestamp>),
}

/// Claims settings, or prolongs the claim. False if the settings were changed, or another process claimed them.
pub(super) async fn hold(app: &App, set: &mut OrganizationRow) -> Result<bool, Error> {
    let (until, term) = (app.clock.now() + LEASE, app.membership.term()?);
    let mut tx = app.db.write().await?;
    let is_ours = organizations::claim(&mut tx, set, term.id, until).await?;
    tx.commit().await?;
    if is_ours {
        set.configure_at = Some(until);
    }
    Ok(is_ours)
}

/// Puts back what is kept where the version that serves knows it. This asks nothing of the plugin, and so needs neither fitting
/// settings nor a user with rights. Who calls this holds the settings.
pub(super) async fn put_back(app: &SharedApp, set: &OrganizationRow) -> Result<(), Error> {
    let keeper = Keeper { org: set.org_id, plugin: set.plugin_uid };
    let serving = Index::of(app).by_uid(set.plugin_uid).and_then(|known| {
        let plugin = app.runtime.plugin(&known.row.plugin_id)?;
        (known.row.serving_sha256.as_deref() == Some(plugin.manifest_sha256())).then_some(plugin)
    });
    let Some(plugin) = serving else { return Ok(()) };
    let (version, now) = (plugin.version(), app.clock.now());
    let stored = crate::storage::of(&mut app.db.single().await?, &plugin, keeper).await?;
    let Some(stored) = stored.filter(|stored| returns(stored, version, now)) else { return Ok(()) };
    let mut tx = app.db.write().await?;
    if !organizations::is_claimed(&mut tx, set).await? {
        return Ok(());
    }
    // This process may be behind: the copy of a version that no longer serves must not replace the storage.
    let row = plugins::find(&mut tx, plugin.id()).await?;
    let serves = row.is_some_and(|row| row.serving_sha256.as_deref() == Some(plugin.manifest_sha256()));
    if !serves || !storage::put_back(&mut tx, keeper, now + UNSEEN).await? {
        return Ok(());
    }
    let back = storage::open(&mut tx, keeper, version).await?;
    let versions = (stored.version.as_str(), back.version.as_str());
    tell(&mut tx, app, (keeper, plugin.id()), "plugin.storage_put_back", versions, json!({})).await?;
    Ok(tx.commit().await?)
}

/// Brings the storage to the version that serves. Who calls this holds the settings.
pub(super) async fn bring(
    app: &SharedApp,
    set: &mut OrganizationRow,
    callee: &Callee,
) -> Result<Brought, Error> {
    let (plugin, keeper) = (&callee.plugin, callee.keeper);
    let version = plugin.version();
    if plugin.manifest().capabilities.kv.is_none() || callee.stands_at(version) {
        return Ok(Brought::Done);
    }
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    if !organizations::is_claimed(&mut tx, set).await? {
        return Ok(Brought::Lost);
    }
    let stored = storage::open(&mut tx, keeper, version).await?;
    if stored.version == version || !plugin.has_migration() {
        let migrated_to = stored.migrated_to.as_deref().filter(|migrated| !is_older(version, migrated));
        storage::take_over(&mut tx, keeper, (version, migrated_to)).await?;
        tx.commit().await?;
        return Ok(Brought::Done);
    }
    let is_empty = storage::is_empty(&mut tx, stored.living(), now).await?;
    let stored = storage::begin(&mut tx, keeper, now + UNSEEN).await?;
    tx.commit().await?;
    if is_empty {
        // Nothing is asked of the plugin; what calls of the version before would store now is not taken for its own.
        return finish(app, set, callee, (&stored, true)).await;
    }
    migrate(app, set, callee, &stored).await
}

/// Whether what is kept is what this version knows: it is from before the last migration, which was to a newer version.
fn returns(stored: &StorageRow, version: &str, now: Timestamp) -> bool {
    let (Some(kept), Some(migrated)) = (&stored.kept_version, &stored.migrated_to) else { return false };
    // What the version that serves knows stays for it, however late its organization comes back.
    let is_kept = kept == version || stored.kept_until.is_some_and(|until| until > now + KEPT_MARGIN);
    is_kept && is_older(version, migrated) && !is_older(version, kept)
}

/// Copies the values, and has the plugin bring the copy to its version.
async fn migrate(
    app: &SharedApp,
    set: &mut OrganizationRow,
    callee: &Callee,
    stored: &StorageRow,
) -> Result<Brought, Error> {
    let draft = draft(stored);
    let mut after = String::new();
    loop {
        let mut tx = app.db.write().await?;
        if !organizations::is_claimed(&mut tx, set).await? {
            return give_up(app, tx, draft).await;
        }
        let last = storage::copy(&mut tx, stored.living(), draft.number, (&after, BATCH)).await?;
        tx.commit().await?;
        let Some(last) = last else { break };
        after = last;
    }
    if !hold(app, set).await? {
        return give_up(app, app.db.write().await?, draft).await;
    }
    let behalf = Behalf::by_itself(app, callee.author.clone(), draft.number);
    let request_id = format!("migration-{}", behalf.run_id);
    let call = PluginCall { deadline: Some(WALL), ..callee.call(behalf, request_id) };
    let outcome = tokio::select! {
        outcome = callee.plugin.migrate(&call, &stored.version) => outcome,
        lost = lost(app, set) => {
            lost?;
            return give_up(app, app.db.write().await?, draft).await;
        }
    };
    match outcome {
        Ok(()) => finish(app, set, callee, (stored, false)).await,
        Err(error) => fail(app, set, callee, stored, error).await,
    }
}

/// Returns when the settings are held no longer: the plugin was switched off, set anew, or serves another package.
async fn lost(app: &App, set: &OrganizationRow) -> Result<(), Error> {
    loop {
        tokio::time::sleep(LOOK).await;
        let mut tx = app.db.read().await?;
        let now = organizations::find(&mut tx, set.org_id, set.plugin_uid).await?;
        if now.is_none_or(|now| now.revision != set.revision || now.configure_at != set.configure_at) {
            return Ok(());
        }
    }
}

fn draft(stored: &StorageRow) -> Generation {
    Generation { keeper: stored.keeper(), number: stored.draft_generation.unwrap_or(stored.last_generation) }
}

async fn give_up(app: &App, mut tx: Tx, draft: Generation) -> Result<Brought, Error> {
    storage::give_up(&mut tx, draft, app.clock.now() + UNSEEN).await?;
    tx.commit().await?;
    forget(app, draft).await?;
    Ok(Brought::Lost)
}

/// Forgets what a draft has that was given up: attempts that come again leave nothing behind.
async fn forget(app: &App, draft: Generation) -> Result<(), Error> {
    loop {
        let mut tx = app.db.write().await?;
        let forgotten = storage::forget_draft(&mut tx, draft, BATCH).await?;
        tx.commit().await?;
        if forgotten == 0 {
            return Ok(());
        }
    }
}

/// Puts the draft into the storage's place.
async fn finish(
    app: &SharedApp,
    set: &OrganizationRow,
    callee: &Callee,
    (stored, is_empty): (&StorageRow, bool),
) -> Result<Brought, Error> {
    let (version, draft) = (callee.plugin.version(), draft(stored));
    let mut tx = app.db.write().await?;
    if !organizations::is_claimed(&mut tx, set).await? {
        return give_up(app, tx, draft).await;
    }
    let now = app.clock.now();
    let kept_until = now + KEPT;
    if !storage::finish(&mut tx, draft, version, (kept_until, now + UNSEEN)).await? {
        return Ok(Brought::Lost);
    }
    if !is_empty {
        let more = json!({ "kept_until": kept_until });
        let versions = (stored.version.as_str(), version);
        let of = (callee.keeper, callee.plugin.id());
        tell(&mut tx, app, of, "plugin.storage_migrated", versions, more).await?;
    }
    tx.commit().await?;
    Ok(Brought::Done)
}

/// Gives the draft up, and says why.
async fn fail(
    app: &SharedApp,
    set: &OrganizationRow,
    callee: &Callee,
    stored: &StorageRow,
    error: CallError,
) -> Result<Brought, Error> {
    let (version, now) = (callee.plugin.version(), app.clock.now());
    let mut tx = app.db.write().await?;
    let is_ours = organizations::is_claimed(&mut tx, set).await?;
    storage::give_up(&mut tx, draft(stored), now + UNSEEN).await?;
    let failed = if !is_ours {
        Brought::Lost
    } else if is_unmade(&error) {
        Brought::Failed(None, Some(now + BUSY))
    } else {
        let again = (!is_final(&error)).then(|| now + AGAIN);
        let problem = format!(
            "version {version} could not take over what version {} stored: {}",
            stored.version,
            Error::from(error)
        );
        warn(&mut tx, app, callee, (&problem, again.is_some())).await?;
        Brought::Failed(Some(problem), again)
    };
    tx.commit().await?;
    forget(app, draft(stored)).await?;
    Ok(failed)
}

/// Notes in the audit log of the organization that values of another form are its plugin's storage.
async fn tell(
    tx: &mut Tx,
    app: &App,
    (keeper, plugin): (Keeper, &str),
    action: &str,
    (from, to): (&str, &str),
    more: Value,
) -> Result<(), Error> {
    let mut detail = more;
    detail["plugin"] = json!(plugin);
    detail["before"] = json!({ "version": from });
    detail["after"] = json!({ "version": to });
    let org: OrgId = keeper.org;
    let entry = NewAudit {
        org_id: org,
        actor_id: None,
        actor_name: HOST.to_owned(),
        action: action.to_owned(),
        target_type: "plugin".to_owned(),
        target_id: Some(keeper.plugin.0),
        detail,
        request_id: None,
        ip: None,
    };
    audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
    let (component, organization) = (plugin, org);
    tracing::info!(component, organization.id = %organization, from, to, "{action}");
    Ok(())
}

/// Tells the administrators, once for each version, that the migration failed and what they can do.
async fn warn(
    tx: &mut Tx,
    app: &App,
    callee: &Callee,
    (problem, comes_again): (&str, bool),
) -> Result<(), Error> {
    let (id, version) = (callee.plugin.id(), callee.plugin.version());
    let again = if comes_again {
        "it is tried again every 5 minutes".to_owned()
    } else {
        format!("PUT /plugins/{id}/organization tries it again")
    };
    let message = Message {
        severity: Severity::Warning,
        source: "plugins",
        subject: format!("Plugin '{id}' could not take over what it stored"),
        body: format!(
            "{problem}. Nothing is lost and the plugin is not called. A super_admin can go back to the version before \
            or install a newer one; {again}"
        ),
    };
    let origin = format!("storage:{id}:{version}");
    notices::tell_administrators(tx, app, callee.keeper.org, &message, Some(origin)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn what_is_kept_is_put_back_for_a_version_that_knows_it() {
        let clock = Clock::default();
        let now = clock.now();
        let stored = |(kept, migrated): (Option<&str>, &str), until: TimeDelta| StorageRow {
            org_id: clock.new_id(),
            plugin_uid: clock.new_id(),
            version: "3.0.0".to_owned(),
            migrated_to: Some(migrated.to_owned()),
            generation: 1,
            last_generation: 1,
            draft_generation: None,
            kept_version: kept.map(str::to_owned),
            kept_migrated_to: None,
            kept_generation: Some(0),
            kept_until: kept.map(|_| now + until),
            sweep_at: None,
        };
        let week = TimeDelta::days(7);
        let from_1 = Some("1.0.0");
        for (kept, until, serves, expected) in [
            ((from_1, "3.0.0"), week, "1.0.0", true),
            ((from_1, "3.0.0"), week, "2.0.0", true),
            ((Some("2.0.0"), "3.0.0"), week, "1.9.0", false),
            ((from_1, "3.0.0"), week, "3.0.0", false),
            ((from_1, "3.0.0"), week, "3.1.0", false),
            // Version 3 took what 2 had brought to its form: 2 knows it.
            ((from_1, "2.0.0"), week, "2.0.0", false),
            ((from_1, "2.0.0"), week, "1.5.0", true),
            ((from_1, "3.0.0"), TimeDelta::seconds(30), "1.5.0", false),
            ((from_1, "3.0.0"), TimeDelta::seconds(-30), "1.0.0", true),
            ((None, "3.0.0"), week, "1.0.0", false),
        ] {
            assert_eq!(returns(&stored(kept, until), serves, now), expected, "{kept:?} {until} {serves}");
        }
    }
}
