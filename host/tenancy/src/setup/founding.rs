//! An organization and its first administrator, created together: by the setup, or by a registration.

use axum::Json as Answer;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use heddle_core::organization_settings::OrganizationSettings;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Role};
use heddle_identity::session::Tokens;
use heddle_identity::{cookies, password};
use heddle_kernel::app::App;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::names::{parse_email, parse_username};
use heddle_kernel::{resource, slug};
use heddle_store::Tx;
use heddle_store::organizations::{self, NewOrganization, Organization};
use heddle_store::users::{self, NewUser, User};
use serde::Serialize;
use serde_json::json;

use crate::organizations::Organizations;
use crate::users::Users;

/// The administrator, as a body describes them.
pub(crate) struct Person<'a> {
    pub(crate) username: &'a str,
    pub(crate) email: &'a str,
    pub(crate) password: &'a Secret,
    pub(crate) full_name: Option<&'a str>,
}

/// The checked organization and administrator to create. The password is not hashed yet.
pub(crate) struct Founding {
    pub(crate) organization: NewOrganization,
    pub(crate) admin: NewUser,
}

impl Founding {
    /// `prefix` is the prefix of the person's fields in the body.
    pub(crate) fn check(
        app: &App,
        checks: &mut Checks,
        (name, slug): (&str, Option<&str>),
        (prefix, person): (&str, &Person<'_>),
        role: Role,
    ) -> Self {
        let (now, org_id): (_, OrgId) = (app.clock.now(), app.clock.new_id());
        let name = checks.name("organization.name", name);
        let slug = checks.keep("organization.slug", slug::given_or_derived(slug, &name));
        let settings = json!(OrganizationSettings::default());
        let organization = NewOrganization { id: org_id, name, slug, settings, now };
        let field = |name: &str| format!("{prefix}{name}");
        let admin = NewUser {
            id: app.clock.new_id(),
            org_id,
            username: checks.keep(&field("username"), parse_username(person.username)),
            email: checks.keep(&field("email"), parse_email(person.email)),
            full_name: person.full_name.map(|name| checks.name(&field("full_name"), name)),
            password_hash: String::new(),
            role,
            now,
        };
        let names = [admin.username.as_str(), admin.email.as_str()];
        checks.add(password::faults(&app.config, &field("password"), person.password, &names));
        Self { organization, admin }
    }

    /// Hashes the password. This is costly, and so done before the transaction.
    pub(crate) async fn with_password(mut self, app: &App, password: Secret) -> Result<Self, Error> {
        self.admin.password_hash = app.hashing.hash(password).await?;
        Ok(self)
    }

    /// # Errors
    /// 409 when the slug, the user name or the email is taken; checked in this order.
    pub(crate) async fn insert(&self, tx: &mut Tx) -> Result<(Organization, User), Error> {
        let slug = &self.organization.slug;
        let organization = organizations::insert(tx, &self.organization)
            .await
            .map_err(|error| resource::taken::<Organizations>(error, &[slug]))?;
        let names = [self.admin.username.as_str(), &self.admin.email];
        let user = users::insert(tx, &self.admin).await;
        let user = user.map_err(|error| resource::taken::<Users>(error, &names))?;
        Ok((organization, user))
    }
}

/// Returns 201 with the location of the organization and the cookies of the session.
pub(crate) fn created(
    app: &App,
    origin: &Origin,
    organization: OrgId,
    tokens: &Tokens,
    body: &impl Serialize,
) -> Result<Response, Error> {
    let path = format!("{}/organizations/{organization}", heddle_kernel::http::PREFIX);
    let location = HeaderValue::from_str(&path).map_err(Error::internal)?;
    let response = (StatusCode::CREATED, [(header::LOCATION, location)], Answer(body)).into_response();
    cookies::set(app, origin, tokens, response)
}
