//! The user that a credential is for: what the check of a request reads beside a session, an API key or an access token
//! of an app.

use heddle_core::{OrgId, Role, SiteId, SiteLevel, UserId};
use sqlx::FromRow;

use crate::grants::SiteGrant;
use crate::select::SiteScope;

/// The user that a credential is for, as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallingUser {
    pub id: UserId,
    pub username: String,
    pub org_id: OrgId,
    pub role: Role,
    pub is_active: bool,
    pub grants: Vec<SiteGrant>,
}

impl CallingUser {
    /// All sites without grants; with some, exactly those.
    pub fn sites(&self) -> SiteScope {
        SiteScope::of(&self.grants)
    }
}

/// The columns of the user and of one grant, in a statement that gives one row for each grant of the user.
#[derive(FromRow)]
pub(crate) struct CallingRow {
    user_id: UserId,
    username: String,
    org_id: OrgId,
    role: Role,
    is_active: bool,
    /// Absent where the user has no grant, as is the level.
    site_id: Option<SiteId>,
    site_level: Option<SiteLevel>,
}

impl CallingRow {
    /// Returns the grant of this row.
    pub(crate) fn grant(&self) -> Option<SiteGrant> {
        self.site_id.zip(self.site_level).map(|(site_id, level)| SiteGrant { site_id, level })
    }

    /// Makes the user, with the grants of all rows.
    pub(crate) fn into_user(self, grants: Vec<SiteGrant>) -> CallingUser {
        CallingUser {
            id: self.user_id,
            username: self.username,
            org_id: self.org_id,
            role: self.role,
            is_active: self.is_active,
            grants,
        }
    }
}
