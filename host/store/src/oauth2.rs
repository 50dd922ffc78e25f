//! Apps of others: which are registered, what users allowed them, and their tokens by hash.
//!
//! Knows no code, token or secret, only keyed hashes. Which users may manage an app, and what a spent or foreign hash
//! means, are the callers' rules.

mod apps;
mod grants;
mod tokens;

pub use apps::{
    AppUpdate, NewApp, OauthApp, OauthAppId, RegisteredApp, count_of, end_grants, find, find_registered,
    insert, list, lock, rotate_secret, update,
};
pub use grants::{
    Grant, GrantState, NewGrant, OauthGrantId, find_by_code, find_own, insert_grant, list_own, lock_by_code,
    lock_own, record_use, revoke, revoke_older, spend_code, trim_grants,
};
pub use tokens::{
    FoundToken, NewToken, Presented, end, end_older, find_token, insert_token, lock_token, present, trim,
};

#[cfg(test)]
mod tests;
