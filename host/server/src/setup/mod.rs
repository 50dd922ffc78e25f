//! The first organization and its administrator. Inert after it was done once.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role};
use heddle_store::organizations::{self, NewOrganization, Organization};
use heddle_store::setup::{self, Completion};
use heddle_store::sites::{self, NewSite, Site};
use heddle_store::users::{self, NewUser, User};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::{App, SharedApp};
use crate::auth::session::{self, Tokens};
use crate::auth::trail::{self, Deed};
use crate::auth::{cookies, password};
use crate::http::access::Access;
use crate::http::error::Error;
use crate::http::extract::{Json, Origin};
use crate::http::routes::{Routes, doc};
use crate::tenancy::checks::Checks;
use crate::tenancy::users::names::{parse_email, parse_username};
use crate::tenancy::{organizations as organization_rules, sites as site_rules, slug};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetupStatus")]
struct Status {
    completed: bool,
    version: &'static str,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Setup")]
struct CompleteBody {
    organization: OrganizationBody,
    admin: AdminBody,
    site: Option<SiteBody>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetupOrganization")]
struct OrganizationBody {
    name: String,
    /// Made of the name when absent.
    slug: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetupAdmin")]
struct AdminBody {
    username: String,
    email: String,
    /// At least 12 characters with an upper-case and a lower-case letter, a digit and a special character.
    password: Secret,
    full_name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetupSite")]
struct SiteBody {
    name: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SetupCompleted")]
struct Completed {
    organization: Organization,
    user: User,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Site>,
    #[serde(flatten)]
    tokens: Tokens,
}

/// What is to be created, checked.
struct First {
    organization: NewOrganization,
    admin: NewUser,
    site: Option<NewSite>,
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get(
            "/setup/status",
            Access::Public,
            status,
            doc("Whether the setup was done").answers::<Status>(200),
        )
        .post(
            "/setup/complete",
            Access::Public,
            complete,
            doc("Create the first organization and its administrator")
                .body::<CompleteBody>()
                .answers::<Completed>(201),
        )
}

async fn status(State(app): State<SharedApp>) -> Result<Answer<Status>, Error> {
    let mut tx = app.db.read().await?;
    let completed = setup::is_completed(&mut tx).await?;
    Ok(Answer(Status { completed, version: crate::VERSION }))
}

async fn complete(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<CompleteBody>,
) -> Result<Response, Error> {
    // Before the costly hash: nobody who comes later can make the service work.
    refuse_completed(&app).await?;
    let first = check(&app, &body)?;
    let password_hash = password::hash(body.admin.password).await?;
    let first = First { admin: NewUser { password_hash, ..first.admin }, ..first };
    let completed = create(&app, &origin, &first).await?;
    let path = format!("{}/organizations/{}", crate::http::PREFIX, completed.organization.id);
    let location = HeaderValue::from_str(&path).map_err(Error::internal)?;
    let response = (StatusCode::CREATED, [(header::LOCATION, location)], Answer(&completed)).into_response();
    cookies::set(&app, &origin, &completed.tokens, response)
}

async fn refuse_completed(app: &App) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    if setup::is_completed(&mut tx).await? { Err(already_done()) } else { Ok(()) }
}

fn already_done() -> Error {
    Error::conflict("setup is already completed")
}

fn check(app: &App, body: &CompleteBody) -> Result<First, Error> {
    let mut checks = Checks::default();
    let (now, org_id): (_, OrgId) = (app.clock.now(), app.clock.new_id());
    let name = checks.name("organization.name", &body.organization.name);
    let given = body.organization.slug.as_deref();
    let slug = checks.keep("organization.slug", slug::given_or_derived(given, &name));
    let settings = organization_rules::Settings::default().to_json();
    let organization = NewOrganization { id: org_id, name, slug, settings, now };
    let admin = NewUser {
        id: app.clock.new_id(),
        org_id,
        username: checks.keep("admin.username", parse_username(&body.admin.username)),
        email: checks.keep("admin.email", parse_email(&body.admin.email)),
        full_name: body.admin.full_name.as_deref().map(|name| checks.name("admin.full_name", name)),
        password_hash: String::new(),
        role: Role::SuperAdmin,
        now,
    };
    checks.add(password::faults("admin.password", &body.admin.password));
    let site = body.site.as_ref().map(|site| {
        let name = checks.name("site.name", &site.name);
        let slug = checks.keep("site.name", slug::given_or_derived(None, &name));
        let settings = site_rules::Settings::default().to_json();
        NewSite { id: app.clock.new_id(), org_id, name, slug, settings, now }
    });
    checks.done()?;
    Ok(First { organization, admin, site })
}

/// Creates everything at once. The setup's row decides who is first.
async fn create(app: &App, origin: &Origin, first: &First) -> Result<Completed, Error> {
    let mut tx = app.db.write().await?;
    if setup::complete(&mut tx, app.clock.now()).await? == Completion::AlreadyDone {
        return Err(already_done());
    }
    let slug = &first.organization.slug;
    let organization = organizations::insert(&mut tx, &first.organization)
        .await
        .map_err(|error| slug::taken(error, organization_rules::SLUG_INDEX, slug))?;
    let user = users::insert(&mut tx, &first.admin).await?;
    let site = match &first.site {
        Some(new) => Some(sites::insert(&mut tx, new).await?),
        None => None,
    };
    let login = users::find_login(&mut tx, user.id).await?.ok_or(Error::NotFound("user"))?;
    let tokens = session::open(&mut tx, app, origin, &user, login.token_version).await?;
    let deed = Deed {
        org: organization.id,
        actor: Some((user.id, &user.username)),
        action: "setup.completed",
        target: ("organization", organization.id.0),
        detail: json!({ "organization": organization.name, "user_id": user.id, "site_id": site.as_ref().map(|s| s.id) }),
    };
    trail::record(&mut tx, app, origin, deed).await?;
    tx.commit().await?;
    tracing::info!(organization.id = %organization.id, "completed setup with organization {}", organization.id);
    Ok(Completed { organization, user, site, tokens })
}
