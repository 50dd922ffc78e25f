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

    /// For what belongs to an organization as a whole: site grants, where there are any, do not reach so far.
    pub fn require_all_sites(&self) -> Result<(), Error> {
        match self.sites {
            SiteScope::All => Ok(()),
            SiteScope::Only(_) => Err(Error::Refused {
                kind: "all_sites_required",
                message: "access to all sites of the organization is required".to_owned(),
            }),
        }
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

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn grants_of_sites_do_not_reach_the_organization() {
        let clock = Clock::default();
        let caller = |sites| Caller {
            user_id: clock.new_id(),
            username: "ada".to_owned(),
            org_id: clock.new_id(),
            role: Role::OrgAdmin,
            session_id: clock.new_id(),
            sites,
        };
        assert!(caller(SiteScope::All).require_all_sites().is_ok());
        for sites in [vec![], vec![clock.new_id()]] {
            let error = caller(SiteScope::Only(sites)).require_all_sites().unwrap_err();
            assert_eq!((error.status().as_u16(), error.kind()), (403, "all_sites_required"));
        }
    }
}
