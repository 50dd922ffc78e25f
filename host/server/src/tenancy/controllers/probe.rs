//! Asks a controller, now, whether it answers: with the stored credential, and without changing anything.

use std::time::Instant;

use heddle_core::ControllerId;
use heddle_core::adapter::DeviceProfile;
use heddle_runtime::CallError;
use heddle_store::controllers;
use schemars::JsonSchema;
use serde::Serialize;

use crate::adapters::call_for;
use crate::app::App;
use crate::auth::Caller;
use crate::http::error::Error;
use crate::http::extract::Origin;

/// How a test ended. It is answered 200 also when the device did not answer: the test itself worked.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ControllerTest")]
pub(super) struct Tested {
    ok: bool,
    latency_ms: f64,
    /// What answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<DeviceProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TestError>,
    /// SHA-256 of a certificate that is not trusted, in hex: `tls.mode` `pin` with it trusts exactly that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_fingerprint: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ControllerTestError")]
struct TestError {
    /// Such as `adapter_authentication_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    message: String,
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
    let adapter = app.adapter(&target.vendor)?;
    let call = call_for(&target, &origin.request_id)?;
    let started = Instant::now();
    let checked = adapter.check(&call).await;
    let latency_ms = started.elapsed().as_secs_f64() * 1000.0;
    match checked {
        Ok(profile) => Ok(Tested {
            ok: true,
            latency_ms,
            profile: Some(profile),
            error: None,
            certificate_fingerprint: None,
        }),
        Err(error @ (CallError::Overload | CallError::Host(_))) => Err(error.into()),
        Err(error) => {
            let error = Error::from(error);
            let error = TestError { kind: error.kind(), message: error.to_string() };
            let certificate_fingerprint = fingerprint_in(&error.message);
            Ok(Tested { ok: false, latency_ms, profile: None, error: Some(error), certificate_fingerprint })
        }
    }
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
