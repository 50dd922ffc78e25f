//! Bodies that add or change a provider, and their checks.

use std::collections::BTreeMap;

use heddle_core::secret::Secret;
use heddle_core::{OrgId, ProviderKind, Role};
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::nulls::{given, nullable};
use heddle_store::Set;
use heddle_store::sso::Provider;
use heddle_tenancy::users::rules;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::settings::{Ldap, Oidc, Saml, read, stored};

const SECRET_BYTES_MAX: usize = 4096;
const GROUPS_MAX: usize = 200;
const GROUP_CHARS_MAX: usize = 512;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewIdentityProvider")]
pub(super) struct NewBody {
    kind: ProviderKind,
    /// Text of the button on the login page.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    label: String,
    /// True when absent.
    is_enabled: Option<bool>,
    /// Whether a person without an account gets one at the first sign-in; false when absent.
    allow_registration: Option<bool>,
    /// Whether a person whose verified email is that of an account of the organization gets that account; false when
    /// absent.
    allow_linking: Option<bool>,
    /// Role of new accounts without a mapped group; `viewer` when absent, at most `org_admin`.
    #[schemars(extend("enum" = rules::assignable_words()))]
    default_role: Option<String>,
    /// Maps the provider's groups to roles, at most `org_admin`; the highest role counts. Up to 200 groups of 1 to 512
    /// characters.
    #[serde(default)]
    #[schemars(transform = say_mapping)]
    role_mapping: BTreeMap<String, String>,
    /// With kind `oidc`.
    oidc: Option<Oidc>,
    /// With kind `ldap`.
    ldap: Option<Ldap>,
    /// With kind `saml`.
    saml: Option<Saml>,
    /// With kind `oidc`; absent for a public client. At most 4096 bytes.
    #[schemars(extend("minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    client_secret: Option<Secret>,
    /// With kind `ldap`: password of the search account. At most 4096 bytes.
    #[schemars(extend("minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    bind_password: Option<Secret>,
    /// Another organization than the own one; for `super_admin`.
    pub(super) organization_id: Option<OrgId>,
}

/// The changes; absent fields stay as they are. The settings of the kind are replaced as a whole.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IdentityProviderUpdate")]
pub(super) struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    label: Option<String>,
    #[serde(default, deserialize_with = "given")]
    is_enabled: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    allow_registration: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    allow_linking: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(extend("enum" = rules::assignable_words()))]
    default_role: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(transform = say_mapping)]
    role_mapping: Option<BTreeMap<String, String>>,
    /// Needs `client_secret` again when the stored secret would be sent to another provider.
    #[serde(default, deserialize_with = "given")]
    oidc: Option<Oidc>,
    /// Needs `bind_password` again when the stored password would be sent to another directory, or with less
    /// protection.
    #[serde(default, deserialize_with = "given")]
    ldap: Option<Ldap>,
    #[serde(default, deserialize_with = "given")]
    saml: Option<Saml>,
    /// `null` clears it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true, "minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    client_secret: Option<Option<Secret>>,
    /// `null` clears it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true, "minLength" = 1, "maxLength" = SECRET_BYTES_MAX))]
    bind_password: Option<Option<Secret>>,
}

/// Adds to the document what [`check_groups`] and [`parse_mapping`] accept.
fn say_mapping(schema: &mut Schema) {
    schema.insert("maxProperties".to_owned(), json!(GROUPS_MAX));
    schema.insert("propertyNames".to_owned(), json!({ "minLength": 1, "maxLength": GROUP_CHARS_MAX }));
    let role = json!({ "type": "string", "enum": rules::assignable_words() });
    schema.insert("additionalProperties".to_owned(), role);
}

/// A provider to be added, checked.
pub(super) struct Wanted {
    pub(super) kind: ProviderKind,
    pub(super) label: String,
    pub(super) is_enabled: bool,
    pub(super) allow_registration: bool,
    pub(super) allow_linking: bool,
    pub(super) default_role: Role,
    pub(super) role_mapping: Value,
    pub(super) settings: Value,
    pub(super) secret: Option<Secret>,
}

/// A change, checked.
pub(super) struct Change {
    pub(super) label: Option<String>,
    pub(super) is_enabled: Option<bool>,
    pub(super) allow_registration: Option<bool>,
    pub(super) allow_linking: Option<bool>,
    pub(super) default_role: Option<Role>,
    pub(super) role_mapping: Option<Value>,
    pub(super) settings: Option<Value>,
    pub(super) secret: Set<Secret>,
    /// Names of the fields, for the audit log.
    pub(super) changed: Vec<&'static str>,
}

