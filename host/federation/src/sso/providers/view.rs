//! A provider as administrators see it.

use heddle_core::{OrgId, ProviderKind, Role, Timestamp};
use heddle_kernel::http::error::Error;
use heddle_store::sso::{IdentityProviderId, Provider};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::settings::{Ldap, Oidc, Saml, read};

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "IdentityProvider")]
#[expect(clippy::struct_excessive_bools, reason = "switches that do not depend on each other")]
pub(crate) struct View {
    id: IdentityProviderId,
    #[serde(skip)]
    revision: i64,
    organization_id: OrgId,
    kind: ProviderKind,
    /// Text of the button on the login page.
    label: String,
    is_enabled: bool,
    /// Whether a person without an account gets one at the first sign-in.
    allow_registration: bool,
    /// Whether a person whose verified email is that of an account of the organization gets that account.
    allow_linking: bool,
    /// Role of new accounts without a mapped group.
    default_role: Role,
    /// Maps the provider's groups to roles. When it is not empty, it is applied at every sign-in of the accounts that
    /// the provider created.
    #[schemars(with = "std::collections::BTreeMap<String, Role>")]
    role_mapping: Map<String, Value>,
    /// With kind `oidc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    oidc: Option<Oidc>,
    /// With kind `ldap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ldap: Option<Ldap>,
    /// With kind `saml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    saml: Option<Saml>,
    /// Whether a client secret, or the search account's password, is stored.
    has_secret: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

heddle_store::revised!(View);

impl View {
    pub(super) fn of(provider: Provider) -> Result<Self, Error> {
        let settings = &provider.settings;
        let (mut oidc, mut ldap, mut saml) = (None, None, None);
        match provider.kind {
            ProviderKind::Oidc => oidc = Some(read(settings)?),
            ProviderKind::Ldap => ldap = Some(read(settings)?),
            ProviderKind::Saml => saml = Some(read(settings)?),
        }
        Ok(Self {
            id: provider.id,
            revision: provider.revision,
            organization_id: provider.org_id,
            kind: provider.kind,
            label: provider.label,
            is_enabled: provider.is_enabled,
            allow_registration: provider.allow_registration,
            allow_linking: provider.allow_linking,
            default_role: provider.default_role,
            role_mapping: provider.role_mapping.as_object().cloned().unwrap_or_default(),
            oidc,
            ldap,
            saml,
            has_secret: provider.has_secret,
            created_at: provider.created_at,
            updated_at: provider.updated_at,
            deleted_at: provider.deleted_at,
        })
    }
}
