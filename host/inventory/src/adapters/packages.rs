//! Decides which packages serve. A package must be verified. One package serves each id, it must have the key that the
//! id is bound to, and its version must not be older than one that served before.
//!
//! The binding is written before a package serves, in one transaction with its record. After a crash between that and
//! serving, the same package is loaded again and finds its own binding.
//!
//! Packages are read at the start, and again when the process is asked to: then the same packages serve as after a restart,
//! and a package that has not changed goes on with its state. They come from a folder and from the database
//! ([`super::installed`]).

mod choice;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heddle_kernel::app::App;
use heddle_kernel::audit::packages::audit_new;
use heddle_kernel::modules::{RefusedPackage, RefusedPackages};
use heddle_kernel::task;
use heddle_marketplace::{TrustedKey, Verified};
use heddle_packages::settings::{AdapterSettings, package_folders};
use heddle_packages::{Ground, NotLoaded, bind, find_binding};
use heddle_store::installed_packages::Installed;
use semver::Version;

use self::choice::in_order;
use super::installed::{self, Seen, Turns};
use super::revoked::serve;

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Folder,
    /// It was installed over the API.
    Installed,
}

/// A verified package, and how messages call it: by its folder, or by its id and version.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) package: Verified,
}

/// Puts every package into service that may serve, and takes the others out of it. A refused package does not keep the
/// server from starting. While the folder, the trusted keys or the database cannot be read, what serves stays.
pub(super) async fn load_all(app: &App, turns: &Turns, seen: &mut Seen) -> RefusedPackages {
    let ground = match Ground::of(app).await {
        Ok(ground) => ground,
        Err(error) => {
            tracing::error!(error = %error, "what decides about packages cannot be read, none is loaded; what serves stays");
            let all = RefusedPackage { package: "all".to_owned(), reason: error.to_string() };
            return RefusedPackages(vec![all]);
        }
    };
    let mut refused = RefusedPackages::default();
    *seen = match installed::seen(&app.db).await {
        Ok(seen) => seen,
        Err(error) => {
            refused.add("all".to_owned(), format!("installed packages cannot be read: {error}"));
            return refused;
        }
    };
    let folder = in_folder(app, &ground.trusted, &mut refused).await;
    let installed = seen.clone();
    put_into_service(app, folder, seen, &ground, &mut refused).await;
    turns.begin_anew(app, &installed, &refused);
    if let Err(error) = write_audit(app).await {
        tracing::error!(error = %error, "new adapter packages are not in the audit log yet; the next start tries again");
    }
    warn_without_adapters(app);
    refused
}

/// Loads the package of each id that is to serve; `folder` is `None` where the folder cannot be read. What is left open is
/// taken out of `seen`: then it is tried again with what others install.
async fn put_into_service(
    app: &App,
    folder: Option<BTreeMap<String, Vec<Candidate>>>,
    seen: &mut Seen,
    ground: &Ground,
    refused: &mut RefusedPackages,
) {
    let is_whole = folder.is_some();
    let mut by_id = folder.unwrap_or_default();
    let ids: BTreeSet<String> = by_id.keys().chain(seen.keys()).cloned().collect();
    let mut serving = BTreeSet::new();
    for id in ids {
        let candidates = by_id.remove(&id).unwrap_or_default();
        let stays = !is_whole && app.runtime.adapter(&id).is_some();
        let turnout = if stays {
            Turnout::without_answer(true)
        } else {
            serve_one(app, &id, candidates, seen.get(&id), ground, refused).await
        };
        if !turnout.is_final {
            seen.remove(&id);
        }
        if turnout.serves {
            serving.insert(id);
        }
    }
    let gone = app.vendors().into_iter().filter(|id| is_whole && !serving.contains(id));
    for id in gone {
        app.runtime.withdraw(&id);
        tracing::warn!(component = %id, "adapter {id} is out of service: no package may serve it any longer");
    }
}

fn warn_without_adapters(app: &App) {
    if !app.runtime.adapters().is_empty() {
        return;
    }
    match &app.config.of::<AdapterSettings>().packages {
        None => tracing::warn!(
            "no adapter is loaded: ADAPTER_PACKAGES is not set, so no controller can be managed; set it, or install packages over the API"
        ),
        Some(folder) => tracing::warn!(
            folder = %folder.display(),
            "no adapter is loaded from ADAPTER_PACKAGES '{}', so no controller can be managed",
            folder.display()
        ),
    }
}

/// The packages of the folder that are what their publishers signed, by id; `None` where the folder cannot be read.
async fn in_folder(
    app: &App,
    trusted: &[TrustedKey],
    refused: &mut RefusedPackages,
) -> Option<BTreeMap<String, Vec<Candidate>>> {
    let Some(folder) = app.config.of::<AdapterSettings>().packages.clone() else {
        return Some(BTreeMap::new());
    };
    let keys = trusted.to_vec();
    let (by_id, found) = task::block(move || {
        let mut refused = RefusedPackages::default();
        (verified(&folder, &keys, &mut refused), refused)
    })
    .await;
    refused.0.extend(found.0);
    by_id
}

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
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        match Verified::open_dir(&path, trusted) {
            Ok(package) => {
                let id = package.manifest().id.clone();
                by_id.entry(id).or_default().push(Candidate { name, origin: Origin::Folder, package });
            }
            Err(error) => refused.add(name, error.to_string()),
        }
    }
    Some(by_id)
}

