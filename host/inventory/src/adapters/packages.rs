//! Decides which packages serve. A package must be verified. One package serves each id, it must have the key that the
//! id is bound to, and its version must not be older than one that served before.
//!
//! The binding is written before a package serves, in one transaction with its record. After a crash between that and
//! serving, the same package is loaded again and finds its own binding.
//!
//! Packages are read at the start, and again when the process is asked to: then the same packages serve as after a restart,
//! and a package that has not changed goes on with its state.

use std::collections::BTreeMap;
use std::path::Path;

use heddle_core::Clock;
use heddle_kernel::app::App;
use heddle_kernel::audit::packages::audit_new;
use heddle_kernel::modules::{RefusedPackage, RefusedPackages};
use heddle_kernel::task;
use heddle_marketplace::{TrustedKey, Verified, in_words};
use heddle_runtime::Runtime;
use heddle_store::Db;
use heddle_store::audit::AuditKey;
use heddle_store::packages::{self, Binding, Package};
use semver::Version;
use serde_json::{Value, json};

use super::{AdapterSettings, package_folders, trusted_keys};

/// Lines of a package's rules that the audit log keeps, and characters of each.
const RULES_MAX: usize = 200;
const RULE_CHARS_MAX: usize = 1_000;

/// A verified package, and the folder it is in.
struct Candidate {
    folder: String,
    package: Verified,
}

/// Facts outside the packages that decide between them.
struct Ground<'a> {
    trusted: &'a [TrustedKey],
    /// `id@version` of packages that may serve although a newer version did.
    downgrades: &'a [String],
}

/// Which package serves each id: SHA-256 of its manifest, by the id.
pub(super) type Serving = BTreeMap<String, String>;

/// Puts every package of the folder into service that may serve, and takes the others out of it. A refused package does
/// not keep the server from starting. While the folder, the trusted keys or the bindings cannot be read, what serves
/// stays.
pub(super) async fn load_all(app: &App, serving: &mut Serving) -> RefusedPackages {
    let (config, runtime, db, clock) = (&app.config, &app.runtime, &app.db, &app.clock);
    let Some(folder) = &config.of::<AdapterSettings>().packages else {
        tracing::warn!("no adapter is loaded: ADAPTER_PACKAGES is not set, so no controller can be managed");
        return RefusedPackages::default();
    };
    let trusted = match trusted_keys(config) {
        Ok(trusted) => trusted,
        Err(error) => {
            tracing::error!(error = %error, "trusted keys cannot be read, no package is loaded; what serves stays");
            let all = RefusedPackage { package: "all".to_owned(), reason: error.to_string() };
            return RefusedPackages(vec![all]);
        }
    };
    let mut refused = RefusedPackages::default();
    let ground = Ground { trusted: &trusted, downgrades: &config.of::<AdapterSettings>().downgrades };
    let (path, keys) = (folder.clone(), trusted.clone());
    let (by_id, found) = task::block(move || {
        let mut refused = RefusedPackages::default();
        (verified(&path, &keys, &mut refused), refused)
    })
    .await;
    refused.0.extend(found.0);
    let Some(by_id) = by_id else { return refused };
    let mut now = Serving::new();
    for (id, candidates) in by_id {
        let served = serving.get(&id).map(String::as_str);
        let chosen = serve_one(&id, candidates, served, &ground, (runtime, db, clock), &mut refused).await;
        now.extend(chosen.map(|manifest| (id, manifest)));
    }
    for id in serving.keys().filter(|id| !now.contains_key(*id)) {
        runtime.withdraw(id);
        tracing::warn!(component = %id, "adapter {id} is out of service: no package may serve it any longer");
    }
    *serving = now;
    if let Err(error) = write_audit(db, clock, &app.audit_key).await {
        tracing::error!(error = %error, "new adapter packages are not in the audit log yet; the next start tries again");
    }
    if runtime.adapters().is_empty() {
        tracing::warn!(
            folder = %folder.display(),
            "no adapter is loaded from ADAPTER_PACKAGES '{}', so no controller can be managed",
            folder.display()
        );
    }
    refused
}

/// The packages that are what their publishers signed, by id; `None` where the folder cannot be read.
fn verified(
    folder: &Path,
    trusted: &[TrustedKey],
    refused: &mut RefusedPackages,
) -> Option<BTreeMap<String, Vec<Candidate>>> {
    let mut by_id: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
    let folders = package_folders(folder).map_err(|error| {
        let reason = format!("ADAPTER_PACKAGES '{}' cannot be read: {error}", folder.display());
        refused.add("all".to_owned(), reason);
    });
    for path in folders.ok()? {
        let folder = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        match Verified::open_dir(&path, trusted) {
            Ok(package) => {
                by_id.entry(package.manifest().id.clone()).or_default().push(Candidate { folder, package });
            }
            Err(error) => refused.add(folder, error.to_string()),
        }
    }
    Some(by_id)
}

