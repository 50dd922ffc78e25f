//! What a plugin may send to a target of its manifest: methods by the effect of the action, paths, and secrets at their
//! places. All of it is in the grant that a person consented to.

use std::sync::Arc;

use heddle_core::OrgId;
use heddle_core::fault::{Fault, FaultKind};
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::{ActionEffect, HttpTarget, SecretPlace};
use http::Method;
use serde_json::Value;
use url::Url;

use super::own::PluginReach;
use super::request::{Auth, Body, Place, Request, denied};
use super::{Account, path};
use crate::api::Credential;
use crate::services::PluginServices;

/// A target of a plugin in one call.
pub(crate) struct Declared {
    pub(crate) target: HttpTarget,
    pub(crate) effect: ActionEffect,
    pub(crate) services: Arc<dyn PluginServices>,
    /// Of the organization, as the call was given them.
    pub(crate) settings: Arc<Value>,
}

/// Whether a request changes nothing, as far as its method tells: GET or HEAD without a body.
pub(super) fn only_reads(request: &Request) -> bool {
    [Method::GET, Method::HEAD].contains(&request.method) && matches!(request.body, Body::None)
}

impl Declared {
    /// Refuses a request that the manifest does not declare, or that the effect of the action does not allow.
    pub(super) fn check(&self, manifest: &Manifest, request: &Request, auth: &Auth) -> Result<(), Fault> {
        let (name, method) = (&self.target.name, request.method.as_str());
        if !self.target.methods.iter().any(|declared| declared == method) {
            let declared = self.target.methods.join(", ");
            let message = format!("{method} is not declared for the target '{name}'; it has {declared}");
            return Err(denied("method", message));
        }
        if self.effect != ActionEffect::Outward && !only_reads(request) {
            let message = format!(
                "an action of the effect '{}' sends GET and HEAD without a body; declare the effect 'outward' to send {method}",
                self.effect.as_str()
            );
            return Err(denied("read-only", message));
        }
        // Before the patterns: what they are compared with has one meaning.
        path::check(&request.path)?;
        if !self.target.paths.iter().any(|pattern| path::fits(pattern, &request.path)) {
            let declared = few(&self.target.paths);
            let message = format!("this path is not declared for the target '{name}'; it has {declared}");
            return Err(denied("path", message));
        }
        match auth {
            Auth::None => Ok(()),
            Auth::Session(_) => Err(denied("session", "a plugin has no managed sessions; name its secrets")),
            Auth::Basic(username, password) => {
                self.check_place(manifest, username, &SecretPlace::BasicUsername)?;
                self.check_place(manifest, password, &SecretPlace::BasicPassword)
            }
            Auth::Inject(places) => places
                .iter()
                .try_for_each(|(place, name)| self.check_place(manifest, name, &as_declared(place))),
        }
    }

    fn check_place(&self, manifest: &Manifest, name: &str, place: &SecretPlace) -> Result<(), Fault> {
        let rules = manifest.capabilities.secrets.rules();
        let rule = rules.iter().find(|rule| rule.name == name && rule.target == self.target.name);
        if rule.is_some_and(|rule| rule.places.contains(place)) {
            return Ok(());
        }
        let shown: String = name.chars().filter(char::is_ascii_graphic).take(64).collect();
        let message = format!(
            "the secret '{shown}' is not declared for the target '{}' at '{place}'; list the place in 'capabilities.secrets'",
            self.target.name
        );
        Err(denied("secret-place", message))
    }

    /// The addresses that the target may have.
    pub(super) fn reach(&self, url: &Url) -> PluginReach {
        PluginReach { is_private: self.target.private, is_encrypted: url.scheme() == "https" }
    }

    /// Those of the organization's secrets that the manifest declares, whatever their target: an answer repeats none of
    /// them.
    pub(super) async fn secrets(
        &self,
        org: OrgId,
        manifest: &Manifest,
        account: &Account,
    ) -> Result<Credential, Fault> {
        secrets(self.services.as_ref(), org, (manifest, &self.settings), account).await
    }
}

/// Whether a refusal says something of the component. What else is refused follows from what it was given: a path, a
/// header, a body, an address.
pub(crate) fn is_of_component(code: &str) -> bool {
    ["method", "read-only", "no-target", "secret-place", "operation", "event-type"].contains(&code)
}

/// The first of some names, for a text.
pub(crate) fn few(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 4;
    const CHARS_MAX: usize = 60;
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown = names.iter().take(SHOWN).map(|name| name.as_ref().chars().take(CHARS_MAX).collect());
    let shown = shown.collect::<Vec<String>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Those of an organization's secrets that the manifest declares.
pub(crate) async fn secrets(
    services: &dyn PluginServices,
    org: OrgId,
    (manifest, settings): (&Manifest, &Value),
    account: &Account,
) -> Result<Credential, Fault> {
    let mut given = services.secrets(org, manifest, settings).await.map_err(|error| {
        if account.is_first_failure() {
            tracing::error!(plugin = manifest.id, organization.id = %org, reason = %error, "the secrets of a plugin cannot be read");
        }
        Fault::new(FaultKind::Authentication, "the secrets of the plugin cannot be read")
            .with_code("credential-unreadable")
    })?;
    let rules = manifest.capabilities.secrets.rules();
    given.fields.retain(|(name, _)| rules.iter().any(|rule| rule.name == *name));
    Ok(given)
}

/// Refuses a request with a secret that the organization has not given.
pub(super) fn check_given(auth: &Auth, given: &Credential) -> Result<(), Fault> {
    let named: Vec<&String> = match auth {
        Auth::None | Auth::Session(_) => Vec::new(),
        Auth::Basic(username, password) => vec![username, password],
        Auth::Inject(places) => places.iter().map(|(_, name)| name).collect(),
    };
    match named.into_iter().find(|name| !given.fields.iter().any(|(found, _)| found == *name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("the organization has not given the plugin its secret '{name}'");
            Err(Fault::new(FaultKind::Authentication, message).with_code("secret-missing"))
        }
    }
}

/// A place as manifests write it.
fn as_declared(place: &Place) -> SecretPlace {
    match place {
        Place::Bearer => SecretPlace::Bearer,
        Place::Header(name, _) => SecretPlace::Header(name.to_ascii_lowercase()),
        Place::Query(name) => SecretPlace::Query(name.clone()),
        Place::JsonPointer(pointer) => SecretPlace::Json(pointer.clone()),
        Place::FormField(name) => SecretPlace::Form(name.clone()),
    }
}
