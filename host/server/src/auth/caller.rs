//! The caller: built once at the edge from the stored user, and a handler's proof of authentication.

use std::collections::BTreeMap;

use heddle_core::{OrgId, Permission, Role, SessionId, SiteId, SiteLevel, UserId};
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
    /// How far each grant reaches; without any, the role alone decides.
    pub grants: BTreeMap<SiteId, SiteLevel>,
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

    /// A grant is a ceiling beside the role: at its site it allows what its level includes and no more.
    pub fn require_level(&self, site: SiteId, level: SiteLevel) -> Result<(), Error> {
        let is_enough = |granted: &SiteLevel| granted.includes(level);
        if self.grants.is_empty() || self.grants.get(&site).is_some_and(is_enough) {
            return Ok(());
        }
        Err(Error::Refused {
            kind: "site_level",
            message: format!("a grant of level '{level}' is required at site {site}"),
        })
    }

    /// The sites whose grant allows this level, where grants divide them.
    pub fn sites_at(&self, level: SiteLevel) -> SiteScope {
        match &self.sites {
            SiteScope::All => SiteScope::All,
            SiteScope::Only(sites) => {
                let reached = |site: &&SiteId| self.require_level(**site, level).is_ok();
                SiteScope::Only(sites.iter().filter(reached).copied().collect())
            }
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
    fn a_grant_is_a_ceiling_at_its_site() {
        let clock = Clock::default();
        let [read, write, full, other] = std::array::from_fn(|_| clock.new_id::<SiteId>());
        let mut caller = Caller {
            user_id: clock.new_id(),
            username: "ada".to_owned(),
            org_id: clock.new_id(),
            role: Role::OrgAdmin,
            session_id: clock.new_id(),
            sites: SiteScope::Only(vec![read, write, full]),
            grants: [(read, SiteLevel::Read), (write, SiteLevel::Write), (full, SiteLevel::Full)].into(),
        };
        for (site, level, is_allowed) in [
            (read, SiteLevel::Read, true),
            (read, SiteLevel::Write, false),
            (write, SiteLevel::Write, true),
            (write, SiteLevel::Admin, false),
            (full, SiteLevel::Admin, true),
            (other, SiteLevel::Read, false),
        ] {
            let answer = caller.require_level(site, level);
            assert_eq!(answer.is_ok(), is_allowed, "{level}");
            if let Err(error) = answer {
                assert_eq!((error.status().as_u16(), error.kind()), (403, "site_level"));
                assert!(error.to_string().contains(&format!("'{level}'")), "{error}");
            }
        }
        assert_eq!(caller.sites_at(SiteLevel::Write), SiteScope::Only(vec![write, full]));
        caller.grants.clear();
        caller.sites = SiteScope::All;
        assert!(caller.require_level(other, SiteLevel::Full).is_ok());
        assert_eq!(caller.sites_at(SiteLevel::Full), SiteScope::All);
    }

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
            grants: BTreeMap::new(),
        };
        assert!(caller(SiteScope::All).require_all_sites().is_ok());
        for sites in [vec![], vec![clock.new_id()]] {
            let error = caller(SiteScope::Only(sites)).require_all_sites().unwrap_err();
            assert_eq!((error.status().as_u16(), error.kind()), (403, "all_sites_required"));
        }
    }
}
