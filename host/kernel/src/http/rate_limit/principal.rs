//! The principal of a request, for limits.

use std::fmt;

use axum::http::HeaderMap;
use heddle_core::UserId;

use crate::app::App;
use crate::caller::{cookies, identify};
use crate::http::client::{Client, Network};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Principal {
    User(UserId),
    Address(Network),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user:{user}"),
            Self::Address(network) => write!(f, "{network}"),
        }
    }
}

/// Returns the user of the signed access cookie, else the client's address. Asks no database: the guard of the route
/// checks whether the session is still valid.
pub(super) fn principal(app: &App, client: &Client, headers: &HeaderMap) -> Principal {
    let identity = cookies::access_token(headers).and_then(|token| identify(app, &token).ok());
    identity.map_or_else(|| Principal::Address(client.network()), |identity| Principal::User(identity.user()))
}
