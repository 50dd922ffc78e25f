//! Permissions: what routes and rules ask for, and which roles hold it.
//!
//! Features declare theirs, each with the lowest role that holds it; the higher roles follow. [`Permissions`] holds all
//! that one program has.

use crate::Role;
use crate::declared::declared_name;

/// What a feature declares of a permission.
#[derive(Debug)]
pub struct PermissionDeclaration {
    /// Such as `device:read`; unique in a program.
    pub name: &'static str,
    /// The lowest role that holds it.
    pub role: Role,
    /// What it allows, in words for the person who is asked to grant it to an app.
    pub allows: &'static str,
}

/// A right that a route or a rule asks for. Two are equal when they have the same name.
#[derive(Debug, Clone, Copy)]
pub struct Permission(&'static PermissionDeclaration);

impl Permission {
    /// The permission that this declaration makes.
    pub const fn declared(declaration: &'static PermissionDeclaration) -> Self {
        Self(declaration)
    }

    pub const fn as_str(self) -> &'static str {
        self.0.name
    }

    /// The lowest role that holds it.
    pub const fn role(self) -> Role {
        self.0.role
    }

    /// What it allows, in words for people.
    pub const fn allows(self) -> &'static str {
        self.0.allows
    }
}

declared_name!(Permission, "A right that a route or a rule asks for.");

/// Declares permissions: `SITE_READ = "site:read", Guest, "See sites";` for each, with the lowest role that holds it and
/// what it allows; and a constant with all of them.
#[macro_export]
macro_rules! permissions {
    ($vis:vis $all:ident { $($const:ident = $name:literal, $role:ident, $allows:literal;)+ }) => {
        $($vis const $const: $crate::Permission =
            $crate::Permission::declared(&$crate::permission::PermissionDeclaration {
                name: $name,
                role: $crate::Role::$role,
                allows: $allows,
            });)+
        $vis const $all: &[$crate::Permission] = &[$($const),+];
    };
}

/// All permissions of a program, sorted by their names.
#[derive(Debug, Clone)]
pub struct Permissions(Vec<Permission>);

impl Permissions {
    /// # Panics
    /// Where two of them have the same name.
    pub fn new(declared: impl IntoIterator<Item = Permission>) -> Self {
        Self(crate::declared::sorted(declared, Permission::as_str))
    }

    pub fn iter(&self) -> impl Iterator<Item = Permission> + '_ {
        self.0.iter().copied()
    }

    /// What a role holds as users see it: `["*"]` for `super_admin`.
    pub fn held_by(&self, role: Role) -> Vec<&'static str> {
        if role == Role::SuperAdmin {
            return vec!["*"];
        }
        self.iter().filter(|permission| role.holds(*permission)).map(Permission::as_str).collect()
    }
}

impl Role {
    /// Whether this role holds `permission`. A higher role holds all of the lower ones'.
    pub const fn holds(self, permission: Permission) -> bool {
        self.is_at_least(permission.role())
    }
}

/// A scope of an API key or an app: one permission, or all below a word.
///
/// `device:read` and `cameras.view` name a permission, `device:*` and
/// `cameras.*` all that begin so. `*` alone names no permission at all: it is
/// only what an exact check for `*` finds.
#[derive(Debug, Clone)]
pub struct KeyScope {
    text: String,
    /// The permissions of the program that it covered when it was read.
    permissions: Vec<Permission>,
}

impl PartialEq for KeyScope {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for KeyScope {}

/// Text that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a permission: give one such as 'device:read', or 'device:*' for all of a kind")]
pub struct UnknownScope(pub String);

impl KeyScope {
    /// The scope that names everything and covers nothing.
    pub const EVERYTHING: &'static str = "*";

    /// Reads a scope that covers at least one of these permissions.
    pub fn parse(text: &str, all: &Permissions) -> Result<Self, UnknownScope> {
        let permissions: Vec<Permission> =
            all.iter().filter(|permission| covers(text, permission.as_str())).collect();
        let is_known = text == Self::EVERYTHING || !permissions.is_empty();
        if is_known {
            Ok(Self { text: text.to_owned(), permissions })
        } else {
            Err(UnknownScope(text.to_owned()))
        }
    }

    /// The scope that names this permission and no other.
    pub fn of(permission: Permission) -> Self {
        Self { text: permission.as_str().to_owned(), permissions: vec![permission] }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The permissions that it covers.
    pub fn permissions(&self) -> &[Permission] {
        &self.permissions
    }

    pub fn covers(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }

    /// Whether a user of this role holds everything that the scope names.
    pub fn is_held_by(&self, role: Role) -> bool {
        if self.text == Self::EVERYTHING {
            return role == Role::SuperAdmin;
        }
        self.permissions.iter().all(|permission| role.holds(*permission))
    }
}

/// A pattern covers what it is equal to, and, ending in `:*` or `.*`, what begins as it does.
fn covers(pattern: &str, permission: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) if stem.len() > 1 && stem.ends_with([':', '.']) => permission.starts_with(stem),
        _ => pattern == permission,
    }
}

#[cfg(test)]
mod tests;