/// Loads the best package of an id, unless it is the one that serves; when that cannot be used, another one is loaded.
/// Returns the SHA-256 of the manifest of the package that serves now.
async fn serve_one(
    id: &str,
    candidates: Vec<Candidate>,
    served: Option<&str>,
    ground: &Ground<'_>,
    (runtime, db, clock): (&Runtime, &Db, &Clock),
    refused: &mut RefusedPackages,
) -> Option<String> {
    let binding = match find_binding(db, id).await {
        Ok(binding) => binding,
        Err(error) => {
            for candidate in candidates {
                refused.add(candidate.folder, format!("what '{id}' is bound to cannot be read: {error}"));
            }
            return served.map(str::to_owned);
        }
    };
    let mut serving: Option<(String, Version, String)> = None;
    for candidate in in_order(id, candidates, binding.as_ref(), ground, refused) {
        let version = &candidate.package.manifest().version;
        let manifest = candidate.package.manifest_sha256();
        if let Some((folder, served, _)) = &serving {
            let reason = format!(
                "two packages have the id '{id}': '{folder}' with version {served} serves, '{}' with version {version} does not; remove one",
                candidate.folder
            );
            refused.add(candidate.folder, reason);
            continue;
        }
        let loaded = if served == Some(manifest) {
            // The key that the id is bound to may have changed.
            bind(&candidate.package, ground, db, clock).await
        } else {
            load(&candidate, ground, (runtime, db, clock)).await
        };
        match loaded {
            Ok(()) => serving = Some((candidate.folder, version.clone(), manifest.to_owned())),
            Err(NotLoaded::Refused(reason)) => refused.add(candidate.folder, reason),
            Err(NotLoaded::Unknown(reason)) => {
                refused.add(candidate.folder, reason);
                return served.map(str::to_owned);
            }
        }
    }
    serving.map(|(_, _, manifest)| manifest)
}

/// Why a package is not loaded.
enum NotLoaded {
    /// It may not serve, or cannot.
    Refused(String),
    /// The database gives no answer: what serves stays.
    Unknown(String),
}

/// Puts a package into service, once its binding is written.
async fn load(
    Candidate { folder, package }: &Candidate,
    ground: &Ground<'_>,
    (runtime, db, clock): (&Runtime, &Db, &Clock),
) -> Result<(), NotLoaded> {
    let adapter = runtime.prepared(package).await.map_err(|error| NotLoaded::Refused(error.to_string()))?;
    bind(package, ground, db, clock).await?;
    runtime.serve(&adapter);
    tracing::info!(component = adapter.id(), version = adapter.version(), "loaded adapter {folder}");
    Ok(())
}

async fn find_binding(db: &Db, id: &str) -> heddle_store::Result<Option<Binding>> {
    packages::find_binding(&mut db.read().await?, id).await
}

/// Returns the packages of an id that may serve, the one to serve first, and refuses the others.
fn in_order(
    id: &str,
    candidates: Vec<Candidate>,
    binding: Option<&Binding>,
    ground: &Ground<'_>,
    refused: &mut RefusedPackages,
) -> Vec<Candidate> {
    let mut fit = Vec::new();
    for candidate in candidates {
        match binding.map_or(Ok(()), |binding| check(&candidate.package, binding, ground)) {
            Ok(()) => fit.push(candidate),
            Err(reason) => refused.add(candidate.folder, reason),
        }
    }
    // Of equal versions, the package that served before comes first.
    let served = |c: &Candidate| binding.is_some_and(|b| b.manifest_sha256 == c.package.manifest_sha256());
    fit.sort_by_key(|c| std::cmp::Reverse((c.package.manifest().version.clone(), served(c))));
    let Some(problem) = undecided(id, &fit, binding.is_some(), served) else { return fit };
    for candidate in fit {
        refused.add(candidate.folder, problem.clone());
    }
    Vec::new()
}

/// Returns why no package can be chosen: they come from different keys and nothing has served yet, or they differ and
/// have the same version.
fn undecided(
    id: &str,
    fit: &[Candidate],
    is_bound: bool,
    served: impl Fn(&Candidate) -> bool,
) -> Option<String> {
    let [first, others @ ..] = fit else { return None };
    let shown = |c: &Candidate| {
        let manifest = c.package.manifest();
        format!("'{}' ({} {})", c.folder, manifest.publisher, manifest.version)
    };
    let rival = others.iter().find(|other| {
        let (a, b) = (&first.package, &other.package);
        let keys_differ = !is_bound && !b.signers().iter().any(|key| a.signers().contains(key));
        let versions_are_equal = a.manifest().version == b.manifest().version;
        keys_differ || (versions_are_equal && !served(first) && a.manifest_sha256() != b.manifest_sha256())
    })?;
    Some(format!("two packages have the id '{id}': {} and {}; keep one", shown(first), shown(rival)))
}

