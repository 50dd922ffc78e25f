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
use crate::http::extract::unread;

/// How long a caller stays admitted while the body comes.
const ADMITTED_FOR: Duration = Duration::from_millis(200);

/// Says why no scope opens a route. A key without scopes has its owner's rights everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unscoped(pub &'static str);

/// Declares which callers a route admits. The guard decides before the handler runs. Grants at sites, and the
/// organization of an object, are left to the handler. A key with scopes may use routes whose permission they name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    /// Every known caller except a key with scopes.
    Authenticated(Unscoped),
    /// Every known caller, also a key with scopes: the answer holds only what the scopes allow.
    Member,
    Permission(Permission),
    /// At least this role, and no key with scopes.
    Role(Role, Unscoped),
    /// At least this role, and the permission that a key with scopes needs for it.
    RoleWith(Role, Permission),
    /// A `super_admin`, about the whole service. A key with scopes stays within its own organization.
    SuperAdmin,
    /// Authenticated here; the rule asks for the permission of the change's feature.
    ByFeature,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Access::Public => f.write_str("public"),
            Access::Authenticated(_) => f.write_str("authenticated"),
            Access::Member => f.write_str("member"),
            Access::Permission(permission) => write!(f, "permission {permission}"),
            Access::Role(role, _) => write!(f, "role {role}"),
            Access::RoleWith(role, permission) => write!(f, "role {role} with {permission}"),
            Access::SuperAdmin => write!(f, "role {}", Role::SuperAdmin),
            Access::ByFeature => f.write_str("by feature"),
        }
    }
}

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
    /// The handler reads the body while it comes.
    pub(crate) streams: bool,
    /// Most bytes of a body.
    pub(crate) body_bytes_max: usize,
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
        let request = if request.method().is_safe() { Ok(request) } else { whole(app, gate, request).await };
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
    if gate.streams {
        if request.headers().contains_key(IDEMPOTENCY_KEY) {
            return creation::not_streamed().into_response();
        }
        let admission = Admission { gate, headers: request.headers().clone() };
        request.extensions_mut().insert(admission);
    } else if !request.method().is_safe() {
        let since = Instant::now();
        request = match whole(app, gate, request).await {
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

/// What a caller was admitted by, for a handler that reads the body while it comes.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    gate: Gate,
    headers: HeaderMap,
}

impl Admission {
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.gate.body_bytes_max
    }

    /// Refuses a caller whose rights have ended while the body came.
    pub(crate) async fn again(&self, app: &SharedApp) -> Result<(), Error> {
        admit(app, self.gate, &self.headers).await.map(drop)
    }
}

/// Returns the request with its whole body. The edge ends a body that comes too slowly.
async fn whole(app: &SharedApp, gate: Gate, request: Request) -> Result<Request, Error> {
    let (parts, body) = request.into_parts();
    let again = Request::from_parts(parts.clone(), body);
    let bytes =
        Bytes::from_request(again, app).await.map_err(|rejection| unread(&rejection, gate.body_bytes_max))?;
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

async fn admit(app: &SharedApp, gate: Gate, headers: &HeaderMap) -> Result<Caller, Error> {
    let caller = authenticate(app, headers).await?;
    if gate.is_personal {
        caller.require_no_app()?;
    }
    match gate.access {
        Access::Permission(permission) => caller.require(permission)?,
        Access::Role(role, _) => caller.require_unscoped_role(role)?,
        Access::RoleWith(role, permission) => {
            caller.require_role(role)?;
            caller.require(permission)?;
        }
        Access::SuperAdmin => caller.require_unscoped_role(Role::SuperAdmin)?,
        Access::Authenticated(_) => caller.require_unscoped()?,
        Access::Public | Access::Member | Access::ByFeature => {}
    }
    Ok(caller)
}
