//! Typed ids: UUID version 7, so that they sort by creation.

/// Declares id types that are transparent in JSON, JSON Schema and SQL.
macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident,)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
        #[serde(transparent)]
        pub struct $name(pub uuid::Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<uuid::Uuid> for $name {
            fn from(id: uuid::Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for uuid::Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

ids! {
    OrgId,
    UserId,
    RoleId,
    SessionId,
    SiteId,
    ControllerId,
    SyncId,
    CredentialId,
    DeviceId,
    ChangeId,
    EventId,
    AuditId,
    ApiKeyId,
    IdentityProviderId,
    /// The identity of a user at an identity provider.
    IdentityId,
    /// One sign-in on its way to an identity provider and back.
    SsoAttemptId,
    /// An app that users let act for them.
    OauthAppId,
    /// What one user allowed one app.
    OauthGrantId,
    /// One run of the program among those that serve the same database.
    ProcessId,
    /// What wires events to steps.
    ConnectionId,
    /// One firing of a Connection.
    RunId,
    /// A receiver of events by HTTP.
    SubscriptionId,
    /// One event on its way to one subscription.
    DeliveryId,
    /// Payload of deliveries, written by an organization.
    WebhookTemplateId,
    /// Where notifications go.
    ChannelId,
    /// A notification inside the service.
    NoticeId,
}
