//! The caller: built once at the edge from the stored user, and a handler's proof of authentication.

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_core::permission::{KeyScope, Permissions};
use heddle_core::{ConnectionId, OrgId, Permission, Role, RunId, SiteId, SiteLevel, UserId};
use heddle_store::api_keys::ApiKeyId;
use heddle_store::oauth2::OauthGrantId;
use heddle_store::sessions::SessionId;
use heddle_store::{Scope, SiteScope};
use serde_json::{Value, json};

use crate::http::error::Error;

/// The credential that proved the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Session(SessionId),
    ApiKey(ApiKeyId),
    /// A token of an app that the user allowed to act for them.
    App(OauthGrantId),
    /// There is no request: a Connection acts for the author of its steps.
    Connection(ConnectionId),
    /// A run that a user asked for at once, with their rights in their organization.
    Action(RunId),
    /// There is no request: a policy of a site acts for the user that set it.
    Policy(SiteId),
}

impl Credential {
    /// What the audit log records in addition to the user: a key or an app acted for them.
    pub fn via(self) -> Option<Value> {
        match self {
            Credential::Session(_) => None,
            Credential::Connection(id) => Some(json!({ "connection_id": id })),
            Credential::Action(id) => Some(json!({ "run_id": id })),
            Credential::Policy(id) => Some(json!({ "policy_of_site_id": id })),
            Credential::ApiKey(id) => Some(json!({ "api_key_id": id })),
            Credential::App(id) => Some(json!({ "oauth2_grant_id": id })),
        }
    }

    /// The name of the kind of credential in messages.
    fn noun(self) -> &'static str {
        match self {
            Credential::Session(_) => "a session",
            Credential::ApiKey(_) => "an API key",
            Credential::App(_) => "an app",
            Credential::Connection(_) => "a Connection",
            Credential::Action(_) => "an action",
            Credential::Policy(_) => "a policy",
        }
    }
}

/// Holds the user that acts, and the rights in force. The guard of a route makes it and handlers take it as
/// an extractor; Connections and actions make their own. Its rights can be almost a second old:
/// [`hold_caller`](super::hold_caller) reads the user again under a lock.
#[derive(Debug, Clone)]
pub struct Caller {
    pub user_id: UserId,
    pub username: String,
    pub org_id: OrgId,
    /// The stored role, never the token's.
    pub role: Role,
    pub credential: Credential,
    /// A hard ceiling in addition to the role: the scopes of an app, or of an API key that has some.
    pub scopes: Option<Arc<[KeyScope]>>,
    pub sites: SiteScope,
    /// How far each grant reaches; without any, the role alone decides.
    pub grants: BTreeMap<SiteId, SiteLevel>,
}

impl Caller {
    /// Returns whether both the role and the scopes include the permission. Grants at sites are not
    /// considered: [`Caller::require_level`] checks them.
    pub fn holds(&self, permission: Permission) -> bool {
        self.role.holds(permission) && self.is_in_scope(permission)
    }

    /// The effective set as users see it: `["*"]` for a `super_admin` without a ceiling.
    pub fn permissions(&self, all: &Permissions) -> Vec<&'static str> {
        if self.scopes.is_none() {
            return all.held_by(self.role);
        }
        all.iter().filter(|permission| self.holds(*permission)).map(Permission::as_str).collect()
    }

    /// Refuses with 403: `permission_denied` where the role lacks the permission, `scope_ceiling` where only
    /// the scopes do. Grants at sites are not considered: [`Caller::require_level`] checks them.
    pub fn require(&self, permission: Permission) -> Result<(), Error> {
        if !self.role.holds(permission) {
            return Err(Error::Forbidden(permission));
        }
        if self.is_in_scope(permission) {
            return Ok(());
        }
        Err(Error::Refused {
            kind: "scope_ceiling",
            message: format!("{} with these scopes has no '{permission}'", self.credential.noun()),
        })
    }

    /// Requires at least this role. Does not check scopes; [`Caller::require`] does.
    pub fn require_role(&self, role: Role) -> Result<(), Error> {
        if self.role.is_at_least(role) { Ok(()) } else { Err(Error::ForbiddenRole(role)) }
    }

    /// Requires at least this role, and a credential without a ceiling: for operations that no scope allows.
    pub fn require_unscoped_role(&self, role: Role) -> Result<(), Error> {
        self.require_role(role)?;
        self.require_unscoped()
    }

    /// Refuses an app, and an API key that has scopes, with 403 `scope_ceiling`. All other credentials pass:
    /// they have all rights of their user.
    pub fn require_unscoped(&self) -> Result<(), Error> {
        if self.scopes.is_none() {
            return Ok(());
        }
        Err(Error::Refused {
            kind: "scope_ceiling",
            message: format!(
                "{} with scopes cannot do this: log in, or use a key without scopes",
                self.credential.noun()
            ),
        })
    }

    /// Returns the session of the caller: for operations that a key or an app cannot do for its user.
    pub fn session(&self) -> Result<SessionId, Error> {
        match self.credential {
            Credential::Session(id) => Ok(id),
            other => Err(session_required(other)),
        }
    }

    /// Whether the caller is this author and acts for themself: a key with a ceiling or an app does not see what only
    /// the author sees.
    pub fn is_author(&self, author: UserId) -> bool {
        self.user_id == author && self.scopes.is_none()
    }

    /// Refuses an app: for operations on how the user signs in.
    pub(crate) fn require_no_app(&self) -> Result<(), Error> {
        match self.credential {
            Credential::App(_) => Err(session_required(self.credential)),
            Credential::Session(_)
            | Credential::ApiKey(_)
            | Credential::Connection(_)
            | Credential::Action(_)
            | Credential::Policy(_) => Ok(()),
        }
    }

    fn is_in_scope(&self, permission: Permission) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.iter().any(|scope| scope.covers(permission)))
    }

    /// Refuses a caller with site grants: for what belongs to an organization as a whole.
    pub fn require_all_sites(&self) -> Result<(), Error> {
        match self.sites {
            SiteScope::All => Ok(()),
            SiteScope::Only(_) => Err(Error::Refused {
                kind: "all_sites_required",
                message: "access to all sites of the organization is required".to_owned(),
            }),
        }
    }

    /// A grant is a ceiling in addition to the role: at its site it allows what its level includes and no more.
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

    /// The scope for objects that site grants do not divide.
    pub fn organization_scope(&self) -> Scope {
        Scope { org: self.scope().org, sites: SiteScope::All }
    }

    /// Returns which rows this caller can see. A key with a ceiling sees only its user's own organization. A Connection,
    /// an action or a policy sees only the organization that it is in, whichever user wrote it.
    pub fn scope(&self) -> Scope {
        let is_run = matches!(
            self.credential,
            Credential::Connection(_) | Credential::Action(_) | Credential::Policy(_)
        );
        let spans_all = self.role == Role::SuperAdmin && self.scopes.is_none() && !is_run;
        Scope { org: (!spans_all).then_some(self.org_id), sites: self.sites.clone() }
    }

    /// Whether the caller sees what is at the site.
    pub fn may_access_site(&self, site: SiteId) -> bool {
        match &self.sites {
            SiteScope::All => true,
            SiteScope::Only(sites) => sites.contains(&site),
        }
    }
}

