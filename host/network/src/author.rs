//! The user that set the policy of a site, with the rights of that user at this moment.

use heddle_core::Role;
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::http::error::Error;
use heddle_store::object::Object as _;
use heddle_store::site_brains::SiteBrain;
use heddle_store::{Organization, Scope, SiteScope, Tx, User, grants};

/// The user as a caller, or why nothing is staged for the policy any more.
pub(crate) async fn author_of(tx: &mut Tx, brain: &SiteBrain) -> Result<Result<Caller, String>, Error> {
    let everything = Scope::everything();
    let Some(user) = User::find(tx, &everything, brain.set_by).await? else {
        return Ok(Err("the account of the user that set it was removed".to_owned()));
    };
    if !user.is_active {
        return Ok(Err(format!("the user '{}' that set it is disabled", user.username)));
    }
    if user.org_id != brain.org_id && user.role != Role::SuperAdmin {
        return Ok(Err(format!(
            "the user '{}' that set it is not in the organization any more",
            user.username
        )));
    }
    if Organization::find(tx, &everything, brain.org_id).await?.is_none() {
        return Ok(Err("its organization was removed".to_owned()));
    }
    let granted = grants::list(tx, user.id).await?;
    Ok(Ok(Caller {
        user_id: user.id,
        username: user.username,
        org_id: brain.org_id,
        role: user.role,
        credential: Credential::Policy(brain.site_id),
        scopes: None,
        sites: SiteScope::of(&granted),
        grants: granted.into_iter().map(|grant| (grant.site_id, grant.level)).collect(),
    }))
}
