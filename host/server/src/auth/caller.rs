//! The caller: built once at the edge from the stored user, and a handler's proof of authentication.

use heddle_core::{OrgId, Permission, Role, SessionId, SiteId, UserId};
use heddle_store::{Scope, SiteScope};

use crate::http::error::Error;

#[derive(Debug, Clone)]
pub struct Caller {
    pub user_id: UserId,
    pub username: String,
    pub org_id: OrgId,
    /// The stored role, never the token's.
    pub role: Role,
    pub session_id: SessionId,
    pub sites: SiteScope,
}

impl Caller {
    pub fn holds(&self, permission: Permission) -> bool {
        self.role.holds(permission)
    }

    pub fn require(&self, permission: Permission) -> Result<(), Error> {
        if self.holds(permission) { Ok(()) } else { Err(Error::Forbidden(permission)) }
    }

    pub fn require_role(&self, role: Role) -> Result<(), Error> {
        if self.role.is_at_least(role) { Ok(()) } else { Err(Error::ForbiddenRole(role)) }
    }

    /// Which rows this caller can see.
    pub fn scope(&self) -> Scope {
        let org = if self.role == Role::SuperAdmin { None } else { Some(self.org_id) };
        Scope { org, sites: self.sites.clone() }
    }

    pub fn may_access_site(&self, site: SiteId) -> bool {
        match &self.sites {
            SiteScope::All => true,
            SiteScope::Only(sites) => sites.contains(&site),
        }
    }
}