impl NewBody {
    pub(super) fn check(self) -> Result<Wanted, Error> {
        let default_role = self.default_role.as_deref().map_or(Ok(Role::Viewer), parse_role)?;
        let role_mapping = parse_mapping(&self.role_mapping)?;
        let mut checks = Checks::default();
        let label = checks.name("label", &self.label);
        check_groups(&self.role_mapping, &mut checks);
        let given = Given {
            oidc: self.oidc,
            ldap: self.ldap,
            saml: self.saml,
            client_secret: self.client_secret.map(Some),
            bind_password: self.bind_password.map(Some),
        };
        given.groups_are_known(self.kind, None, !self.role_mapping.is_empty(), &mut checks)?;
        let (settings, secret) = given.check(self.kind, None, &mut checks)?;
        checks.require(settings.is_some(), self.kind.as_str(), "is needed: the settings of the kind");
        checks.done()?;
        Ok(Wanted {
            kind: self.kind,
            label,
            is_enabled: self.is_enabled.unwrap_or(true),
            allow_registration: self.allow_registration.unwrap_or(false),
            allow_linking: self.allow_linking.unwrap_or(false),
            default_role,
            role_mapping,
            settings: settings.unwrap_or(json!({})),
            secret: match secret {
                Set::To(secret) => Some(secret),
                Set::Keep | Set::Clear => None,
            },
        })
    }
}

impl UpdateBody {
    pub(super) fn check(self, current: &Provider) -> Result<Change, Error> {
        let changed = self.changed();
        let default_role = self.default_role.as_deref().map(parse_role).transpose()?;
        let role_mapping = self.role_mapping.as_ref().map(parse_mapping).transpose()?;
        let mut checks = Checks::default();
        let label = self.label.as_deref().map(|label| checks.name("label", label));
        if let Some(mapping) = &self.role_mapping {
            check_groups(mapping, &mut checks);
        }
        let given = Given {
            oidc: self.oidc,
            ldap: self.ldap,
            saml: self.saml,
            client_secret: self.client_secret,
            bind_password: self.bind_password,
        };
        let maps = role_mapping.as_ref().unwrap_or(&current.role_mapping);
        let maps = maps.as_object().is_some_and(|mapping| !mapping.is_empty());
        // Checks only what this request changes, so that any stored provider can be disabled.
        if role_mapping.is_some() || given.ldap.is_some() {
            given.groups_are_known(current.kind, Some(current), maps, &mut checks)?;
        }
        let (settings, secret) = given.check(current.kind, Some(current), &mut checks)?;
        checks.done()?;
        Ok(Change {
            label,
            is_enabled: self.is_enabled,
            allow_registration: self.allow_registration,
            allow_linking: self.allow_linking,
            default_role,
            role_mapping,
            settings,
            secret,
            changed,
        })
    }

    fn changed(&self) -> Vec<&'static str> {
        let fields = [
            ("label", self.label.is_some()),
            ("is_enabled", self.is_enabled.is_some()),
            ("allow_registration", self.allow_registration.is_some()),
            ("allow_linking", self.allow_linking.is_some()),
            ("default_role", self.default_role.is_some()),
            ("role_mapping", self.role_mapping.is_some()),
            ("oidc", self.oidc.is_some()),
            ("ldap", self.ldap.is_some()),
            ("saml", self.saml.is_some()),
            ("client_secret", self.client_secret.is_some()),
            ("bind_password", self.bind_password.is_some()),
        ];
        fields.into_iter().filter_map(|(name, is_changed)| is_changed.then_some(name)).collect()
    }
}

/// The kind and its secret, as a body gives them.
struct Given {
    oidc: Option<Oidc>,
    ldap: Option<Ldap>,
    saml: Option<Saml>,
    client_secret: Option<Option<Secret>>,
    bind_password: Option<Option<Secret>>,
}

impl Given {
    /// Refuses a mapping without a source of groups: it would map nothing.
    fn groups_are_known(
        &self,
        kind: ProviderKind,
        current: Option<&Provider>,
        maps: bool,
        checks: &mut Checks,
    ) -> Result<(), Error> {
        if kind != ProviderKind::Ldap || !maps {
            return Ok(());
        }
        let before = current.map(|current| read::<Ldap>(&current.settings)).transpose()?;
        let then = self.ldap.as_ref().or(before.as_ref());
        checks.require(then.is_none_or(Ldap::knows_groups), "role_mapping",
            "would map nothing: 'ldap.group_attribute' or 'ldap.group_filter' says where a person's groups are");
        Ok(())
    }

