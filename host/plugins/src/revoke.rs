//! Takes plugins out of service whose packages the catalogue revokes, and cuts their calls where it says so.

use std::collections::BTreeMap;

use heddle_core::plugin::PluginState;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_marketplace::catalog::{Action, Revocation, Subject as Listed, gravest};
use heddle_packages::{NotLoaded, Pauses, revocations};
use heddle_store::Tx;
use heddle_store::plugins::{self, PluginRow, PluginUid, VersionRow};
use semver::Version;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::install::forget_others;
use crate::service::{Prepared, take_over};
use crate::transition::{Actor, Change, Subject, record};
use crate::turns::Turns;

/// What the reason of a plugin begins with that a catalogue took out of service.
const REVOKED: &str = "revoked by the catalogue: ";

/// Writes how plugins stand after these revocations, in the transaction that stores them. Returns the ids of those that stand
/// otherwise than before; [`take_up`] puts that into effect, and every other process follows.
pub async fn revoke(tx: &mut Tx, actor: Actor<'_>, revoked: &[Revocation]) -> Result<Vec<String>, Error> {
    if revoked.is_empty() {
        return Ok(Vec::new());
    }
    let mut concerned: BTreeMap<PluginUid, Vec<(VersionRow, &Revocation)>> = BTreeMap::new();
    for version in plugins::standing_versions(tx).await? {
        if let Some(revocation) = of(&version, revoked) {
            concerned.entry(version.plugin_uid).or_default().push((version, revocation));
        }
    }
    // All rows are locked before anything is recorded: a change of one of them locks in the same order.
    let mut rows = Vec::new();
    for row in plugins::all(tx).await?.into_iter().filter(|row| concerned.contains_key(&row.id)) {
        rows.extend(plugins::lock(tx, &row.plugin_id).await?);
    }
    let mut changed = Vec::new();
    for mut row in rows {
        let before = row.clone();
        for (version, revocation) in concerned.get(&row.id).into_iter().flatten() {
            withdraw(tx, actor, &mut row, version, revocation).await?;
        }
        if row != before {
            let row = plugins::update(tx, &row, actor.app().clock.now()).await?;
            forget_others(tx, &row).await?;
            changed.push(row.plugin_id);
        }
    }
    Ok(changed)
}

/// Whether a catalogue took the plugin out of service, and no person has looked at it since.
pub(crate) fn is_withdrawn(row: &PluginRow) -> bool {
    matches!(row.state, PluginState::Disabled | PluginState::Quarantined)
        && row.reason.as_deref().is_some_and(|reason| reason.starts_with(REVOKED))
}

/// Refuses a package that may not serve from now on, in the transaction that writes that it does, which holds the gate. What is blocked goes on where it serves, and is not put back where it does not.
pub(crate) async fn judge(tx: &mut Tx, version: &VersionRow, goes_on: bool) -> Result<(), Error> {
    let revoked = revocations(tx).await?;
    match of(version, &revoked) {
        Some(revocation) if !(goes_on && revocation.action == Action::Block) => Err(Error::Conflict {
            kind: "package_revoked",
            message: format!(
                "version {} is revoked by the catalogue: {}; install another version",
                version.version, revocation.reason
            ),
        }),
        _ => Ok(()),
    }
}

/// Takes up what [`revoke`] wrote, once it is committed.
pub async fn take_up(app: &SharedApp) -> Result<(), Error> {
    let mut seen = Turns::of(app).take().await;
    // What is to be loaded is at the next look: what is revoked is cut now.
    take_over(app, &mut seen, &mut Pauses::default(), Prepared::new()).await
}

/// The gravest of the revocations of a package.
fn of<'a>(version: &VersionRow, revoked: &'a [Revocation]) -> Option<&'a Revocation> {
    let id = version.manifest.get("id").and_then(Value::as_str)?;
    let number = Version::parse(&version.version).ok()?;
    let key_ids = Vec::<String>::deserialize(&version.signed_by).unwrap_or_default();
    let keys = if key_ids.is_empty() { vec![version.key_id.clone()] } else { key_ids };
    let listed = Listed {
        plugin: id,
        version: &number,
        package_sha256: Some(&version.archive_sha256),
        manifest_sha256: Some(&version.manifest_sha256),
        component_sha256: Some(&version.component_sha256),
        key_ids: &keys,
    };
    gravest(revoked, &listed)
}

/// Changes how a plugin stands whose package is revoked, and records it.
async fn withdraw(
    tx: &mut Tx,
    actor: Actor<'_>,
    row: &mut PluginRow,
    version: &VersionRow,
    revocation: &Revocation,
) -> Result<(), Error> {
    let reason = format!("{REVOKED}{}", revocation.reason);
    let manifest = Some(&version.manifest_sha256);
    let (from, to) = if row.waiting_sha256.as_ref() == manifest {
        row.waiting_sha256 = None;
        if row.serving_sha256.is_none() {
            (row.state, row.reason) = (PluginState::Rejected, Some(reason.clone()));
        }
        (PluginState::AwaitingConsent, PluginState::Rejected)
    } else if row.serving_sha256.as_ref() == manifest {
        let to = match (revocation.action, row.state) {
            (Action::Disable, PluginState::Active) => PluginState::Disabled,
            (Action::Kill, PluginState::Active | PluginState::Disabled) => PluginState::Quarantined,
            // One that failed too often is off for this reason from now on.
            (Action::Disable | Action::Kill, PluginState::Quarantined) if !is_withdrawn(row) => {
                PluginState::Quarantined
            }
            _ => return Ok(()),
        };
        let from = row.state;
        (row.state, row.reason) = (to, Some(reason.clone()));
        (from, to)
    } else {
        return Ok(());
    };
    plugins::set_version_state(tx, &version.manifest_sha256, to, Some(&reason)).await?;
    let subject = Subject {
        uid: row.id,
        plugin: &row.plugin_id,
        version: &version.version,
        manifest_sha256: &version.manifest_sha256,
    };
    let change = Change {
        reason: Some(&reason),
        detail: json!({ "revocation": revocation }),
        ..Change::between(Some(from), to)
    };
    record(tx, actor, &subject, &change).await
}

/// Whether the calls of this package are to be cut.
pub(crate) async fn is_killed(tx: &mut Tx, manifest_sha256: &str) -> Result<bool, NotLoaded> {
    let Some(version) = plugins::find_version(tx, manifest_sha256).await? else { return Ok(false) };
    let revoked = revocations(tx).await?;
    Ok(of(&version, &revoked).is_some_and(|revocation| revocation.action == Action::Kill))
}
