//! Reasons for refusing a grant, alone or among many.

use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::User;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::users::rules;
use super::GrantBody;

/// The fault of one grant.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The organization has no object with the field's id.
    Unknown { field: &'static str, what: &'static str },
    /// The caller may not make the grant.
    Forbidden(Error),
}

/// A refusal, as it is shown for one item of many.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SiteAccessError")]
pub(super) struct ItemError {
    #[serde(rename = "type")]
    kind: &'static str,
    message: String,
}

/// Checks whether the caller may make this grant. The user must come from this organization; `None` if there is none.
pub(super) fn judge(
    caller: &Caller,
    grant: &GrantBody,
    user: Option<&User>,
    is_site: bool,
) -> Result<(), Refusal> {
    let user = user
        .filter(|user| user.id == grant.user_id)
        .ok_or(Refusal::Unknown { field: "user_id", what: "user" })?;
    judge_user(caller, user)?;
    if is_site { Ok(()) } else { Err(Refusal::Unknown { field: "site_id", what: "site" }) }
}

/// Checks whether the caller may decide which sites this user accesses.
pub(super) fn judge_user(caller: &Caller, user: &User) -> Result<(), Refusal> {
    rules::require_another(caller, user.id, "nobody changes the sites that they access themself")
        .and_then(|()| rules::require_below(caller, user))
        .map_err(Refusal::Forbidden)
}

impl Refusal {
    pub(super) fn into_error(self) -> Error {
        match self {
            Refusal::Unknown { field, what } => Error::field(field, format!("{what} not found")),
            Refusal::Forbidden(error) => error,
        }
    }
}

impl ItemError {
    pub(super) fn repeated() -> Self {
        Self { kind: "repeated", message: "an earlier item names the same user and site".to_owned() }
    }
}

impl From<Refusal> for ItemError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown { what, .. } => Self { kind: "not_found", message: format!("{what} not found") },
            Refusal::Forbidden(error) => Self { kind: error.kind(), message: error.to_string() },
        }
    }
}
