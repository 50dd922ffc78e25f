//! Updates what is believed of the catalogue.
//!
//! Files are fetched first, and judged one by one. What comes out is written in one transaction with what it revokes: a crash
//! before it leaves the old state, and one after it leaves the new one, which every process takes up. When another process was
//! faster, its result stays. An update that fails is written, too: newer roots, and what a newer timestamp revokes, hold.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use heddle_core::Timestamp;
use heddle_core::event::NewEvent;
use heddle_inventory::adapters::{package_id, revoked_adapters, take_up_revocations, withdraw_revoked};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_marketplace::catalog::{Failure, Next, Revocation, State, Step, Update, Updated};
use heddle_plugins::{Actor, note, revoke, take_up};
use heddle_store::catalogs::{self, CatalogId, CatalogRow};
use heddle_store::{Tx, events};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::declarations::{ADAPTER_REVOKED, CATALOG_FAILED, CATALOG_UPDATED};
use crate::settings::CatalogSettings;
use crate::shelf::{Shelves, state_of};
use crate::source::Source;
use crate::trust::Trust;

/// Time of an update as a whole, also where each file comes slowly.
const UPDATE_TIMEOUT: Duration = Duration::from_mins(5);
/// How often an update is begun because another process was faster.
const TRIES_MAX: u32 = 3;

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CatalogSyncState")]
pub(crate) enum Outcome {
    /// There is a newer catalogue, or more is revoked.
    Updated,
    /// The known catalogue is the current one.
    Unchanged,
    /// The known catalogue stays. What was proven before the failure holds: newer roots, and what a newer timestamp revokes.
    Failed,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
        }
    }
}

/// What an update of the catalogue brought.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CatalogSync", example = example())]
pub(crate) struct Report {
    pub(crate) state: Outcome,
    /// The step that failed: `clock`, `root`, `timestamp`, `revocations` or `catalog`; absent where a file could not be fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Version of the catalogue that is believed now; null before the first.
    catalog_version: Option<u64>,
}

fn example() -> Value {
    json!({ "state": "updated", "catalog_version": 812 })
}

/// Why an update failed.
struct Problem {
    step: Option<Step>,
    reason: String,
    /// What is to be written although it failed; `None` where that is what was begun with.
    kept: Option<Box<State>>,
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let reason = failure.refusal.to_string();
        Self { step: Some(failure.step), reason, kept: failure.kept }
    }
}

/// Where the catalogue is and what it is believed for.
///
/// # Errors
/// The settings name none.
fn configured(app: &App) -> Result<(&Trust, Source), Error> {
    let trust = Shelves::trust(app)?.ok_or_else(|| Error::Bare {
        status: StatusCode::FORBIDDEN,
        detail: "The catalogue is not synced: no key is pinned. Set MARKETPLACE_ROOT or MARKETPLACE_PUBLISHER_PUBLIC_KEY, or \
                 MARKETPLACE_ALLOW_UNSIGNED=1 to take an unsigned catalogue."
            .to_owned(),
    })?;
    Ok((trust, source(app)?))
}

/// Where the catalogue and its packages are.
///
/// # Errors
/// 409 where the settings do not say.
pub(crate) fn source(app: &App) -> Result<Source, Error> {
    let url = app.config.of::<CatalogSettings>().url.as_deref();
    url.and_then(Source::of).ok_or_else(|| Error::Conflict {
        kind: "marketplace_not_set",
        message: "MARKETPLACE_URL is not set: it names the address or the folder of the catalogue".to_owned(),
    })
}

/// Updates the catalogue once. One that cannot be believed or fetched is no error: the report says why.
///
/// # Errors
/// The settings name no catalogue, or the database gives no answer.
pub(crate) async fn sync(app: &SharedApp, actor: Actor<'_>) -> Result<Report, Error> {
    let (trust, source) = configured(app)?;
    let _turn = Shelves::of(app).turn().await;
    let name = trust.name();
    for _ in 0..TRIES_MAX {
        let row = catalogs::find(&mut app.db.single().await?, &name).await?;
        let old = match &row {
            Some(row) => state_of(row)?,
            None => trust.begin(app.clock.now()).map_err(|refusal| Error::Conflict {
                kind: "marketplace_root",
                message: format!("MARKETPLACE_ROOT is no first root: {refusal}"),
            })?,
        };
        let fetched = updated(app, &source, old.clone()).await;
        let write = Write { app, actor, trust: &name, known: row.as_ref(), old: &old };
        // What another process wrote meanwhile is begun with anew: what was fetched may be newer.
        let Some((report, is_news)) = write.write(fetched).await? else { continue };
        if is_news {
            // Other processes follow within seconds. What waits for a turn comes last.
            withdraw_revoked(app).await?;
            take_up(app).await?;
            take_up_revocations(app).await?;
        }
        return Ok(report);
    }
    let message = "other processes are updating the catalogue; try again".to_owned();
    Err(Error::Conflict { kind: "sync_under_way", message })
}

