//! The secret with which one organization's `fabric.webhook` requests are signed, in addition to the service's own.
//!
//! The service's secret is the same for all organizations, and what it signs does not name the receiver. So a receiver
//! that checks `X-Heddle-Signature` with the secret of one organization knows that the request is of that
//! organization, and was meant for this URL.

use axum::Json as Answer;
use axum::extract::State;
use chrono::TimeDelta;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role, Timestamp};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::{Access, Unscoped};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::organization_signing::{self, Signing};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// How long requests are also signed with the previous secret.
const PREVIOUS_HOURS: i64 = 24;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SigningSecret")]
struct Stands {
    /// Number of the organization's secret, from 1; 0 where none was ever made, so nothing is signed with one.
    generation: i64,
    rotated_at: Option<Timestamp>,
    /// Until then requests are also signed with the previous secret.
    previous_until: Option<Timestamp>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SigningSecretRotated")]
struct Rotated {
    #[serde(flatten)]
    stands: Stands,
    /// Shown only here.
    secret: String,
}

impl Stands {
    fn of(signing: Option<Signing>) -> Self {
        Self {
            generation: signing.map_or(0, |signing| signing.generation),
            rotated_at: signing.map(|signing| signing.rotated_at),
            previous_until: signing.filter(|signing| signing.generation > 1).map(previous_until),
        }
    }
}

fn previous_until(signing: Signing) -> Timestamp {
    signing.rotated_at + TimeDelta::hours(PREVIOUS_HOURS)
}

pub(super) fn routes() -> Routes {
    let access = Access::Role(
        Role::OrgAdmin,
        Unscoped("the holder of the secret signs requests in the name of the organization"),
    );
    Routes::default()
        .get(
            "/fabric/signing-secret",
            access,
            show,
            doc("Which secret signs the organization's fabric.webhook requests; never the secret itself")
                .named("get_signing_secret")
                .answers::<Stands>(200),
        )
        .post(
            "/fabric/signing-secret/rotate",
            access,
            rotate,
            doc("Make a new secret for the organization's fabric.webhook requests, and show it once")
                .named("rotate_signing_secret")
                .answers::<Rotated>(200),
        )
}

async fn show(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<Stands>, Error> {
    caller.require_all_sites()?;
    let found = organization_signing::find(&mut app.db.read().await?, caller.org_id).await?;
    Ok(Answer(Stands::of(found)))
}

async fn rotate(by: By) -> Result<Answer<Rotated>, Error> {
    let By { app, caller, origin } = &by;
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let signing = organization_signing::rotate(&mut tx, caller.org_id, app.clock.now()).await?;
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action: "signing_secret.rotated",
        target: ("organization", caller.org_id.0),
        detail: json!({ "generation": signing.generation }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    let secret = secret(app, caller.org_id, signing.generation).expose().to_owned();
    Ok(Answer(Rotated { stands: Stands::of(Some(signing)), secret }))
}

/// The secrets that an organization's requests are signed with now, the current one first; none before it asked for one.
pub(super) async fn secrets(app: &App, org: OrgId) -> Result<Vec<Secret>, Error> {
    let found = organization_signing::find(&mut app.db.read().await?, org).await?;
    let Some(signing) = found else { return Ok(Vec::new()) };
    let mut secrets = vec![secret(app, org, signing.generation)];
    if signing.generation > 1 && app.clock.now() < previous_until(signing) {
        secrets.push(secret(app, org, signing.generation - 1));
    }
    Ok(secrets)
}

/// Derives the secret from a key that goes with the database and outlives the rotation of all other keys.
fn secret(app: &App, org: OrgId, generation: i64) -> Secret {
    Secret::new(app.audit_key.mac("organization-signing-v1", &format!("{org}.{generation}")))
}
