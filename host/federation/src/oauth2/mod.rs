//! Third-party apps that act for a user: registration, consent, codes and tokens.
//!
//! The authorization code flow of RFC 6749 with PKCE (RFC 7636) in every case, and none of the other flows. An app
//! never gets more than its user allowed, the user holds, and the app is registered for. The permissions of a token are
//! decided where those of all requests are (`caller::app_token` and the routes); nothing here knows any other route.

mod apps;
mod client;
mod consent;
mod fields;
mod grants;
mod inspect;
mod log_in;
mod metadata;
mod page;
mod redirect;
mod refusal;
mod request;
mod token;

use futures::FutureExt as _;
use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::{Feature, Forget, Pages};
use heddle_kernel::http::access::Unscoped;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Doc, Routes};
use uuid::Uuid;

/// Alphabet of the public half of tokens and secrets: without characters that look alike.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

const FORGETS: &[Forget] = &[
    // Codes, tokens and grants, after they expired.
    Forget { days: 1, batch: |tx, before, rows| heddle_store::oauth2::trim(tx, before, rows).boxed() },
    Forget { days: 1, batch: |tx, before, rows| heddle_store::oauth2::trim_grants(tx, before, rows).boxed() },
];

/// Why no scope opens apps and what users allow them.
const FOR_APPS: Unscoped =
    Unscoped("an app would get rights beyond the scopes of the key that registered it");

/// Third-party apps that act for a user.
pub struct Apps;

impl Feature for Apps {
    fn name(&self) -> &'static str {
        "oauth2"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::APPS
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let own = |routes: Routes| routes.each(Doc::personal).changing_callers();
        own(apps::routes())
            .merge(consent::routes())
            .merge(log_in::routes())
            .merge(token::routes())
            .merge(inspect::routes())
            .merge(own(grants::routes()))
    }

    fn pages(&self) -> Pages {
        Pages::new(metadata::root_routes(), &[])
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}

/// Returns eight characters that name an app or a grant in its tokens and secrets, so that the finder of a leak can end
/// it.
///
/// They are made of the random end of the id.
fn mark(id: Uuid) -> String {
    let bits = id.as_u128();
    let letter = |at: u32| usize::try_from((bits >> (5 * at)) & 31).unwrap_or_default();
    (0..8).rev().map(|at| char::from(ALPHABET[letter(at)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_the_random_end_of_an_id() {
        assert_eq!(mark(Uuid::nil()), "aaaaaaaa");
        assert_eq!(mark(Uuid::max()), "99999999");
        assert_eq!(mark("01900000-0000-7000-8000-000000000001".parse().unwrap()), "aaaaaaab");
        assert_eq!(mark("01900000-0000-7000-8000-008000000000".parse().unwrap()), "saaaaaaa");
    }
}