fn session_required(credential: Credential) -> Error {
    Error::Refused {
        kind: "session_required",
        message: format!("{} cannot do this: log in", credential.noun()),
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    heddle_core::permissions! { PERMISSIONS {
        DEVICE_READ = "device:read", Guest, "See devices";
        DEVICE_WRITE = "device:write", Operator, "Change devices";
        SETTINGS_READ = "settings:read", SiteAdmin, "See settings";
        SETTINGS_WRITE = "settings:write", OrgAdmin, "Change settings";
    } }

    fn caller(role: Role, scopes: Option<&[&str]>, sites: SiteScope) -> Caller {
        let clock = Clock::default();
        let all = Permissions::new(PERMISSIONS.iter().copied());
        let scopes =
            scopes.map(|words| words.iter().map(|word| KeyScope::parse(word, &all).unwrap()).collect());
        Caller {
            user_id: clock.new_id(),
            username: "ada".to_owned(),
            org_id: clock.new_id(),
            role,
            credential: Credential::ApiKey(clock.new_id()),
            scopes,
            sites,
            grants: BTreeMap::new(),
        }
    }

    #[test]
    fn a_grant_is_a_ceiling_at_its_site() {
        let clock = Clock::default();
        let [read, write, full, other] = std::array::from_fn(|_| clock.new_id::<SiteId>());
        let mut caller = caller(Role::OrgAdmin, None, SiteScope::Only(vec![read, write, full]));
        caller.grants = [(read, SiteLevel::Read), (write, SiteLevel::Write), (full, SiteLevel::Full)].into();
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
        assert!(caller(Role::OrgAdmin, None, SiteScope::All).require_all_sites().is_ok());
        for sites in [vec![], vec![Clock::default().new_id()]] {
            let error = caller(Role::OrgAdmin, None, SiteScope::Only(sites)).require_all_sites().unwrap_err();
            assert_eq!((error.status().as_u16(), error.kind()), (403, "all_sites_required"));
        }
    }

    #[test]
    fn scopes_are_a_ceiling_also_for_who_holds_everything() {
        let scoped = caller(Role::SuperAdmin, Some(&["device:*"]), SiteScope::All);
        assert!(scoped.holds(DEVICE_WRITE) && !scoped.holds(SETTINGS_READ));
        assert_eq!(scoped.require(SETTINGS_READ).unwrap_err().kind(), "scope_ceiling");
        assert!(scoped.require_role(Role::Viewer).is_ok());
        assert_eq!(scoped.require_unscoped_role(Role::Viewer).unwrap_err().kind(), "scope_ceiling");
        assert_eq!(scoped.scope().org, Some(scoped.org_id));
        let everything = caller(Role::SuperAdmin, Some(&["*"]), SiteScope::All);
        assert!(PERMISSIONS.iter().all(|permission| !everything.holds(*permission)));
        let viewer = caller(Role::Viewer, Some(&["device:*"]), SiteScope::All);
        assert_eq!(viewer.require(DEVICE_WRITE).unwrap_err().kind(), "permission_denied");
        let unscoped = caller(Role::SuperAdmin, None, SiteScope::All);
        assert!(unscoped.holds(SETTINGS_WRITE) && unscoped.scope().org.is_none());
        assert_eq!(unscoped.session().unwrap_err().kind(), "session_required");
    }
}
