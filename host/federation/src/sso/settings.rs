//! The settings of each kind of provider, without its secret, and their checks.

use heddle_core::tls::{TlsMode, TlsPolicy};
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::nulls::or_null;
use heddle_kernel::tls::check_tls_at;
use ldap3::parse_filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::{Host, Url};

/// Most characters of an address, a claim, an attribute, a name of a directory.
pub(super) const TEXT_CHARS_MAX: usize = 2048;
/// Most nested parentheses in a filter.
const FILTER_DEPTH_MAX: usize = 20;
/// Most scopes, and most redirect URIs.
const LIST_MAX: usize = 50;
/// Most characters of an attribute's name, all of them ASCII.
const ATTRIBUTE_CHARS_MAX: usize = 100;
/// Placeholder of the typed name in a filter.
pub(super) const LOGIN: &str = "{login}";
/// Placeholder of the distinguished name of the person's entry in a filter of groups.
pub(super) const DN: &str = "{dn}";

/// An `OpenID` provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OidcSettings")]
pub(crate) struct Oidc {
    /// Exactly as the provider names itself; its discovery document lies below.
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) issuer: String,
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) client_id: String,
    /// In addition to `openid`, which is always requested; `email` and `profile` when absent.
    #[serde(default = "default_scopes")]
    #[schemars(length(max = LIST_MAX), inner(length(min = 1, max = TEXT_CHARS_MAX)))]
    pub(super) scopes: Vec<String>,
    /// Pages of the user interface to which a sign-in may return, compared character for character.
    #[schemars(length(min = 1, max = LIST_MAX), inner(length(min = 1, max = TEXT_CHARS_MAX)))]
    pub(super) redirect_uris: Vec<String>,
    /// Claim with the groups: an array of texts, or one text.
    #[serde(default = "default_groups_claim")]
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) groups_claim: String,
    /// Claim with the user name for new users.
    #[serde(default = "default_username_claim")]
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) username_claim: String,
    /// Whether a new account needs an email that the provider has verified. Linking always does.
    #[serde(default = "yes")]
    pub(super) require_verified_email: bool,
    /// How the provider's certificate is checked: `verify` (default) or `pin`.
    #[serde(default)]
    pub(super) tls: TlsPolicy,
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LdapSettings")]
pub(crate) struct Ldap {
    /// `ldap://host:port` or `ldaps://host:port`.
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) url: String,
    /// Begins TLS on an `ldap://` connection.
    #[serde(default)]
    pub(super) start_tls: bool,
    /// Allows passwords over `ldap://` without TLS.
    #[serde(default)]
    pub(super) insecure: bool,
    /// How the certificate is checked: `verify` (default) or `pin`.
    #[serde(default)]
    pub(super) tls: TlsPolicy,
    /// Name of the search account; anonymous when absent.
    #[serde(default, deserialize_with = "or_null")]
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX), extend("x-nullable" = true))]
    pub(super) bind_dn: Option<String>,
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) base_dn: String,
    /// Finds one person: `(uid={login})`. The name is escaped before it replaces `{login}`. At most 2048 bytes.
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) user_filter: String,
    #[serde(default)]
    pub(super) attributes: Attributes,
    /// Attribute of the person with their groups, such as `memberOf`.
    #[serde(default, deserialize_with = "or_null")]
    #[schemars(length(min = 1, max = ATTRIBUTE_CHARS_MAX), extend("x-nullable" = true))]
    pub(super) group_attribute: Option<String>,
    /// Finds the person's groups: `(&(objectClass=groupOfNames)(member={dn}))`; `{login}` can be used, too. At most
    /// 2048 bytes.
    #[serde(default, deserialize_with = "or_null")]
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX), extend("x-nullable" = true))]
    pub(super) group_filter: Option<String>,
    /// Where groups are searched; `base_dn` when absent.
    #[serde(default, deserialize_with = "or_null")]
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX), extend("x-nullable" = true))]
    pub(super) group_base_dn: Option<String>,
}

/// Attributes of a person's entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "LdapAttributes")]
pub(crate) struct Attributes {
    /// Attribute that stays the same when the person is renamed. When absent, `entryUUID` or `objectGUID`, whichever
    /// exists, else the entry's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = ATTRIBUTE_CHARS_MAX))]
    pub(super) id: Option<String>,
    #[schemars(length(min = 1, max = ATTRIBUTE_CHARS_MAX))]
    pub(super) username: String,
    #[schemars(length(min = 1, max = ATTRIBUTE_CHARS_MAX))]
    pub(super) email: String,
    #[schemars(length(min = 1, max = ATTRIBUTE_CHARS_MAX))]
    pub(super) full_name: String,
}