/// Whether a package serves an adapter id after its packages were judged, and whether that is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turnout {
    serves: bool,
    /// False where the database or this machine gave no answer: the id is judged again later.
    is_final: bool,
}

impl Turnout {
    /// No answer came: what serves goes on.
    fn without_answer(serves: bool) -> Self {
        Self { serves, is_final: false }
    }
}

/// Loads the best package of an id, unless it is the one that serves; when that cannot be used, another one is loaded.
async fn serve_one(
    app: &App,
    id: &str,
    mut candidates: Vec<Candidate>,
    installed: Option<&Installed>,
    ground: &Ground,
    refused: &mut RefusedPackages,
) -> Turnout {
    let served = app.runtime.adapter(id).map(|adapter| adapter.manifest_sha256().to_owned());
    let mut ground = ground.clone();
    if let Some(installed) = installed {
        ground = ground.with_pin(installed);
        match installed::candidate(app, installed, &ground.keys()).await {
            Ok(candidate) => candidates.push(candidate),
            Err(NotLoaded::Refused(reason)) => refused.add(installed::name_of(installed), reason),
            Err(NotLoaded::Passing(problem)) => {
                refused.add(installed::name_of(installed), problem);
                return Turnout::without_answer(served.is_some());
            }
            Err(NotLoaded::Unknown(error)) => {
                refused.add(installed::name_of(installed), format!("it cannot be read: {error}"));
                return Turnout::without_answer(served.is_some());
            }
        }
    }
    let binding = match find_binding(&app.db, id).await {
        Ok(binding) => binding,
        Err(error) => {
            for candidate in candidates {
                refused.add(candidate.name, format!("what '{id}' is bound to cannot be read: {error}"));
            }
            return Turnout::without_answer(served.is_some());
        }
    };
    let is_pinned = installed.is_some_and(|installed| installed.is_pinned);
    let candidates = choice::without_outdone(candidates, is_pinned, binding.as_ref());
    let candidates = in_order(id, candidates, binding.as_ref(), &ground, refused);
    serve_first(app, id, candidates, served.as_deref(), &ground, refused).await
}

/// Loads the first of the packages that can be loaded, and refuses those behind it.
async fn serve_first(
    app: &App,
    id: &str,
    candidates: Vec<Candidate>,
    served: Option<&str>,
    ground: &Ground,
    refused: &mut RefusedPackages,
) -> Turnout {
    let mut is_open = false;
    let mut serving: Option<(String, Version, Origin)> = None;
    for candidate in candidates {
        let version = candidate.package.manifest().version.clone();
        if let Some((name, served, origin)) = &serving {
            if [*origin, candidate.origin].contains(&Origin::Installed) {
                tracing::info!(
                    component = id,
                    "package '{}' gives way to '{name}', which is newer",
                    candidate.name
                );
                continue;
            }
            let reason = format!(
                "two packages have the id '{id}': '{name}' with version {served} serves, '{}' with version {version} does not; remove one",
                candidate.name
            );
            refused.add(candidate.name, reason);
            continue;
        }
        let loaded = if served == Some(candidate.package.manifest_sha256()) {
            // The key that the id is bound to may have changed.
            bind(app, &candidate.package, ground).await
        } else {
            load(app, &candidate, ground).await
        };
        match loaded {
            Ok(()) => serving = Some((candidate.name, version, candidate.origin)),
            Err(not_loaded) => {
                refused.add(candidate.name, not_loaded.to_string());
                match not_loaded {
                    NotLoaded::Unknown(_) => return Turnout::without_answer(served.is_some()),
                    NotLoaded::Passing(_) if served.is_some() => return Turnout::without_answer(true),
                    // Where nothing serves, another one stands in until it can be loaded.
                    NotLoaded::Passing(_) => is_open = true,
                    NotLoaded::Refused(_) => {}
                }
            }
        }
    }
    Turnout { serves: serving.is_some(), is_final: !is_open }
}

/// Puts a package into service, once its binding is written.
pub(super) async fn load(
    app: &App,
    Candidate { name, package, .. }: &Candidate,
    ground: &Ground,
) -> Result<(), NotLoaded> {
    let adapter = app.runtime.prepared(package).await?;
    bind(app, package, ground).await?;
    serve(app, &adapter).await;
    tracing::info!(component = adapter.id(), version = adapter.version(), "loaded adapter {name}");
    Ok(())
}

async fn write_audit(app: &App) -> heddle_store::Result<()> {
    let mut tx = app.db.write().await?;
    audit_new(&mut tx, &app.clock, &app.audit_key).await?;
    tx.commit().await
}

#[cfg(test)]
mod tests;
