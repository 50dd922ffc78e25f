//! Binds an id to the key of the package that serves, and records the package, in one transaction.

use heddle_core::Timestamp;
use heddle_kernel::app::App;
use heddle_marketplace::{Verified, in_words};
use heddle_store::packages::{self, Binding, Package};
use heddle_store::{Db, Tx, installed_packages};
use semver::Version;
use serde_json::{Value, json};

use crate::fit::{check, signer};
use crate::ground::Ground;
use crate::not_loaded::NotLoaded;

/// Lines of a package's rules that the audit log keeps, and characters of each.
const RULES_MAX: usize = 200;
const RULE_CHARS_MAX: usize = 1_000;

/// Binds the id to the package's key and records the package. Its permissions are shown before it serves.
pub async fn bind(app: &App, package: &Verified, ground: &Ground) -> Result<(), NotLoaded> {
    let mut tx = app.db.write().await?;
    let may_serve = |held: &Binding| check(package, held, ground);
    bind_in(&mut tx, package, ground, app.clock.now(), may_serve).await?;
    Ok(tx.commit().await?)
}

/// The same in a transaction of the caller's, which then holds the gate: what is revoked meanwhile finds the package. `may_serve` is asked about what the id is bound to once no other process
/// can change that. Returns the binding from before.
pub async fn bind_in(
    tx: &mut Tx,
    package: &Verified,
    ground: &Ground,
    now: Timestamp,
    may_serve: impl Fn(&Binding) -> Result<(), String>,
) -> Result<Binding, NotLoaded> {
    let ground = &ground.held(tx).await?;
    ground.may_run(package).map_err(NotLoaded::Refused)?;
    let manifest = package.manifest();
    let first = package.signers().first();
    let first = first.ok_or_else(|| NotLoaded::Refused("the package has no signer".to_owned()))?;
    let mut row = Package {
        manifest_sha256: package.manifest_sha256().to_owned(),
        adapter_id: manifest.id.clone(),
        version: manifest.version.to_string(),
        component_sha256: package.component_sha256().to_owned(),
        publisher: manifest.publisher.clone(),
        key_id: first.key_id(),
        rules: json!([]),
        first_served_at: now,
    };
    let held = packages::hold_binding(tx, &row).await?;
    // Asked again: another process may have bound the id meanwhile.
    may_serve(&held).map_err(NotLoaded::Refused)?;
    row.key_id = signer(package, &held, ground).unwrap_or(first).key_id();
    rebind(tx, &row, &held, now).await?;
    let lines = in_words(manifest);
    row.rules = kept_rules(&lines);
    if packages::record(tx, &row).await? {
        show(&row, &lines);
    }
    Ok(held)
}

/// Writes what the id is bound to from now on: this package's key, and the highest version that served.
async fn rebind(tx: &mut Tx, row: &Package, held: &Binding, now: Timestamp) -> Result<(), NotLoaded> {
    let version = Version::parse(&row.version).ok();
    let highest = Version::parse(&held.version).ok();
    let is_older = version.is_some() && highest.is_some() && version < highest;
    if version > highest {
        // A package that was put back in service gives way to a newer one.
        installed_packages::unpin(tx, &row.adapter_id, now).await?;
    }
    let bound = Binding {
        adapter_id: held.adapter_id.clone(),
        publisher: row.publisher.clone(),
        key_id: row.key_id.clone(),
        version: if is_older { held.version.clone() } else { row.version.clone() },
        manifest_sha256: if is_older { held.manifest_sha256.clone() } else { row.manifest_sha256.clone() },
    };
    if bound != *held {
        packages::rebind(tx, &bound, now).await?;
    }
    if bound.key_id != held.key_id {
        tracing::warn!(
            component = %row.adapter_id, "'{}' belongs from now on to publisher '{}' (key {}), before to '{}' (key {})",
            row.adapter_id, bound.publisher, bound.key_id, held.publisher, held.key_id
        );
    }
    Ok(())
}

/// Logs the permissions of a new package, for the operator.
fn show(row: &Package, lines: &[String]) {
    let (id, version) = (&row.adapter_id, &row.version);
    tracing::info!(
        component = %id, version = %version, publisher = %row.publisher, key = %row.key_id, manifest = %row.manifest_sha256,
        "new adapter package: {id} {version} by {}", row.publisher
    );
    for line in lines {
        tracing::info!(component = %id, version = %version, "new adapter package {id}: {line}");
    }
}

/// The lines that are kept of what a package may do, as JSON.
pub fn kept_rules(lines: &[String]) -> Value {
    let mut kept: Vec<String> =
        lines.iter().take(RULES_MAX).map(|line| line.chars().take(RULE_CHARS_MAX).collect()).collect();
    if lines.len() > RULES_MAX {
        kept.push(format!("and {} more; 'heddle-package show' prints all", lines.len() - RULES_MAX));
    }
    json!(kept)
}

/// What an id is bound to; `None` when it never served.
pub async fn find_binding(db: &Db, id: &str) -> heddle_store::Result<Option<Binding>> {
    packages::find_binding(&mut db.read().await?, id).await
}
