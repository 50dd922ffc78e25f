//! Tests a provider with its current settings, without a sign-in, and reports how far the test came.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Instant;

use axum::Json as Answer;
use heddle_core::ProviderKind;
use heddle_kernel::app::App;
use heddle_kernel::audit::entry;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::resource::By;
use heddle_kernel::unreached;
use heddle_store::sso::{self, IdentityProviderId, Provider, Usable};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::super::fault::{ProviderFault, ProviderFaultKind};
use super::super::settings::{Ldap, Oidc, read};
use super::super::{ldap, oidc, secret};
use super::{NOT_FOUND, audit_entry};

/// The result of a test. The status is 200 also when the provider did not answer, because the test itself worked.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IdentityProviderTest")]
pub(super) struct Tested {
    ok: bool,
    latency_ms: f64,
    /// Address and port that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<String>,
    /// The step at which the test failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_step: Option<&'static str>,
    /// The steps, in their order. `oidc`: discovery, keys, client; `ldap`: connect, tls, bind, search; `saml` has none,
    /// since it has nothing to ask.
    steps: Vec<Step>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IdentityProviderTestStep")]
struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    latency_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<StepError>,
    /// The error says only that nothing was reached.
    #[serde(skip)]
    is_unreached: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IdentityProviderTestError")]
struct StepError {
    /// Such as `identity_provider_unreachable`.
    #[serde(rename = "type")]
    kind: &'static str,
    message: String,
}

/// The steps so far.
pub(in crate::sso) struct Steps {
    started: Instant,
    done: Vec<Step>,
    peer: Option<SocketAddr>,
}

impl Steps {
    fn begin() -> Self {
        Self { started: Instant::now(), done: Vec::new(), peer: None }
    }

    /// Runs one step and records its result.
    pub(in crate::sso) async fn take<T>(
        &mut self,
        step: &'static str,
        work: impl Future<Output = Result<T, ProviderFault>>,
    ) -> Result<T, ProviderFault> {
        let started = Instant::now();
        let result = work.await;
        let error = result.as_ref().err();
        let is_unreached = error.is_some_and(ProviderFault::is_unreached);
        let error =
            error.map(|fault| StepError { kind: fault.kind.public().1, message: fault.detail.clone() });
        self.done.push(Step {
            name: step,
            ok: error.is_none(),
            latency_ms: millis(started),
            error,
            is_unreached,
        });
        result
    }

    pub(in crate::sso) fn reached(&mut self, peer: SocketAddr) {
        self.peer = Some(peer);
    }

    /// Hides why nothing was reached: only operators of the service may learn that.
    fn without_network(mut self, provider: &Provider) -> Self {
        let Some(at) = self.done.iter().position(|step| step.is_unreached) else { return self };
        let message = |step: &Step| step.error.as_ref().map(|error| error.message.clone());
        tracing::info!(
            identity_provider.id = %provider.id,
            "test of identity provider {} did not reach its destination at step '{}': {}",
            provider.id,
            self.done[at].name,
            message(&self.done[at]).unwrap_or_default()
        );
        // All steps of a directory concern one address: it must not be shown that a port is open either.
        let at = if provider.kind == ProviderKind::Ldap { 0 } else { at };
        self.done.truncate(at + 1);
        if at == 0 {
            self.peer = None;
        }
        let kind = ProviderFaultKind::Unreachable.public().1;
        let error = Some(StepError { kind, message: unreached::NEUTRAL.to_owned() });
        if let Some(step) = self.done.get_mut(at) {
            (step.ok, step.error) = (false, error);
        }
        self
    }

    fn end(self) -> Tested {
        let failed = self.done.iter().find(|step| !step.ok).map(|step| step.name);
        Tested {
            ok: failed.is_none(),
            latency_ms: millis(self.started),
            reached: self.peer.map(|peer| peer.to_string()),
            failed_step: failed,
            steps: self.done,
        }
    }
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

pub(super) async fn test(by: By, At(id): At<IdentityProviderId>) -> Result<Answer<Tested>, Error> {
    let By { app, caller, origin } = &by;
    caller.require_all_sites()?;
    let usable = {
        let mut tx = app.db.read().await?;
        sso::find_sealed(&mut tx, &caller.organization_scope(), id).await?.ok_or(NOT_FOUND)?
    };
    let mut steps = Steps::begin();
    match usable.provider.kind {
        ProviderKind::Oidc => try_oidc(app, &usable, &mut steps).await?,
        ProviderKind::Ldap => {
            let settings: Ldap = read(&usable.provider.settings)?;
            let account = ldap::account(app, &usable, &settings)?;
            // The error is among the steps.
            let _ = ldap::try_directory(app, &settings, account.as_ref(), &mut steps).await;
        }
        ProviderKind::Saml => {}
    }
    if !unreached::may_know(caller) {
        steps = steps.without_network(&usable.provider);
    }
    let tested = steps.end();
    let detail = json!({ "ok": tested.ok, "failed_step": tested.failed_step });
    let mut tx = app.db.write().await?;
    let entry = audit_entry(caller, &usable.provider, "identity_provider.tested", detail);
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(Answer(tested))
}

async fn try_oidc(app: &App, usable: &Usable, steps: &mut Steps) -> Result<(), Error> {
    let provider = &usable.provider;
    let settings: Oidc = read(&provider.settings)?;
    let secret = usable.secret.as_deref().map(|sealed| secret::open(&app.keys, provider.id, sealed));
    let client = oidc::Client {
        app,
        id: provider.id,
        updated_at: provider.updated_at,
        settings: &settings,
        secret: secret.transpose()?,
    };
    // The error is among the steps.
    let _: Result<(), ProviderFault> = async {
        let (metadata, peer) = steps.take("discovery", oidc::fetch_metadata(app, &settings)).await?;
        if let Some(peer) = peer {
            steps.reached(peer);
        }
        steps.take("keys", oidc::fetch_keys(app, &settings, &metadata)).await?;
        steps.take("client", oidc::try_client(&client, &metadata)).await
    }
    .await;
    Ok(())
}