    /// Checks settings and secret against the stored ones.
    fn check(
        self,
        kind: ProviderKind,
        current: Option<&Provider>,
        checks: &mut Checks,
    ) -> Result<(Option<Value>, Set<Secret>), Error> {
        let strangers = [
            ("oidc", self.oidc.is_some(), ProviderKind::Oidc),
            ("client_secret", self.client_secret.is_some(), ProviderKind::Oidc),
            ("ldap", self.ldap.is_some(), ProviderKind::Ldap),
            ("bind_password", self.bind_password.is_some(), ProviderKind::Ldap),
            ("saml", self.saml.is_some(), ProviderKind::Saml),
        ];
        for (field, is_given, owner) in strangers {
            checks.require(!is_given || kind == owner, field, "is of another kind of provider");
        }
        let secret = match kind {
            ProviderKind::Oidc => parse_secret("client_secret", self.client_secret, checks),
            ProviderKind::Ldap => parse_secret("bind_password", self.bind_password, checks),
            ProviderKind::Saml => Set::Keep,
        };
        let has_secret = current.is_some_and(|current| current.has_secret);
        let again = "is needed again: the stored one would now go elsewhere, or less protected";
        let settings = match kind {
            ProviderKind::Oidc => match self.oidc.map(|oidc| oidc.check(checks)) {
                Some(new) => {
                    let before = current.map(|current| read::<Oidc>(&current.settings)).transpose()?;
                    let moves = before.is_some_and(|before| new.sends_elsewhere(&before));
                    let is_kept = has_secret && secret == Set::Keep;
                    checks.require(!(moves && is_kept), "client_secret", again);
                    Some(stored(&new))
                }
                None => None,
            },
            ProviderKind::Ldap => {
                let before = current.map(|current| read::<Ldap>(&current.settings)).transpose()?;
                let new = self.ldap.map(|ldap| ldap.check(checks));
                let moves =
                    new.as_ref().zip(before.as_ref()).is_some_and(|(new, old)| new.sends_elsewhere(old));
                checks.require(!(moves && has_secret && secret == Set::Keep), "bind_password", again);
                let then = new.as_ref().or(before.as_ref());
                let searches_as = then.is_some_and(|ldap| ldap.bind_dn.is_some());
                let has = matches!(secret, Set::To(_)) || (has_secret && secret == Set::Keep);
                checks.require(!searches_as || has, "bind_password", "is needed for bind_dn");
                checks.require(
                    searches_as || !has || then.is_none(),
                    "ldap.bind_dn",
                    "is needed for bind_password; clear that with null to search anonymously",
                );
                new.as_ref().map(stored)
            }
            ProviderKind::Saml => self.saml.map(|saml| stored(&saml.check(checks))),
        };
        Ok((settings, secret))
    }
}

fn parse_secret(field: &str, given: Option<Option<Secret>>, checks: &mut Checks) -> Set<Secret> {
    let set = Set::from(given);
    if let Set::To(secret) = &set {
        let fits = (1..=SECRET_BYTES_MAX).contains(&secret.expose().len());
        checks.require(fits, field, &format!("must have 1 to {SECRET_BYTES_MAX} bytes"));
    }
    set
}

/// Parses a role that a provider may give.
///
/// # Errors
/// 400 `unknown_role`, 403 `role_too_high`.
fn parse_role(text: &str) -> Result<Role, Error> {
    let role = rules::parse_role(text)?;
    if role.is_at_least(Role::SuperAdmin) {
        return Err(Error::Refused {
            kind: "role_too_high",
            message: format!("an identity provider gives at most '{}', not '{role}'", Role::OrgAdmin),
        });
    }
    Ok(role)
}

fn parse_mapping(mapping: &BTreeMap<String, String>) -> Result<Value, Error> {
    let parsed = |(group, role): (&String, &String)| Ok((group.clone(), json!(parse_role(role)?)));
    Ok(Value::Object(mapping.iter().map(parsed).collect::<Result<Map<_, _>, Error>>()?))
}

fn check_groups(mapping: &BTreeMap<String, String>, checks: &mut Checks) {
    let is_group = |group: &String| (1..=GROUP_CHARS_MAX).contains(&group.chars().count());
    let fits = mapping.len() <= GROUPS_MAX && mapping.keys().all(is_group);
    let message = format!("must have up to {GROUPS_MAX} groups of 1 to {GROUP_CHARS_MAX} characters");
    checks.require(fits, "role_mapping", &message);
}
