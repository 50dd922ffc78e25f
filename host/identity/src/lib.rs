//! How people sign in: passwords, second factors, sessions, keys.

pub mod admission;
pub(crate) mod api_keys;
mod challenge;
pub mod cookies;
pub mod declarations;
mod glossary;
pub mod login;
pub mod mfa;
pub mod outcomes;
pub mod password;
pub mod recovery;
mod routes;
pub mod security;
pub mod session;

use futures::FutureExt as _;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::Names;
use heddle_kernel::feature::{Feature, Forget, Pages, Sealing};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Doc, Routes};
use heddle_store::sealed::SealedColumn;
use heddle_store::{password_resets, sessions, unknown_logins};

/// How long sessions and spent tokens are kept after their end.
const SESSION_DAYS: i64 = 30;

const FORGETS: &[Forget] = &[
    Forget { days: SESSION_DAYS, batch: |tx, before, rows| sessions::trim(tx, before, rows).boxed() },
    Forget { days: SESSION_DAYS, batch: |tx, before, rows| sessions::trim_spent(tx, before, rows).boxed() },
    // Each row has its own end.
    Forget { days: 0, batch: |tx, before, rows| sessions::trim_challenges(tx, before, rows).boxed() },
    // After the links have expired.
    Forget { days: 1, batch: |tx, before, rows| password_resets::trim(tx, before, rows).boxed() },
    // So long that waiting for it does not help an attacker.
    Forget { days: 90, batch: |tx, before, rows| unknown_logins::trim(tx, before, rows).boxed() },
];

const SEALED: &[Sealing] = &[Sealing::of(SealedColumn::of("second_factor"))];

/// Logins, sessions, second factors and API keys.
pub struct SignIn;

#[async_trait::async_trait]
impl Feature for SignIn {
    fn name(&self) -> &'static str {
        "auth"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                events: declarations::EVENTS,
                settings: &[SettingsOf::the::<declarations::SignInSettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::SIGN_IN
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(outcomes::Logins::new(&app.metrics.families()));
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

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}
