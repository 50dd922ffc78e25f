//! Authentication: API keys, the channel of browsers, and how soon a change is felt.

mod api_keys;
mod browser;
mod canary;
mod login;
pub(crate) mod mfa;
mod names;
pub(crate) mod oauth2;
mod oracles;
mod password;
mod refresh;
mod register;
mod reset;
mod revocation;
mod security;
mod sso;
mod warm;
