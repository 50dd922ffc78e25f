//! The author of the steps, with the author's rights at this moment.

use heddle_core::{ConnectionId, OrgId, Role, UserId};
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::http::error::Error;
use heddle_store::object::Object as _;
use heddle_store::{Organization, Scope, SiteScope, Tx, User, grants};

/// Returns the author as a caller, or why the author's steps may no longer run.
pub(crate) async fn author_of(
    tx: &mut Tx,
    org: OrgId,
    author: UserId,
    connection: ConnectionId,
) -> Result<Result<Caller, String>, Error> {
    let everything = Scope::everything();
    let Some(user) = User::find(tx, &everything, author).await? else {
        return Ok(Err("its author's account was removed".to_owned()));
    };
    let name = user.username;
    if !user.is_active {
        return Ok(Err(format!("its author '{name}' is disabled")));
    }
    if user.org_id != org && user.role != Role::SuperAdmin {
        return Ok(Err(format!("its author '{name}' is not in the organization any more")));
    }
    if Organization::find(tx, &everything, org).await?.is_none() {
        return Ok(Err("its organization was removed".to_owned()));
    }
    if !user.role.is_at_least(Role::OrgAdmin) {
        return Ok(Err(format!("its author '{name}' is not '{}' any more", Role::OrgAdmin)));
    }
    let granted = grants::list(tx, author).await?;
    let sites = SiteScope::of(&granted);
    if sites != SiteScope::All {
        return Ok(Err(format!("its author '{name}' has access to some sites only")));
    }

    Ok(Ok(Caller {
        user_id: author,
        username: name,
        org_id: org,
        role: user.role,
        credential: Credential::Connection(connection),
        scopes: None,
        sites,
        grants: std::collections::BTreeMap::new(),
    }))
}
