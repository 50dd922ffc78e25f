//! Asks a controller, now, whether it answers: with the stored credential, and without changing anything.

use std::time::Instant;

use heddle_core::adapter::DeviceProfile;
use heddle_core::fault::FaultKind;
use heddle_core::tls::{TlsMode, TlsPolicy};
use heddle_core::{ControllerId, SiteLevel};
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::unreached;
use heddle_runtime::{Adapter, Call, CallError};
use heddle_store::controllers::{self, ControllerTarget};
use heddle_store::object::Object as _;
use heddle_store::{Credential, Scope};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::adapters::call_for;
use crate::credentials::fields::require_shape;

/// How a test ended. It is answered 200 also when the device did not answer: the test itself worked.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ControllerTest")]
pub(crate) struct Tested {
    ok: bool,
    latency_ms: f64,
    /// The device that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<DeviceProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TestError>,
    /// SHA-256 of a certificate that is not trusted, in hex: `tls.mode` `pin` with it trusts exactly that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_fingerprint: Option<String>,
    /// The value for `tls` of a controller or a credential: to be set once a person has compared it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<TlsPolicy>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ControllerTestError")]
pub(crate) struct TestError {
    /// Such as `adapter_authentication_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    message: String,
}

impl Tested {
    pub(crate) fn is_ok(&self) -> bool {
        self.ok
    }

    /// What the audit log keeps of it.
    pub(crate) fn detail(&self) -> Value {
        json!({ "ok": self.ok, "error": self.error.as_ref().map(|error| error.kind) })
    }
}

pub(super) async fn test(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    id: ControllerId,
) -> Result<Tested, Error> {
    let target = {
        let mut tx = app.db.read().await?;
        controllers::find_target(&mut tx, &caller.scope(), id).await?.ok_or(Error::NotFound("controller"))?
    };
    caller.require_level(target.site_id, SiteLevel::Write)?;
    let call = call_for(&target, &origin.request_id)?;
    let adapter = app.adapter(&target.vendor)?;
    check_shape(app, &adapter, &target).await?;
    let tested = ask(&adapter, &call, caller).await?;
    let entry = NewEntry {
        org: target.org_id,
        actor: caller.actor(),
        action: "controller.tested",
        target: ("controller", id.0),
        detail: tested.detail(),
    };
    let mut tx = app.db.write().await?;
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(tested)
}

/// Requires that the controller's credential has the fields that its adapter takes: a package that was installed later
/// can ask for others.
pub(super) async fn check_shape(
    app: &App,
    adapter: &Adapter,
    target: &ControllerTarget,
) -> Result<(), Error> {
    let scope = Scope::organization(target.org_id);
    let credential = Credential::find(&mut app.db.single().await?, &scope, target.credential_id).await?;
    credential.map_or(Ok(()), |credential| require_shape(adapter.manifest(), &credential))
}

/// Makes the adapter's own check. An error only where the test itself could not be made.
///
/// Only callers that operate the service learn why a device was not reached.
pub(crate) async fn ask(adapter: &Adapter, call: &Call, caller: &Caller) -> Result<Tested, Error> {
    let started = Instant::now();
    let checked = adapter.check(call).await;
    let latency_ms = started.elapsed().as_secs_f64() * 1000.0;
    let mut tested =
        Tested { ok: true, latency_ms, profile: None, error: None, certificate_fingerprint: None, pin: None };
    match checked {
        Ok(profile) => tested.profile = Some(profile),
        Err(error @ (CallError::Overload | CallError::Host(_))) => return Err(error.into()),
        Err(CallError::Fault(fault)) if unreached::is_unreached(&fault) && !unreached::may_know(caller) => {
            tracing::info!(
                controller.id = %call.target.controller_id,
                organization.id = %call.target.org_id,
                "test did not reach its destination: {fault}"
            );
            let kind = FaultKind::Connection.public().1;
            tested.ok = false;
            tested.error = Some(TestError { kind, message: unreached::NEUTRAL.to_owned() });
        }
        Err(error) => {
            let error = Error::from(error);
            let error = TestError { kind: error.kind(), message: error.to_string() };
            tested.ok = false;
            tested.certificate_fingerprint = fingerprint_in(&error.message);
            tested.pin = tested.certificate_fingerprint.clone().map(|fingerprint| TlsPolicy {
                mode: TlsMode::Pin,
                fingerprint: Some(fingerprint),
                ca_pem: None,
            });
            tested.error = Some(error);
        }
    }
    Ok(tested)
}

/// The certificate that the message names. The message is all that comes through the adapter unchanged.
fn fingerprint_in(message: &str) -> Option<String> {
    let mut words = message.split(|c: char| !c.is_ascii_alphanumeric());
    let found = words.find(|word| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some(found.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_fingerprint_is_offered_for_pinning() {
        let fingerprint = "0f".repeat(32);
        let message =
            format!("the certificate is not trusted: expired; its SHA-256 fingerprint is {fingerprint}");
        assert_eq!(fingerprint_in(&message), Some(fingerprint));
        assert_eq!(fingerprint_in("no connection to the controller"), None);
        assert_eq!(fingerprint_in(&format!("id {}", "0f".repeat(31))), None);
    }
}