/// A SAML provider: people are sent there, but its answers are not accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SamlSettings")]
pub(crate) struct Saml {
    /// Address of the provider for requests by redirect.
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) entry_point: String,
    /// Name of this service at the provider.
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) entity_id: String,
    /// Address to which the provider is asked to send its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = TEXT_CHARS_MAX))]
    pub(super) callback_url: Option<String>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self { id: None, username: "uid".to_owned(), email: "mail".to_owned(), full_name: "cn".to_owned() }
    }
}

fn yes() -> bool {
    true
}

fn default_scopes() -> Vec<String> {
    ["email", "profile"].map(str::to_owned).into()
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

fn default_username_claim() -> String {
    "preferred_username".to_owned()
}

/// Settings as they are stored.
pub(super) fn stored<T: Serialize>(settings: &T) -> Value {
    serde_json::to_value(settings).expect("settings are JSON")
}

/// Settings as they were stored.
pub(super) fn read<T: serde::de::DeserializeOwned>(settings: &Value) -> Result<T, Error> {
    T::deserialize(settings).map_err(Error::internal)
}

impl Oidc {
    pub(super) fn check(mut self, checks: &mut Checks) -> Self {
        checks.require(is_issuer(&self.issuer), "oidc.issuer",
            "must be an https:// address without query and fragment, exactly as the provider names itself; http:// is \
             for this machine only");
        text(checks, "oidc.client_id", &self.client_id);
        text(checks, "oidc.groups_claim", &self.groups_claim);
        text(checks, "oidc.username_claim", &self.username_claim);
        self.check_lists(checks);
        self.scopes.retain(|scope| scope != "openid");
        self.tls = check_provider_tls("oidc.tls", self.tls, checks);
        self
    }

    fn check_lists(&self, checks: &mut Checks) {
        let fits = self.scopes.len() <= LIST_MAX;
        checks.require(fits, "oidc.scopes", &format!("must be up to {LIST_MAX} words"));
        for (at, scope) in self.scopes.iter().enumerate().take(LIST_MAX) {
            let is_word = (1..=TEXT_CHARS_MAX).contains(&scope.len())
                && scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
            let message = format!("must be a word of 1 to {TEXT_CHARS_MAX} characters without blanks");
            checks.require(is_word, &format!("oidc.scopes[{at}]"), &message);
        }
        let fits = (1..=LIST_MAX).contains(&self.redirect_uris.len());
        checks.require(fits, "oidc.redirect_uris", &format!("must be 1 to {LIST_MAX} addresses of pages"));
        for (at, uri) in self.redirect_uris.iter().enumerate().take(LIST_MAX) {
            let message = format!(
                "must be a complete address of a page, with https:// (http:// for this machine only), without a \
                 fragment, and of {TEXT_CHARS_MAX} characters at most"
            );
            checks.require(is_page(uri), &format!("oidc.redirect_uris[{at}]"), &message);
        }
    }

    /// Whether the stored secret would now be sent to another receiver.
    pub(super) fn sends_elsewhere(&self, before: &Self) -> bool {
        self.issuer != before.issuer || self.tls != before.tls || self.client_id != before.client_id
    }
}

impl Ldap {
    pub(super) fn check(mut self, checks: &mut Checks) -> Self {
        let place = Place::parse(&self.url);
        checks.require(
            place.is_some(),
            "ldap.url",
            "must be 'ldap://host', 'ldaps://host' or one of them with a port",
        );
        let is_ldaps = place.as_ref().is_some_and(|place| place.is_ldaps);
        checks.require(
            !(is_ldaps && (self.start_tls || self.insecure)),
            "ldap.start_tls",
            "is for ldap:// addresses, as is 'insecure'; ldaps:// has TLS from the beginning",
        );
        let is_safe = is_ldaps || self.start_tls || self.insecure;
        checks.require(place.is_none() || is_safe, "ldap.url",
            "would send passwords in the clear: use ldaps://, set 'start_tls', or set 'insecure' if it has to be");
        checks.require(
            !(self.start_tls && self.insecure),
            "ldap.insecure",
            "and 'start_tls' exclude each other",
        );
        self.tls = check_provider_tls("ldap.tls", self.tls, checks);
        text(checks, "ldap.base_dn", &self.base_dn);
        for (field, name) in
            [("ldap.bind_dn", self.bind_dn.as_deref()), ("ldap.group_base_dn", self.group_base_dn.as_deref())]
        {
            if let Some(name) = name {
                text(checks, field, name);
            }
        }
        let is_filter = |filter: &str| {
            filter.len() <= TEXT_CHARS_MAX
                && depth(filter) <= FILTER_DEPTH_MAX
                && parse_filter(filter.replace(LOGIN, "x").replace(DN, "x")).is_ok()
        };
        checks.require(
            self.user_filter.contains(LOGIN) && is_filter(&self.user_filter),
            "ldap.user_filter",
            "must be a filter with {login} in it, such as '(uid={login})'",
        );
        if let Some(filter) = &self.group_filter {
            let names_person = filter.contains(DN) || filter.contains(LOGIN);
            checks.require(
                names_person && is_filter(filter),
                "ldap.group_filter",
                "must be a filter with {dn} or {login} in it, such as '(member={dn})'",
            );
        }
        let attributes = [
            ("ldap.attributes.id", self.attributes.id.as_deref()),
            ("ldap.attributes.username", Some(self.attributes.username.as_str())),
            ("ldap.attributes.email", Some(self.attributes.email.as_str())),
            ("ldap.attributes.full_name", Some(self.attributes.full_name.as_str())),
            ("ldap.group_attribute", self.group_attribute.as_deref()),
        ];
        for (field, name) in attributes {
            let fits = name.is_none_or(is_attribute);
            let message = format!(
                "must be the name of an attribute: 1 to {ATTRIBUTE_CHARS_MAX} letters, digits and hyphens"
            );
            checks.require(fits, field, &message);
        }
        self
    }

    /// Whether a person's groups are read.
    pub(super) fn knows_groups(&self) -> bool {
        self.group_attribute.is_some() || self.group_filter.is_some()
    }

    /// Whether the stored secret would now be sent to another receiver, or with less protection.
    pub(super) fn sends_elsewhere(&self, before: &Self) -> bool {
        self.url != before.url
            || self.start_tls != before.start_tls
            || self.tls != before.tls
            || self.bind_dn != before.bind_dn
    }
}

impl Saml {
    pub(super) fn check(self, checks: &mut Checks) -> Self {
        checks.require(is_page(&self.entry_point), "saml.entry_point", "must be a complete https:// address");
        text(checks, "saml.entity_id", &self.entity_id);
        let fits = self.callback_url.as_deref().is_none_or(is_page);
        checks.require(fits, "saml.callback_url", "must be a complete https:// address");
        self
    }
}

/// Returns how deep the parentheses of a filter are nested: its parser recurses as deep.
fn depth(filter: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in filter.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Address of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) is_ldaps: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Place {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|_| text.len() <= TEXT_CHARS_MAX)?;
        let is_ldaps = match url.scheme() {
            "ldap" => false,
            "ldaps" => true,
            _ => return None,
        };
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none();
        let host = match url.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let port = url.port().unwrap_or(if is_ldaps { 636 } else { 389 });
        (is_plain && !host.is_empty()).then_some(Self { is_ldaps, host, port })
    }
}

fn check_provider_tls(field: &str, policy: TlsPolicy, checks: &mut Checks) -> TlsPolicy {
    checks.require(policy.mode != TlsMode::Insecure, field,
        "mode 'insecure' would let anybody say who signs in: use 'verify', with 'ca_pem' for a private authority, or \
         'pin'");
    check_tls_at(field, policy, checks)
}

fn text(checks: &mut Checks, field: &str, text: &str) {
    let fits = (1..=TEXT_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    let message = format!("must have 1 to {TEXT_CHARS_MAX} characters and no control characters");
    checks.require(fits, field, &message);
}

fn is_attribute(name: &str) -> bool {
    (1..=ATTRIBUTE_CHARS_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_issuer(text: &str) -> bool {
    is_page(text) && Url::parse(text).is_ok_and(|url| url.query().is_none())
}

/// Whether this is a complete address whose traffic cannot be read or changed on the way.
pub(super) fn is_page(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_this_machine(&url));
    // Checked as it is written, before the parser repairs it.
    let after = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = after.is_some_and(|rest| !rest.starts_with('/'))
        && text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    is_safe
        && is_plain
        && text.len() <= TEXT_CHARS_MAX
        && url.host_str().is_some_and(|host| !host.is_empty())
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests;
