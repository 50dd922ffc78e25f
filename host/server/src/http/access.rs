//! Who may call a route: declared with the route, decided here and nowhere else.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use heddle_core::{Permission, Role};

use crate::app::SharedApp;
use crate::auth::Caller;
use crate::http::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    Authenticated,
    Permission(Permission),
    Role(Role),
    /// Authenticated here; the rule asks for the permission of the change's feature.
    ByFeature,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Access::Public => f.write_str("public"),
            Access::Authenticated => f.write_str("authenticated"),
            Access::Permission(permission) => write!(f, "permission {permission}"),
            Access::Role(role) => write!(f, "role {role}"),
            Access::ByFeature => f.write_str("by feature"),
        }
    }
}

/// Lets a request through to its handler, with the caller as proof.
pub(crate) async fn guard(
    State((app, access)): State<(SharedApp, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    if access == Access::Public {
        return next.run(request).await;
    }
    match admit(&app, access, request.headers()).await {
        Ok(caller) => {
            tracing::Span::current().record("user.id", tracing::field::display(caller.user_id));
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn admit(app: &SharedApp, access: Access, headers: &HeaderMap) -> Result<Caller, Error> {
    let caller = crate::auth::authenticate(app, headers).await?;
    match access {
        Access::Permission(permission) => caller.require(permission)?,
        Access::Role(role) if !caller.role.is_at_least(role) => return Err(Error::ForbiddenRole(role)),
        Access::Public | Access::Authenticated | Access::Role(_) | Access::ByFeature => {}
    }
    Ok(caller)
}
