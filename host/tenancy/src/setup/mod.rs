//! The first organization and its administrator. Has no effect once setup was completed.

mod founding;
mod gate;
mod register;

use std::net::SocketAddr;

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::Role;
use heddle_core::secret::Secret;
use heddle_identity::password::PASSWORD_BYTES_MAX;
use heddle_identity::session::{self, Tokens};
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX, PRESENTED_CHARS_MAX, refuse_long_secret};
use heddle_kernel::feature::Feature;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::names::{EMAIL_BYTES_MAX, EMAIL_BYTES_MIN, USERNAME_CHARS_MAX};
use heddle_kernel::slug::{self, SLUG_CHARS_MAX, SLUG_PATTERN};
use heddle_store::organizations::Organization;
use heddle_store::setup::{self, Completion};
use heddle_store::sites::{self, NewSite, Site};
use heddle_store::users::User;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::founding::{Founding, Person};
use self::gate::Gate;
use crate::sites as site_rules;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetupStatus")]
struct Status {
    completed: bool,
    /// Whether `POST /setup/complete` needs `setup_token`: true while setup is open and the service listens beyond its
    /// machine.
    token_required: bool,
    version: &'static str,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Setup")]
struct CompleteBody {
    organization: OrganizationBody,
    admin: AdminBody,
    site: Option<SiteBody>,
    /// Needed where `GET /setup/status` answers `token_required`. The log of the server's start shows it, and the file
    /// `setup-token` in its data folder holds it.
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    setup_token: Option<Secret>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetupOrganization")]
struct OrganizationBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Made of the name when absent.
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX), regex(pattern = SLUG_PATTERN))]
    slug: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetupAdmin")]
struct AdminBody {
    /// 1 to 64 letters, digits, dots, underscores and hyphens.
    #[schemars(length(min = 1, max = USERNAME_CHARS_MAX))]
    username: String,
    /// At most 254 bytes.
    #[schemars(length(min = EMAIL_BYTES_MIN, max = EMAIL_BYTES_MAX))]
    email: String,
    /// Meets the password rules: when they are not set otherwise, at least 12 characters with an upper-case and a
    /// lower-case letter, a digit and a special character, and without the user name. At most 1024 bytes.
    #[schemars(extend("maxLength" = PASSWORD_BYTES_MAX))]
    password: Secret,
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    full_name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetupSite")]
struct SiteBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
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

/// The checked objects to create.
struct First {
    founding: Founding,
    site: Option<NewSite>,
}

/// The first organization, and registration.
pub struct Setup;

#[async_trait::async_trait]
impl Feature for Setup {
    fn name(&self) -> &'static str {
        "setup"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::SETUP
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(Gate::default());
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        Routes::default()
            .get(
                "/setup/status",
                Access::Public,
                status,
                doc("Whether the setup was done").named("get_setup_status").answers::<Status>(200),
            )
            .post(
                "/setup/complete",
                Access::Public,
                complete,
                doc("Create the first organization and its administrator")
                    .named("complete_setup")
                    .body::<CompleteBody>()
                    .fails_with(403)
                    .answers::<Completed>(201)
                    .changes_callers(),
            )
            .merge(register::routes())
    }

    async fn listening(&self, app: &SharedApp, addr: SocketAddr) -> anyhow::Result<()> {
        gate::shut(app, addr).await
    }
}

async fn status(State(app): State<SharedApp>) -> Result<Answer<Status>, Error> {
    let mut tx = app.db.read().await?;
    let completed = setup::is_completed(&mut tx).await?;
    let token_required = !completed && Gate::of(&app).is_shut();
    Ok(Answer(Status { completed, token_required, version: heddle_kernel::version::VERSION }))
}

async fn complete(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<CompleteBody>,
) -> Result<Response, Error> {
    // Checked before the costly hash, so that later callers cannot cause work.
    refuse_completed(&app).await?;
    if let Some(token) = &body.setup_token {
        refuse_long_secret("setup_token", token)?;
    }
    Gate::of(&app).pass(body.setup_token.as_ref())?;
    let first = check(&app, &body)?;
    let founding = first.founding.with_password(&app, body.admin.password).await?;
    let completed = create(&app, &origin, &First { founding, ..first }).await?;
    // After a crash before this line, the next start removes the file.
    if let Err(error) = gate::remove(&app.config) {
        tracing::warn!(error = %error, "file 'setup-token' cannot be removed");
    }
    founding::created(&app, &origin, completed.organization.id, &completed.tokens, &completed)
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
    let admin = Person {
        username: &body.admin.username,
        email: &body.admin.email,
        password: &body.admin.password,
        full_name: body.admin.full_name.as_deref(),
    };
    let organization = (body.organization.name.as_str(), body.organization.slug.as_deref());
    let founding = Founding::check(app, &mut checks, organization, ("admin.", &admin), Role::SuperAdmin);
    let (org_id, now) = (founding.organization.id, founding.organization.now);
    let site = body.site.as_ref().map(|site| {
        let name = checks.name("site.name", &site.name);
        let slug = checks.keep("site.name", slug::given_or_derived(None, &name));
        let settings = site_rules::Settings::default().to_json();
        NewSite { id: app.clock.new_id(), org_id, name, slug, settings, now }
    });
    checks.done()?;
    Ok(First { founding, site })
}

/// Creates everything in one transaction. The setup's row decides which request is first.
async fn create(app: &App, origin: &Origin, first: &First) -> Result<Completed, Error> {
    let mut tx = app.db.write().await?;
    if setup::complete(&mut tx, app.clock.now()).await? == Completion::AlreadyDone {
        return Err(already_done());
    }
    let (organization, user) = first.founding.insert(&mut tx).await?;
    let site = match &first.site {
        Some(new) => Some(sites::insert(&mut tx, new).await?),
        None => None,
    };
    let tokens = session::open(&mut tx, app, origin, &user, user.token_version).await?;
    let entry = NewEntry {
        org: organization.id,
        actor: Some((&user).into()),
        action: "setup.completed",
        target: ("organization", organization.id.0),
        detail: json!({ "organization": organization.name, "user_id": user.id, "site_id": site.as_ref().map(|s| s.id) }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    heddle_kernel::audit::packages::audit_new(&mut tx, &app.clock, &app.audit_key).await?;
    tx.commit().await?;
    tracing::info!(organization.id = %organization.id, "completed setup with organization {}", organization.id);
    Ok(Completed { organization, user, site, tokens })
}