/// Returns the signer to which a package is bound: the bound key, or a key that may replace it.
fn signer<'a>(package: &'a Verified, binding: &Binding, trusted: &[TrustedKey]) -> Option<&'a TrustedKey> {
    let signers = package.signers();
    if let Some(key) = signers.iter().find(|key| key.key_id() == binding.key_id) {
        return Some(key);
    }
    // A key may replace the bound one when the operator lists this id with the new key, and the old key is removed or
    // is of the same publisher.
    let is_gone = !trusted.iter().any(|key| key.key_id() == binding.key_id);
    signers
        .iter()
        .find(|key| key.names(&binding.adapter_id) && (is_gone || key.publisher == binding.publisher))
}

/// Whether a package may serve an id that is bound.
fn check(package: &Verified, binding: &Binding, ground: &Ground<'_>) -> Result<(), String> {
    let manifest = package.manifest();
    let Binding { adapter_id: id, publisher, key_id, version: served, .. } = binding;
    if signer(package, binding, ground.trusted).is_none() {
        let found = package.key_ids().join(", ");
        return Err(format!(
            "'{id}' belongs to publisher '{publisher}' (key {key_id}), and this package is by '{}' (key {found}); to hand \
             '{id}' over, take the old key out of the trusted keys and name '{id}' among the 'ids' of the new one",
            manifest.publisher
        ));
    }
    let is_older = Version::parse(served).is_ok_and(|served| manifest.version < served);
    let asked = format!("{id}@{}", manifest.version);
    if is_older && !ground.downgrades.contains(&asked) {
        return Err(format!(
            "version {} of '{id}' is older than version {served}, which served before; install {served} or newer, or set \
             ADAPTER_DOWNGRADES={asked}",
            manifest.version
        ));
    }
    Ok(())
}

/// Binds the id to the package's key and records the package. Its permissions are shown before it serves.
async fn bind(package: &Verified, ground: &Ground<'_>, db: &Db, clock: &Clock) -> Result<(), NotLoaded> {
    let failed =
        |error: heddle_store::Error| NotLoaded::Unknown(format!("the package cannot be recorded: {error}"));
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
        first_served_at: clock.now(),
    };
    let mut tx = db.write().await.map_err(failed)?;
    let held = packages::hold_binding(&mut tx, &row).await.map_err(failed)?;
    // Checked again: another process may have bound the id meanwhile.
    check(package, &held, ground).map_err(NotLoaded::Refused)?;
    row.key_id = signer(package, &held, ground.trusted).unwrap_or(first).key_id();
    let is_newer = !Version::parse(&held.version).is_ok_and(|served| manifest.version < served);
    let bound = Binding {
        adapter_id: held.adapter_id.clone(),
        publisher: row.publisher.clone(),
        key_id: row.key_id.clone(),
        version: if is_newer { row.version.clone() } else { held.version.clone() },
        manifest_sha256: if is_newer { row.manifest_sha256.clone() } else { held.manifest_sha256.clone() },
    };
    if bound != held {
        packages::rebind(&mut tx, &bound, clock.now()).await.map_err(failed)?;
    }
    if bound.key_id != held.key_id {
        tracing::warn!(
            component = %row.adapter_id, "'{}' belongs from now on to publisher '{}' (key {}), before to '{}' (key {})",
            row.adapter_id, bound.publisher, bound.key_id, held.publisher, held.key_id
        );
    }
    let lines = in_words(manifest);
    row.rules = kept(&lines);
    if packages::record(&mut tx, &row).await.map_err(failed)? {
        show(&row, &lines);
    }
    tx.commit().await.map_err(failed)
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

fn kept(lines: &[String]) -> Value {
    let mut kept: Vec<String> =
        lines.iter().take(RULES_MAX).map(|line| line.chars().take(RULE_CHARS_MAX).collect()).collect();
    if lines.len() > RULES_MAX {
        kept.push(format!("and {} more; 'heddle-package show' prints all", lines.len() - RULES_MAX));
    }
    json!(kept)
}

async fn write_audit(db: &Db, clock: &Clock, audit_key: &AuditKey) -> heddle_store::Result<()> {
    let mut tx = db.write().await?;
    audit_new(&mut tx, clock, audit_key).await?;
    tx.commit().await
}

#[cfg(test)]
mod tests;
