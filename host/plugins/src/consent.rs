//! What a person is asked to agree to before a package serves, and the agreement.

use heddle_core::operation::OperationKind;
use heddle_core::plugin::PluginState;
use heddle_fabric::provided::kind_of;
use heddle_kernel::app::App;
use heddle_kernel::http::conditional::IfMatch;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::grant::{self, Grant};
use heddle_packages::Ground;
use heddle_store::Tx;
use heddle_store::plugins::{self, PluginRow, VersionRow};
use serde_json::json;

use crate::change::{begin, live, missing, prepared, tell};
use crate::index::parsed;
use crate::install::{agree, bind, forget_others, granted, hand_over, hash_of, replace, supersede};
use crate::revoke::judge;
use crate::service::apply;
use crate::transition::{Actor, Change};
use crate::turns::Turns;
use crate::view::{Consent, Outcome, in_words};

/// Says what a package may do, against what was agreed to before.
pub(crate) async fn show(app: &App, plugin: &str) -> Result<Consent, Error> {
    let mut tx = app.db.read().await?;
    let row = live(plugins::find(&mut tx, plugin).await?)?;
    let version = asked_for(&mut tx, &row).await?;
    let agreed = before(&mut tx, &row).await?;
    drop(tx);
    let asked = grant_of(&version)?;
    let is_read = |operation: &str| kind_of(app, operation) == Some(OperationKind::Read);
    let is_needed = row.waiting_sha256.as_ref() == Some(&version.manifest_sha256);
    let difference = grant::difference(&agreed.unwrap_or_default(), &asked, is_read);
    let views = |items: Vec<grant::Item>| items.into_iter().map(Into::into).collect();
    Ok(Consent {
        grant_hash: hash_of(&version, &asked),
        version: version.version,
        manifest_sha256: version.manifest_sha256,
        publisher: version.publisher,
        key_id: version.key_id,
        reason: version.reason.filter(|_| is_needed),
        is_needed,
        items: in_words(app, &asked),
        added: views(difference.added),
        removed: views(difference.removed),
    })
}

/// The package that consent is about: the one that waits, or else the one that serves.
async fn asked_for(tx: &mut Tx, row: &PluginRow) -> Result<VersionRow, Error> {
    let manifest = row.waiting_sha256.as_ref().or(row.serving_sha256.as_ref());
    let found = match manifest {
        Some(manifest) => plugins::find_version(tx, manifest).await?,
        None => None,
    };
    found.ok_or_else(|| Error::Conflict {
        kind: "nothing_to_consent",
        message: format!("'{}' has no package that could serve; install one", row.plugin_id),
    })
}

/// What was agreed to for the package that serves.
async fn before(tx: &mut Tx, row: &PluginRow) -> Result<Option<Grant>, Error> {
    let Some(serving) = &row.serving_sha256 else { return Ok(None) };
    plugins::grant_of(tx, row.id, serving).await?.map(|agreed| granted(&agreed)).transpose()
}

fn grant_of(version: &VersionRow) -> Result<Grant, Error> {
    let manifest = parsed(&version.manifest).ok_or_else(|| {
        Error::Unavailable("the manifest of the package cannot be read; install the package again".to_owned())
    })?;
    Ok(grant::of(&manifest))
}

/// A person agrees to what the waiting package may do, by the hash of it. The package serves from then on.
pub(crate) async fn agree_to(
    by: &By,
    plugin: &str,
    grant_hash: &str,
    if_match: &IfMatch,
) -> Result<Outcome, Error> {
    let app = &by.app;
    let turns = Turns::of(app);
    let _place = turns.place()?;
    let row = live(plugins::find(&mut app.db.single().await?, plugin).await?)?;
    let waiting = row.waiting_sha256.clone().ok_or_else(|| nothing_waits(plugin))?;
    let ground = Ground::of(app).await?;
    let one = turns.prepare().await;
    let (package, ready) = prepared(app, &row, &waiting, &ground).await?;
    drop(one);
    let mut seen = turns.take().await;

    let (mut tx, mut row) = begin(app, plugin, if_match).await?;
    if row.waiting_sha256.as_ref() != Some(&waiting) {
        return Err(nothing_waits(plugin));
    }
    let version = plugins::find_version(&mut tx, &waiting).await?.ok_or_else(missing)?;
    let asked = grant_of(&version)?;
    if hash_of(&version, &asked) != grant_hash {
        return Err(Error::Conflict {
            kind: "grant_changed",
            message: format!(
                "grant_hash is not that of version {}, which waits: read GET /plugins/{plugin}/consent again",
                version.version
            ),
        });
    }
    judge(&mut tx, &version, false).await?;
    let held = bind(&mut tx, app, &package, &ground).await?;
    let before = row.clone();
    replace(&mut row, waiting.clone());
    hand_over(&mut tx, &mut row, &held, &version).await?;
    let row = plugins::update(&mut tx, &row, app.clock.now()).await?;
    supersede(&mut tx, &before, &row, PluginState::Checked).await?;
    plugins::set_version_state(&mut tx, &waiting, row.state, row.reason.as_deref()).await?;
    agree(&mut tx, Actor::Person(by), &row, &version, &asked).await?;
    forget_others(&mut tx, &row).await?;
    let change = Change {
        reason: row.reason.as_deref(),
        detail: json!({
            "replaces_manifest_sha256": before.serving_sha256, "grant_hash": grant_hash,
            "replaces_publisher": held.publisher, "publisher": version.publisher,
        }),
        ..Change::between(Some(PluginState::AwaitingConsent), row.state)
    };
    tell(&mut tx, by, &row, &version, &change).await?;
    tx.commit().await?;
    let outcome = Outcome::of(&row, &VersionRow { state: row.state, reason: row.reason.clone(), ..version });
    apply(app, &mut seen, plugin, Some(ready)).await?;
    Ok(outcome)
}

fn nothing_waits(plugin: &str) -> Error {
    Error::Conflict {
        kind: "nothing_to_consent",
        message: format!("no package of '{plugin}' waits for consent; install one that does more"),
    }
}
