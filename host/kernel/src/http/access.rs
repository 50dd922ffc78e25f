//! Which callers may use a route: declared with the route, decided here and nowhere else.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use heddle_core::{Permission, Role};

use crate::app::SharedApp;
use crate::caller::{Caller, authenticate, cookies};
use crate::http::creation::{self, IDEMPOTENCY_KEY};
use crate::http::error::Error;
use crate::http::extract::too_large;

/// How long the body of a request may take.
const BODY_LIMIT: Duration = Duration::from_secs(30);
/// How long a caller stays admitted while the body comes.
const ADMITTED_FOR: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    /// Every known caller except a key with scopes: [`BEYOND_SCOPES`] says why.
    Authenticated,
    /// Every known caller, also a key with scopes: the answer holds only what the scopes allow.
    Member,
    Permission(Permission),
    /// At least this role, and no key with scopes: [`BEYOND_SCOPES`] says why.
    Role(Role),
    /// At least this role, and the permission that a key with scopes needs for it.
    RoleWith(Role, Permission),
    /// Authenticated here; the rule asks for the permission of the change's feature.
    ByFeature,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Access::Public => f.write_str("public"),
            Access::Authenticated => f.write_str("authenticated"),
            Access::Member => f.write_str("member"),
            Access::Permission(permission) => write!(f, "permission {permission}"),
            Access::Role(role) => write!(f, "role {role}"),
            Access::RoleWith(role, permission) => write!(f, "role {role} with {permission}"),
            Access::ByFeature => f.write_str("by feature"),
        }
    }
}

/// Routes that no scope opens: the beginnings of their paths, and the reasons. Every other route is open to a key whose
/// scopes name the permission of the route. A key without scopes has its owner's rights everywhere.
///
/// Routes for `super_admin` alone concern the whole service, and a key with scopes stays within its own organization.
/// Those routes are closed to it as well, and are not listed one by one.
pub const BEYOND_SCOPES: &[(&str, &str)] = &[
    ("/auth/", "how a user signs in, and who may sign in elsewhere, is not a right that a user can pass on"),
    ("/api-keys", "a key that makes or reads keys would outlive or outgrow its own scopes"),
    ("/oauth2/", "an app would get rights beyond the scopes of the key that registered it"),
    ("/notifications", "notices are written to a person"),
    (
        "/fabric/connections",
        "a Connection acts with all rights of its author, also beyond the scopes of a key",
    ),
    ("/fabric/runs", "a run shows what its Connection did with all rights of the author"),
    ("/fabric/logs", "a line holds what a step read with all rights of its author"),
    ("/fabric/signing-secret", "whoever has the secret signs requests in the name of the organization"),
    ("/audit/head", "the end of the log is kept by whoever answers for the whole organization"),
    ("/automation/", "rules and schedules act with all rights of their author; actions are runs"),
    ("/actions", "an action is a run, and shows what it did"),
    ("/access_control", "no door is operated by this server: every operation answers 501"),
];

/// What a route declares to its guard.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says another thing, and none follows from another")]
pub(crate) struct Gate {
    pub(crate) access: Access,
    /// The route creates an object, and so honours `Idempotency-Key`.
    pub(crate) creates: bool,
    pub(crate) changes_callers: bool,
    pub(crate) is_personal: bool,
    pub(crate) has_own_proof: bool,
}

/// Lets a request through to its handler, with the caller as proof.
pub(crate) async fn guard(
    State((app, gate)): State<(SharedApp, Gate)>,
    request: Request,
    next: Next,
) -> Response {
    let response = pass(&app, gate, request, next).await;
    if gate.changes_callers && response.status().is_success() {
        // The callers that this process has cached may be stale now.
        app.callers.forget();
    }
    response
}

async fn pass(app: &SharedApp, gate: Gate, mut request: Request, next: Next) -> Response {
    if !gate.has_own_proof
        && let Err(error) = cookies::refuse_forged(app, request.method(), request.headers())
    {
        return error.into_response();
    }
    if gate.access == Access::Public {
        let request = if request.method().is_safe() { Ok(request) } else { whole(app, request).await };
        return match request {
            Ok(request) => next.run(request).await,
            Err(error) => error.into_response(),
        };
    }
    let admitted = admit(app, gate, request.headers()).await;
    let mut caller = match admitted {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    if !request.method().is_safe() {
        let since = Instant::now();
        request = match whole(app, request).await {
            Ok(request) => request,
            Err(error) => return error.into_response(),
        };
        // The caller's rights may have changed while the body was on its way.
        if since.elapsed() > ADMITTED_FOR {
            caller = match admit(app, gate, request.headers()).await {
                Ok(caller) => caller,
                Err(error) => return error.into_response(),
            };
        }
    }
    tracing::Span::current().record("user.id", tracing::field::display(caller.user_id));
    if gate.creates && request.headers().contains_key(IDEMPOTENCY_KEY) {
        return creation::run_once(app, caller, request, next).await.unwrap_or_else(Error::into_response);
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Returns the request with its whole body, which must come in time.
async fn whole(app: &SharedApp, request: Request) -> Result<Request, Error> {
    let (parts, body) = request.into_parts();
    let again = Request::from_parts(parts.clone(), body);
    let bytes = tokio::time::timeout(BODY_LIMIT, Bytes::from_request(again, app)).await;
    let bytes = bytes.map_err(|_| Error::BadRequest {
        kind: "body_too_slow",
        message: format!("request body did not come within {} s", BODY_LIMIT.as_secs()),
    })?;
    let bytes = bytes.map_err(|rejection| too_large(&rejection))?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

async fn admit(app: &SharedApp, gate: Gate, headers: &HeaderMap) -> Result<Caller, Error> {
    let caller = authenticate(app, headers).await?;
    if gate.is_personal {
        caller.require_no_app()?;
    }
    match gate.access {
        Access::Permission(permission) => caller.require(permission)?,
        Access::Role(role) => caller.require_unscoped_role(role)?,
        Access::RoleWith(role, permission) => {
            caller.require_role(role)?;
            caller.require(permission)?;
        }
        Access::Authenticated => caller.require_unscoped()?,
        Access::Public | Access::Member | Access::ByFeature => {}
    }
    Ok(caller)
}
