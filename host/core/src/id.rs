//! Typed ids: UUID version 7, so that they sort by creation.

/// Declares id types that are transparent in JSON, JSON Schema and SQL. Where they are for rows of one table, they stand beside
/// its statements.
///
/// The crate that declares them depends on `serde`, `schemars`, `uuid` and `sqlx`.
#[macro_export]
macro_rules! ids {
    ($($(#[$meta:meta])* pub $name:ident,)+) => {
        $crate::ids! { @all [derive(sqlx::Type), sqlx(transparent)] $($(#[$meta])* $name,)+ }
    };
    (@all $sql:tt $($(#[$meta:meta])* $name:ident,)+) => {
        $($crate::ids! { @one $sql $(#[$meta])* $name })+
    };
    (@one [$($sql:meta),+] $(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[$sql])+
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
    };
}

ids! {
    @all [cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
    OrgId,
    UserId,
    SiteId,
    ControllerId,
    CredentialId,
    DeviceId,
    ChangeId,
    EventId,
    /// One run of the program among those that serve the same database.
    ProcessId,
    /// What wires events to steps.
    ConnectionId,
    /// One firing of a Connection.
    RunId,
}

/// Makes an id of a digest: the same digest gives the same id. It is a UUID of version 8, so it differs from every id of the
/// clock, which has version 7.
pub fn id_of_digest<T: From<uuid::Uuid>>(digest: [u8; 32]) -> T {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().into()
}
