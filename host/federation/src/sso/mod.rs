//! Single sign-on: people authenticate at their organization's identity provider instead of with a password here.
//!
//! A provider only identifies a person. `account` decides which account and role the person has. As for every login,
//! `auth::admission` decides whether a session is opened or a second factor is needed.

mod account;
mod fault;
mod identities;
mod ldap;
mod oidc;
mod providers;
mod public;
mod records;
mod saml;
mod secret;
mod settings;

use futures::FutureExt as _;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::feature::{Feature, Forget, Sealing};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Doc, Routes};
use heddle_store::sealed::SealedColumn;
use oidc::Documents;

const FORGETS: &[Forget] = &[
    // Each attempt holds its own expiry.
    Forget { days: 0, batch: |tx, before, rows| heddle_store::sso::trim_attempts(tx, before, rows).boxed() },
];

const SEALED: &[Sealing] =
    &[Sealing::of(SealedColumn::of("identity_provider")), Sealing::of(SealedColumn::of("sso_attempt"))];

/// Logins by identity providers.
pub struct SingleSignOn;

#[async_trait::async_trait]
impl Feature for SingleSignOn {
    fn name(&self) -> &'static str {
        "sso"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::SINGLE_SIGN_ON
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(Documents::default());
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        providers::routes()
            .each(Doc::personal)
            .changing_callers()
            .merge(public::routes())
            .merge(oidc::routes())
            .merge(ldap::routes())
            .merge(saml::routes())
            .merge(identities::routes().changing_callers())
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}
