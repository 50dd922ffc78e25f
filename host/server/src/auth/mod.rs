//! How people sign in: passwords, second factors, sessions, keys.

pub(crate) mod admission;
pub(crate) mod api_keys;
mod challenge;
pub(crate) mod cookies;
pub(crate) mod login;
pub(crate) mod mfa;
pub(crate) mod password;
pub(crate) mod recovery;
mod routes;
pub(crate) mod security;
pub(crate) mod session;

use crate::http::routes::Routes;

pub(crate) fn routes() -> Routes {
    routes::routes().merge(mfa::routes()).merge(api_keys::routes()).merge(recovery::routes())
}
