//! Signing in elsewhere and for others: identity providers (SSO) and apps (OAuth 2.0).

mod glossary;
pub mod oauth2;
pub mod sso;
