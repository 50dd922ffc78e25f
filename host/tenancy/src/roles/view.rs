//! A stored role as clients see it, and those that are built in.

use heddle_core::permission::Permissions;
use heddle_core::{OrgId, Role, Timestamp, UserId};
use heddle_store::roles::{RoleId, StoredRole};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// The id of the first built-in role. It contains no time, so no other id can equal it.
const FIRST_BUILT_IN: u128 = 0x0000_0000_0000_7000_8000_0000_0000_0001;

/// A named set of permissions. It does not decide what a user may do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "StoredRole")]
pub(crate) struct RoleView {
    pub(super) id: RoleId,
    #[serde(skip)]
    revision: i64,
    /// `null` where it is built in.
    organization_id: Option<OrgId>,
    pub(super) name: String,
    description: Option<String>,
    /// Level of the role among the built-in ones; `null` where it is not built in.
    level: Option<u8>,
    permissions: Vec<String>,
    /// Built-in roles are the same everywhere and read-only.
    is_builtin: bool,
    created_by: Option<UserId>,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    deleted_at: Option<Timestamp>,
}

heddle_store::revised!(RoleView);

impl From<StoredRole> for RoleView {
    fn from(role: StoredRole) -> Self {
        Self {
            id: role.id,
            revision: role.revision,
            organization_id: Some(role.org_id),
            name: role.name,
            description: role.description,
            level: None,
            permissions: role.permissions,
            is_builtin: false,
            created_by: Some(role.created_by),
            created_at: Some(role.created_at),
            updated_at: Some(role.updated_at),
            deleted_at: role.deleted_at,
        }
    }
}

impl RoleView {
    /// Whether the name or the description contains the text, compared as the store does for its own rows.
    pub(super) fn contains(&self, search: Option<&str>) -> bool {
        let Some(text) = search.map(str::to_lowercase) else { return true };
        let holds = |field: &str| field.to_lowercase().contains(&text);
        holds(&self.name) || self.description.as_deref().is_some_and(holds)
    }
}

/// Returns the seven names that a role assignment accepts, the highest first.
pub(super) fn built_in(all: &Permissions) -> impl Iterator<Item = RoleView> + '_ {
    const NAMES: [(&str, Role, &str); 7] = [
        ("super_admin", Role::SuperAdmin, "Administers the service and every organization"),
        ("org_admin", Role::OrgAdmin, "Administers the organization, its users and sites"),
        ("admin", Role::OrgAdmin, "Another spelling of org_admin"),
        ("site_admin", Role::SiteAdmin, "Operates everything, catastrophic changes too"),
        ("operator", Role::Operator, "Stages and applies changes"),
        ("viewer", Role::Viewer, "Sees everything and changes nothing"),
        ("guest", Role::Guest, "Sees devices"),
    ];
    (FIRST_BUILT_IN..).zip(NAMES).map(move |(id, (name, role, description))| RoleView {
        id: RoleId(Uuid::from_u128(id)),
        revision: 0,
        organization_id: None,
        name: name.to_owned(),
        description: Some(description.to_owned()),
        level: Some(role.level()),
        permissions: all.held_by(role).into_iter().map(str::to_owned).collect(),
        is_builtin: true,
        created_by: None,
        created_at: None,
        updated_at: None,
        deleted_at: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declarations::PERMISSIONS;

    #[test]
    fn every_accepted_name_is_built_in_with_what_its_role_holds() {
        let all = Permissions::new(PERMISSIONS.iter().copied());
        let roles: Vec<RoleView> = built_in(&all).collect();
        for role in Role::ALL {
            assert!(roles.iter().any(|view| view.name == role.as_str()), "{role}");
        }
        for view in &roles {
            let role = Role::parse_assigned(&view.name).unwrap();
            assert_eq!((view.level, view.is_builtin), (Some(role.level()), true), "{}", view.name);
            assert_eq!(view.permissions, all.held_by(role), "{}", view.name);
        }
        assert!(roles.is_sorted_by_key(|view| std::cmp::Reverse(view.level)));
        let mut ids: Vec<RoleId> = roles.iter().map(|view| view.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), 7);
        assert_eq!(ids[0].to_string(), "00000000-0000-7000-8000-000000000001");
    }
}
