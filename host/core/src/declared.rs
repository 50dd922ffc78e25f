//! What the features of one program declare, together: one registry for each server.

use std::collections::BTreeMap;

use crate::Role;
use crate::event::{EventType, EventTypes};
use crate::permission::{Permission, Permissions};

/// Gives a declared name equality, order, hash and text by that name.
macro_rules! declared_name {
    ($name:ident $(, $description:literal)?) => {
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        /// The names are those of [`Declared::words`], which a document of the API adds.
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ $("description": $description,)? "type": "string" })
            }
        }
    };
}

pub(crate) use declared_name;

/// Declarations in the order of their names.
///
/// # Panics
/// Where two of them have the same name.
pub(crate) fn sorted<T: Copy>(declared: impl IntoIterator<Item = T>, name: fn(T) -> &'static str) -> Vec<T> {
    let mut sorted: Vec<T> = declared.into_iter().collect();
    sorted.sort_unstable_by_key(|one| name(*one));
    for pair in sorted.windows(2) {
        assert!(name(pair[0]) != name(pair[1]), "'{}' is declared twice", name(pair[0]));
    }
    sorted
}

/// What a subscriber of events with this type must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionAccess {
    Permission(Permission),
    SuperAdmin,
    Denied,
}

/// What reading events of a type needs, wherever it is not the stream: by REST, by a webhook, in a Connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingAccess {
    Permission(Permission),
    /// At least this role, without a ceiling of scopes.
    Role(Role),
}

/// Everything that the features of one program declare by name.
#[derive(Debug, Clone)]
pub struct Declared {
    pub permissions: Permissions,
    pub events: EventTypes,
    subscriptions: BTreeMap<&'static str, SubscriptionAccess>,
}

impl Declared {
    /// `subscriptions` are what subscribing needs, by the first segment of a type or pattern; others are denied.
    ///
    /// # Panics
    /// Where a name is declared twice.
    pub fn new(
        permissions: impl IntoIterator<Item = Permission>,
        events: impl IntoIterator<Item = EventType>,
        subscriptions: impl IntoIterator<Item = (&'static str, SubscriptionAccess)>,
    ) -> Self {
        let mut by_segment = BTreeMap::new();
        for (segment, access) in subscriptions {
            let before = by_segment.insert(segment, access);
            assert!(before.is_none(), "subscriptions to '{segment}' are declared twice");
        }
        Self {
            permissions: Permissions::new(permissions),
            events: EventTypes::new(events),
            subscriptions: by_segment,
        }
    }

    /// The same with names that installed packages declare. One that is there already stays as it is.
    #[must_use]
    pub fn with(&self, permissions: &[Permission], events: &[EventType]) -> Self {
        let is_new = |one: &&Permission| self.permissions.iter().all(|known| known != **one);
        let permissions = permissions.iter().filter(is_new).copied();
        let is_unknown = |one: &&EventType| self.events.find(one.as_str()).is_none();
        let events = events.iter().filter(is_unknown).copied();
        Self {
            permissions: Permissions::new(self.permissions.iter().chain(permissions)),
            events: EventTypes::new(self.events.iter().chain(events)),
            subscriptions: self.subscriptions.clone(),
        }
    }

    /// The permission that a subscription to `pattern` needs, by the pattern's first segment.
    pub fn for_subscription(&self, pattern: &str) -> SubscriptionAccess {
        let segment = pattern.split('.').next().unwrap_or_default();
        self.subscriptions.get(segment).copied().unwrap_or(SubscriptionAccess::Denied)
    }

    /// What reading events of this type or pattern needs. The table of the stream decides for the prefixes that it opens; all
    /// others are for administrators of the organization, except those of the service itself.
    pub fn for_reading(&self, pattern: &str) -> ReadingAccess {
        match self.for_subscription(pattern) {
            SubscriptionAccess::Permission(permission) => ReadingAccess::Permission(permission),
            // Each event that it covers is judged by its own type, too.
            SubscriptionAccess::SuperAdmin if pattern == "*" => ReadingAccess::Role(Role::OrgAdmin),
            SubscriptionAccess::SuperAdmin => ReadingAccess::Role(Role::SuperAdmin),
            SubscriptionAccess::Denied => ReadingAccess::Role(Role::OrgAdmin),
        }
    }

    /// What subscribing needs, by the first segment of a type or pattern, in the order of the segments.
    pub fn subscriptions(&self) -> impl Iterator<Item = (&'static str, SubscriptionAccess)> + '_ {
        self.subscriptions.iter().map(|(segment, access)| (*segment, *access))
    }

    /// The names that values of these schemas have, for a document of the API.
    pub fn words(&self) -> [(&'static str, Vec<&'static str>); 2] {
        [
            ("EventType", self.events.iter().map(EventType::as_str).collect()),
            ("Permission", self.permissions.iter().map(Permission::as_str).collect()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::permissions! { PERMISSIONS {
        DEVICE_READ = "device:read", Guest, "See devices";
        USER_READ = "user:read", OrgAdmin, "See users";
    } }

    fn declared() -> Declared {
        let access = SubscriptionAccess::Permission;
        let subscriptions = [
            ("device", access(DEVICE_READ)),
            ("user", access(USER_READ)),
            ("system", SubscriptionAccess::SuperAdmin),
            ("*", SubscriptionAccess::SuperAdmin),
        ];
        Declared::new(PERMISSIONS.iter().copied(), [], subscriptions)
    }

    #[test]
    fn undeclared_prefixes_are_denied_to_everyone() {
        for pattern in ["network.*", "devices.*", "automation.*", ""] {
            assert_eq!(declared().for_subscription(pattern), SubscriptionAccess::Denied, "{pattern}");
        }
        assert_eq!(declared().for_subscription("system.*"), SubscriptionAccess::SuperAdmin);
    }

    #[test]
    fn administrators_read_all_events_but_those_of_the_service() {
        for (pattern, needed) in [
            ("device.offline", ReadingAccess::Permission(DEVICE_READ)),
            ("user.*", ReadingAccess::Permission(USER_READ)),
            ("ingest.external", ReadingAccess::Role(Role::OrgAdmin)),
            ("*", ReadingAccess::Role(Role::OrgAdmin)),
            ("system.started", ReadingAccess::Role(Role::SuperAdmin)),
        ] {
            assert_eq!(declared().for_reading(pattern), needed, "{pattern}");
        }
    }

    #[test]
    fn names_of_packages_stand_beside_those_of_the_program() {
        let manage = crate::interned::permission("plugin.acme.manage", Role::OrgAdmin, "Manage");
        let mine = crate::interned::permission("device:read", Role::OrgAdmin, "Taken");
        let more = declared().with(&[manage, mine], &[]);
        let names: Vec<&str> = more.permissions.iter().map(Permission::as_str).collect();
        assert_eq!(names, ["device:read", "plugin.acme.manage", "user:read"]);
        assert!(
            more.permissions.iter().any(|one| one.allows() == "See devices"),
            "a name of the program stays"
        );
        assert_eq!(declared().permissions.iter().count(), 2);
    }

    #[test]
    #[should_panic(expected = "'device:read' is declared twice")]
    fn a_name_is_declared_once() {
        Permissions::new([DEVICE_READ, USER_READ, DEVICE_READ]);
    }
}