/// Fetches and judges what is needed.
async fn updated(app: &App, source: &Source, old: State) -> Result<Updated, Problem> {
    let mut update = Update::begin(old, app.clock.now())?;
    let end = tokio::time::Instant::now() + UPDATE_TIMEOUT;
    while let Next::Fetch { name, bytes_max } = update.next() {
        let fetched = tokio::time::timeout_at(end, source.file(app, &name, bytes_max)).await;
        let fetched = fetched
            .unwrap_or_else(|_| Err(format!("the update was not done after {} s", UPDATE_TIMEOUT.as_secs())));
        let answer = fetched.map_err(|reason| Problem {
            step: None,
            reason: format!("'{name}' cannot be fetched: {reason}"),
            kept: update.kept(),
        })?;
        // Up to 16 MiB are hashed and parsed.
        update = task::block(move || update.give(answer)).await?;
    }
    let unfinished = || Problem { step: None, reason: "the update has no end".to_owned(), kept: None };
    update.finish().ok_or_else(unfinished)
}

/// An update that is about to be written.
struct Write<'a> {
    app: &'a SharedApp,
    actor: Actor<'a>,
    trust: &'a str,
    /// The row that the update began with.
    known: Option<&'a CatalogRow>,
    old: &'a State,
}

impl Write<'_> {
    /// Writes what an update brought; says whether what is revoked has changed. `None` where another process was faster.
    async fn write(&self, fetched: Result<Updated, Problem>) -> Result<Option<(Report, bool)>, Error> {
        let app = self.app;
        let mut tx = app.db.write().await?;
        catalogs::hold_gate(&mut tx).await?;
        let found = catalogs::lock(&mut tx, self.trust).await?;
        if found.as_ref().map(|row| row.revision) != self.known.map(|row| row.revision) {
            return Ok(None);
        }
        let (state, catalog, problem) = match fetched {
            Ok(Updated { state, catalog }) => (state, catalog, None),
            Err(mut problem) => {
                let kept = problem.kept.take().map_or_else(|| self.old.clone(), |state| *state);
                (kept, None, Some(problem))
            }
        };
        let entries: Result<Vec<Value>, _> = state.revocations().iter().map(serde_json::to_value).collect();
        let entries = entries.map_err(Error::internal)?;
        let id = found.as_ref().map_or_else(|| app.clock.new_id(), |row| row.id);
        let known_entries = catalogs::revocations_of(&mut tx, id).await?;
        let revocations_changed = entries != known_entries;
        let outcome = match &problem {
            Some(_) => Outcome::Failed,
            None if catalog.is_some() || revocations_changed => Outcome::Updated,
            None => Outcome::Unchanged,
        };
        let row = self.row((id, found), &state, (outcome, problem.as_ref()))?;
        match self.known {
            Some(_) => catalogs::update(&mut tx, &row).await?,
            None => catalogs::insert(&mut tx, &row).await?,
        }
        if let Some(catalog) = &catalog {
            catalogs::put_bytes(&mut tx, row.id, &catalog.bytes).await?;
        }
        if revocations_changed {
            catalogs::put_revocations(&mut tx, row.id, &entries).await?;
            let is_new = |revocation: &&Revocation| !self.old.revocations().contains(revocation);
            let new: Vec<Revocation> = state.revocations().iter().filter(is_new).cloned().collect();
            self.revoke(&mut tx, state.revocations(), &new).await?;
        }
        self.tell(&mut tx, &row, &state, (outcome, problem.as_ref())).await?;
        tx.commit().await?;
        if let (Some(catalog), Some(sha256)) = (catalog, state.catalog_sha256()) {
            Shelves::of(app).hold(sha256, Arc::new(catalog.catalog));
        }
        Ok(Some((Report::of(outcome, &state, problem.as_ref()), revocations_changed)))
    }

    /// The row as it is from now on. Its revision counts changes of the state: a failed update does
    /// not make one begin anew that ends well.
    fn row(
        &self,
        (id, found): (CatalogId, Option<CatalogRow>),
        state: &State,
        (outcome, problem): (Outcome, Option<&Problem>),
    ) -> Result<CatalogRow, Error> {
        let now: Timestamp = self.app.clock.now();
        let row = found.unwrap_or_else(|| CatalogRow {
            id,
            trust: self.trust.to_owned(),
            state: Value::Null,
            revision: 0,
            created_at: now,
            updated_at: now,
            tried_at: None,
            outcome: None,
            step: None,
            reason: None,
        });
        let value = serde_json::to_value(state).map_err(Error::internal)?;
        Ok(CatalogRow {
            revision: row.revision + i64::from(value != row.state),
            state: value,
            updated_at: now,
            tried_at: Some(now),
            outcome: Some(outcome.as_str().to_owned()),
            step: problem.and_then(|problem| problem.step).map(|step| step.to_string()),
            reason: problem.map(|problem| problem.reason.clone()),
            ..row
        })
    }

    /// Takes out of service what is revoked, and tells of it.
    async fn revoke(&self, tx: &mut Tx, revocations: &[Revocation], new: &[Revocation]) -> Result<(), Error> {
        let changed = revoke(tx, self.actor, revocations).await?;
        if !changed.is_empty() {
            tracing::warn!(plugins = ?changed, "the catalogue revoked plugins that are installed");
        }
        for (adapter, revocation) in revoked_adapters(self.app, new) {
            let detail = json!({
                "adapter": adapter.id(), "version": adapter.version(), "manifest_sha256": adapter.manifest_sha256(),
                "revocation": revocation,
            });
            let target = ("adapter_package", package_id(adapter.manifest_sha256()));
            let Some(org) = note(tx, self.actor, target, "adapter.revoked", detail).await? else { continue };
            let payload = json!({
                "adapter": adapter.id(), "version": adapter.version(), "action": revocation.action,
                "reason": revocation.reason,
            });
            events::append(tx, &NewEvent::of(ADAPTER_REVOKED, org, payload), &self.app.clock).await?;
        }
        Ok(())
    }

    /// Records what a person asked for, and what others should know.
    async fn tell(
        &self,
        tx: &mut Tx,
        row: &CatalogRow,
        state: &State,
        (outcome, problem): (Outcome, Option<&Problem>),
    ) -> Result<(), Error> {
        let is_news = outcome == Outcome::Updated || self.is_new_problem(row, problem);
        let is_noted = is_news || state.revocations() != self.old.revocations();
        if !is_noted && matches!(self.actor, Actor::Host(_)) {
            return Ok(());
        }
        let before = self.old.catalog_version();
        let detail = json!({
            "outcome": outcome, "step": row.step, "reason": row.reason, "revocations": state.revocations().len(),
            "before": { "catalog_version": before }, "after": { "catalog_version": state.catalog_version() },
        });
        let target = ("catalog", row.id.0);
        let Some(org) = note(tx, self.actor, target, "marketplace.synced", detail).await? else {
            return Ok(());
        };
        if !is_news {
            return Ok(());
        }
        let event = if let Some(problem) = problem {
            tracing::warn!(step = row.step, "the catalogue was not updated: {}", problem.reason);
            // Why a file could not be fetched can name addresses and folders of the operator: a super_admin is shown that.
            let reason = if problem.step.is_some() { &problem.reason } else { "a file could not be fetched" };
            NewEvent::of(CATALOG_FAILED, org, json!({ "step": row.step, "reason": reason }))
        } else {
            tracing::info!(version = state.catalog_version(), "the catalogue was updated");
            let payload = json!({
                "catalog_version": state.catalog_version(), "previous_version": before,
                "revocations": state.revocations().len(),
            });
            NewEvent::of(CATALOG_UPDATED, org, payload)
        };
        events::append(tx, &event, &self.app.clock).await?;
        Ok(())
    }

    /// Whether an update failed, and did not fail in the same way before.
    fn is_new_problem(&self, row: &CatalogRow, problem: Option<&Problem>) -> bool {
        let before = self.known.map(|known| (known.outcome.as_deref(), known.step.as_deref()));
        problem.is_some() && before != Some((row.outcome.as_deref(), row.step.as_deref()))
    }
}

impl Report {
    fn of(state: Outcome, known: &State, problem: Option<&Problem>) -> Self {
        Self {
            state,
            step: problem.and_then(|problem| problem.step).map(|step| step.to_string()),
            reason: problem.map(|problem| problem.reason.clone()),
            catalog_version: known.catalog_version(),
        }
    }
}
