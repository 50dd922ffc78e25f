//! Tries a credential: at a controller, or at an address that is no controller yet. Stores nothing but the audit entry.

use axum::Json as Answer;
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, Role, SiteLevel, id_of_digest};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin};
use heddle_kernel::http::nulls::given;
use heddle_kernel::resource::By;
use heddle_kernel::tls::check_tls;
use heddle_marketplace::ID_CHARS_MAX;
use heddle_runtime::{Adapter, Call, Target, Urgency};
use heddle_store::object::Object as _;
use heddle_store::{Credential, Tx, controllers};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::Credentials;
use super::address::url_of;
use super::fields::require_shape;
use crate::adapters::{call_for, validate_settings};
use crate::controllers::check_credential;
use crate::controllers::declarations::CONTROLLER_WRITE;
use crate::controllers::endpoint::{URL_BYTES_MAX, parse_url};
use crate::controllers::probe::{Tested, ask};

/// Either `controller_id`, or `vendor` with an address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CredentialTest")]
pub(super) struct TestBody {
    /// The credential is tried as this controller is reached, whatever credential the controller has.
    #[serde(default, deserialize_with = "given")]
    controller_id: Option<ControllerId>,
    /// Id of an installed adapter.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(max = ID_CHARS_MAX))]
    vendor: Option<String>,
    /// `https://host:port` of the credential when absent. At most 2048 bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = URL_BYTES_MAX))]
    url: Option<String>,
    /// The credential's own when absent.
    #[serde(default, deserialize_with = "given")]
    tls: Option<TlsPolicy>,
    /// What the adapter's own schema allows.
    #[serde(default, deserialize_with = "given")]
    settings: Option<Map<String, Value>>,
}

pub(super) async fn test(
    by: By,
    At(id): At<CredentialId>,
    Json(body): Json<TestBody>,
) -> Result<Answer<Tested>, Error> {
    let By { app, caller, origin } = &by;
    let (credential, adapter, call) = {
        let mut tx = app.db.read().await?;
        let found = Credential::find(&mut tx, &caller.organization_scope(), id).await?;
        let credential = found.ok_or(Error::NotFound("credential"))?;
        let (adapter, call) = if let Some(controller) = body.controller_id {
            at_controller(&mut tx, app, caller, origin, &credential, controller, &body).await?
        } else {
            // The caller that chooses the address receives what the credential holds, as with a controller's address.
            caller.require_role(Role::OrgAdmin)?;
            caller.require(CONTROLLER_WRITE)?;
            at_address(app, origin, &credential, body)?
        };
        check_credential(&mut tx, caller, credential.org_id, id).await?;
        require_shape(adapter.manifest(), &credential)?;
        (credential, adapter, call)
    };
    let tested = ask(&adapter, &call, caller).await?;
    let mut detail = tested.detail();
    detail["vendor"] = json!(adapter.id());
    detail["url"] = json!(call.target.url.as_str());
    detail["tls_mode"] = json!(call.target.tls.mode);
    let mut tx = app.db.write().await?;
    by.record::<Credentials>(&mut tx, &credential, "credential.tested", detail).await?;
    tx.commit().await?;
    Ok(Answer(tested))
}

async fn at_controller(
    tx: &mut Tx,
    app: &App,
    caller: &Caller,
    origin: &Origin,
    credential: &Credential,
    id: ControllerId,
    body: &TestBody,
) -> Result<(Adapter, Call), Error> {
    let mut checks = Checks::default();
    let others = [
        ("vendor", body.vendor.is_some()),
        ("url", body.url.is_some()),
        ("tls", body.tls.is_some()),
        ("settings", body.settings.is_some()),
    ];
    for (field, is_given) in others {
        checks.require(!is_given, field, "is the controller's own: leave it out with controller_id");
    }
    checks.done()?;
    let found = controllers::find_target(tx, &caller.scope(), id).await?;
    let target = found.filter(|target| target.org_id == credential.org_id);
    let target = target.ok_or_else(|| Error::field("controller_id", "controller not found"))?;
    caller.require_level(target.site_id, SiteLevel::Write)?;
    let mut call = call_for(&target, &origin.request_id)?;
    call.target.credential_id = credential.id;
    call.target.credential_version = credential.version;
    Ok((app.adapter(&target.vendor)?, call))
}

fn at_address(
    app: &App,
    origin: &Origin,
    credential: &Credential,
    body: TestBody,
) -> Result<(Adapter, Call), Error> {
    let mut checks = Checks::default();
    checks.require(body.vendor.is_some(), "vendor", "give controller_id, or a vendor with an address");
    checks.chars("vendor", body.vendor.as_deref().unwrap_or_default(), ID_CHARS_MAX);
    let url = match body.url.or_else(|| url_of(credential)) {
        Some(url) => checks.keep("url", parse_url(&url)),
        None => checks.keep("url", Err("is needed: the credential has no host of its own".to_owned())),
    };
    let tls = body.tls.or_else(|| credential.tls.clone()).unwrap_or_default();
    let tls = check_tls(tls, &mut checks);
    checks.done()?;
    let vendor = body.vendor.unwrap_or_default();
    let adapter = app.adapter(&vendor)?;
    let settings = Value::Object(body.settings.unwrap_or_default());
    validate_settings(&adapter, &settings)?;
    let target = Target {
        org_id: credential.org_id,
        controller_id: stand_in(credential.id, &vendor, &url, &settings),
        url: url.parse().map_err(Error::internal)?,
        tls,
        credential_id: credential.id,
        credential_version: credential.version,
        settings,
        site_ref: None,
    };
    let call = Call {
        target,
        request_id: origin.request_id.clone(),
        deadline: None,
        progress: None,
        urgency: Urgency::Ordinary,
    };
    Ok((adapter, call))
}

/// Returns an id in place of a controller, the same for the same address.
///
/// So repeated tests share a session and the pause after refused logins: a test that is
/// repeated with a wrong password does not lock the account at the device.
fn stand_in(credential: CredentialId, vendor: &str, url: &str, settings: &Value) -> ControllerId {
    let named = json!([credential, vendor, url, settings]).to_string();
    // Never the id of a controller: those are ids of the clock.
    id_of_digest(Sha256::digest(named.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn the_same_address_has_the_same_stand_in() {
        let id: CredentialId = Clock::default().new_id();
        let one = stand_in(id, "acme", "https://192.0.2.1", &json!({}));
        assert_eq!(one, stand_in(id, "acme", "https://192.0.2.1", &json!({})));
        assert_ne!(one, stand_in(id, "acme", "https://192.0.2.2", &json!({})));
        assert_ne!(one, stand_in(Clock::default().new_id(), "acme", "https://192.0.2.1", &json!({})));
        assert_eq!(one.0.get_version_num(), 8);
    }
}
