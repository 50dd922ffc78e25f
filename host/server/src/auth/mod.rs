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

use crate::app::SharedApp;
use crate::feature::{Feature, Pages};
use crate::http::routes::{Doc, Routes};

/// Logins, sessions, second factors and API keys.
pub(crate) struct SignIn;

impl Feature for SignIn {
    fn name(&self) -> &'static str {
        "auth"
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
            .merge(mfa::routes())
            .merge(api_keys::routes().each(Doc::personal).changing_callers())
            .merge(recovery::routes())
    }

    fn pages(&self) -> Pages {
        Pages::new(recovery::pages(), recovery::PAGES)
    }
}
