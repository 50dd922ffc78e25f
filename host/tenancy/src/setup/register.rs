//! Registration: every visitor can found an organization of their own, where `ALLOW_REGISTRATION` lets them.
//!
//! A registration never joins an existing organization: its administrators create its users. It cannot be hidden from a
//! visitor that an email is taken, but finding out is costly: a limit for each hour and address, a hash in either case,
//! and a new account of one's own where the email was free.

use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use heddle_core::event::NewEvent;
use heddle_core::secret::Secret;
use heddle_core::{Role, Tier};
use heddle_identity::declarations::USER_CREATED;
use heddle_identity::password::PASSWORD_BYTES_MAX;
use heddle_identity::session::{self, Tokens};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::client::Client;
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::rate_limit::{CLOSED, Limit, Rate, Verdict};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::metrics::RateWindow;
use heddle_kernel::names::{EMAIL_BYTES_MAX, EMAIL_BYTES_MIN, USERNAME_CHARS_MAX};
use heddle_kernel::slug::{SLUG_CHARS_MAX, SLUG_PATTERN};
use heddle_store::organizations::{self, Organization, OrganizationUpdate};
use heddle_store::users::User;
use heddle_store::{Scope, Tx, events};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::founding::{self, Founding, Person};
use crate::declarations::TenancySettings;

/// Attempts to register from one address.
const CLIENT_RATE: Rate = Rate::per_hour(5);
/// Tier of a registered organization.
const TIER: Tier = Tier::Free;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Registration")]
struct RegisterBody {
    /// 1 to 64 letters, digits, dots, underscores and hyphens; unique in the service, whatever its case.
    #[schemars(length(min = 1, max = USERNAME_CHARS_MAX))]
    username: String,
    /// At most 254 bytes; unique in the service, whatever its case.
    #[schemars(length(min = EMAIL_BYTES_MIN, max = EMAIL_BYTES_MAX))]
    email: String,
    /// Meets the password rules of the service; at most 1024 bytes.
    #[schemars(extend("maxLength" = PASSWORD_BYTES_MAX))]
    password: Secret,
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    full_name: Option<String>,
    organization: OrganizationBody,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RegisteredOrganization")]
struct OrganizationBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Made of the name when absent.
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX), regex(pattern = SLUG_PATTERN))]
    slug: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Registered")]
struct Registered {
    organization: Organization,
    user: User,
    #[serde(flatten)]
    tokens: Tokens,
}

/// Proves that registration is allowed. It is checked before the body is read.
struct Allowed;

impl FromRequestParts<SharedApp> for Allowed {
    type Rejection = Error;

    async fn from_request_parts(_: &mut Parts, app: &SharedApp) -> Result<Self, Error> {
        if app.config.of::<TenancySettings>().allow_registration {
            return Ok(Self);
        }
        Err(Error::Refused {
            kind: "registration_disabled",
            message: "registration is not allowed on this service: ask an administrator for an account"
                .to_owned(),
        })
    }
}

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/auth/register",
        Access::Public,
        register,
        doc("Register an organization of one's own, where the service allows it")
            .named("register_organization")
            .body::<RegisterBody>()
            .answers::<Registered>(201)
            .changes_callers()
            .limited_as_login()
            .own_proof(),
    )
}

async fn register(
    State(app): State<SharedApp>,
    _: Allowed,
    Extension(client): Extension<Client>,
    origin: Origin,
    Json(body): Json<RegisterBody>,
) -> Result<Response, Error> {
    require_setup(&app).await?;
    let mut checks = Checks::default();
    let person = Person {
        username: &body.username,
        email: &body.email,
        password: &body.password,
        full_name: body.full_name.as_deref(),
    };
    let organization = (body.organization.name.as_str(), body.organization.slug.as_deref());
    let founding = Founding::check(&app, &mut checks, organization, ("", &person), Role::OrgAdmin);
    checks.done()?;
    count(&app, &client).await?;
    let founding = founding.with_password(&app, body.password).await?;

    let mut tx = app.db.write().await?;
    let (organization, user) = founding.insert(&mut tx).await?;
    let tier = OrganizationUpdate { tier: Some(TIER), ..OrganizationUpdate::default() };
    let scope = Scope::organization(organization.id);
    let organization = organizations::update(&mut tx, &scope, organization.id, &tier, app.clock.now())
        .await?
        .ok_or(Error::NotFound("organization"))?;
    let tokens = session::open(&mut tx, &app, &origin, &user, user.token_version).await?;
    record(&mut tx, &app, &origin, &organization, &user).await?;
    tx.commit().await?;
    tracing::info!(organization.id = %organization.id, "registered organization {}", organization.id);
    let registered = Registered { organization, user, tokens };
    founding::created(&app, &origin, registered.organization.id, &registered.tokens, &registered)
}

/// The first organization belongs to the operator, and its administrator is the only `super_admin`.
async fn require_setup(app: &App) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    if heddle_store::setup::is_completed(&mut tx).await? {
        return Ok(());
    }
    let message = "setup is not completed: that is done first, with POST /setup/complete".to_owned();
    Err(Error::Conflict { kind: "setup_required", message })
}

async fn count(app: &App, client: &Client) -> Result<(), Error> {
    let limit = Limit { key: format!("register:{}", client.network()), rate: CLIENT_RATE };
    match app.limiter.take(&[limit], app.clock.now()).await {
        Ok(Verdict::Granted(_)) => Ok(()),
        Ok(Verdict::Exceeded(_)) => {
            app.metrics.rate_limited(RateWindow::Auth);
            Err(Error::RateLimited(RateExceeded::Hour))
        }
        Err(_) => Err(Error::Unavailable(CLOSED.to_owned())),
    }
}

async fn record(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    organization: &Organization,
    user: &User,
) -> Result<(), Error> {
    let entry = NewEntry {
        org: organization.id,
        actor: Some(user.into()),
        action: "organization.registered",
        target: ("organization", organization.id.0),
        detail: json!({ "organization": organization.name, "user_id": user.id, "tier": organization.tier }),
    };
    entry::record(tx, app, origin, entry).await?;
    let event = NewEvent::of(
        USER_CREATED,
        organization.id,
        json!({
            "user_id": user.id,
            "username": user.username,
            "role": user.role,
            "actor_id": user.id,
        }),
    );
    events::append(tx, &event, &app.clock).await?;
    Ok(())
}
