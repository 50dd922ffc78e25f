//! Signing in with the password of a directory: the service searches for the person, and then binds as that person.
//!
//! An unknown name and a wrong password get the same answer, after a time that is rounded up. An empty password never
//! reaches the directory: many directories take it for an anonymous bind, and accept it.

mod connection;
mod directory;
mod framing;

use axum::extract::State;
use axum::response::Response;
use heddle_core::ProviderKind;
use heddle_core::name::fold;
use heddle_core::secret::Secret;
use heddle_identity::admission::{Admission, AdmissionAnswer, Way};
use heddle_identity::login::{self, LOGIN_CHARS_MAX};
use heddle_identity::outcomes;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::checks::{PRESENTED_CHARS_MAX, refuse_long_secret, refuse_longer};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::rate_limit::{CLOSED, Limit, Rate, Verdict};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::keyed_hash;
use heddle_kernel::slug::SLUG_CHARS_MAX;
use heddle_store::sso::{self, IdentityProviderId, Usable};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use self::directory::Account;
pub(super) use self::directory::try_directory;
use super::account::{self, Emails};
use super::fault::ProviderFault;
use super::settings::{self, Ldap};
use super::{records, secret};

/// Attempts for one name, and for one entry, at one provider.
const TRY_RATE: Rate = Rate { requests: 20, window_ms: 300_000 };

const WRONG: Error = Error::Unauthenticated("login or password is not correct");

/// Give either `provider_id` or `organization_slug`, not both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LdapLogin")]
struct LoginBody {
    provider_id: Option<IdentityProviderId>,
    /// Selects the organization's only directory, or the oldest of several.
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX))]
    organization_slug: Option<String>,
    /// The name that the directory's filter searches for.
    #[schemars(length(max = LOGIN_CHARS_MAX))]
    login: String,
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    password: Secret,
}

/// Why a sign-in ends without a person.
#[derive(Debug)]
enum Stop {
    /// No person, several persons, or a wrong password: only the log says which.
    Wrong(&'static str),
    /// Refused before the directory was asked.
    Refused(Error),
    Provider(ProviderFault),
}

impl From<ProviderFault> for Stop {
    fn from(fault: ProviderFault) -> Self {
        Self::Provider(fault)
    }
}

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/auth/sso/ldap/authenticate",
        Access::Public,
        authenticate,
        doc("Log in with the password of a directory")
            .named("log_in_with_ldap")
            .body::<LoginBody>()
            .answers::<AdmissionAnswer>(200)
            .fails_with(401)
            .fails_with(404)
            .fails_with(502)
            .fails_with(504)
            .changes_callers()
            .limited_as_login()
            .own_proof(),
    )
}

async fn authenticate(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<LoginBody>,
) -> Result<Response, Error> {
    let started = Instant::now();
    refuse_longer(
        "organization_slug",
        body.organization_slug.as_deref().unwrap_or_default(),
        SLUG_CHARS_MAX,
    )?;
    refuse_longer("login", &body.login, LOGIN_CHARS_MAX)?;
    refuse_long_secret("password", &body.password)?;
    let result = prove(&app, &origin, body).await;
    outcomes::count(&app, &result);
    if matches!(result, Err(Error::Unauthenticated(_))) {
        login::pad(started).await?;
    }
    result?.respond(&app, &origin)
}

async fn prove(app: &App, origin: &Origin, body: LoginBody) -> Result<Admission, Error> {
    let usable = find(app, body.provider_id, body.organization_slug.as_deref()).await?;
    let provider = &usable.provider;
    let login = body.login.trim();
    if !may_try(app, provider.id, "name", login).await? {
        return Err(Error::RateLimited(RateExceeded::Minute));
    }
    let settings: Ldap = settings::read(&provider.settings)?;
    let account = account(app, &usable, &settings)?;
    match directory::person(app, provider.id, &settings, account.as_ref(), login, &body.password).await {
        Ok(person) => account::admit(app, origin, provider, person, Emails::Any, Way::Ldap).await,
        Err(Stop::Provider(fault)) => Err(fault.logged(provider.id).into()),
        Err(Stop::Refused(error)) => Err(error),
        Err(Stop::Wrong(reason)) => {
            records::record_refusal(app, origin, provider, reason).await;
            Err(WRONG)
        }
    }
}

async fn find(app: &App, id: Option<IdentityProviderId>, slug: Option<&str>) -> Result<Usable, Error> {
    let mut tx = app.db.read().await?;
    let found = match (id, slug) {
        (Some(id), None) => sso::find_usable(&mut tx, id, ProviderKind::Ldap).await?,
        (None, Some(slug)) => {
            sso::list_usable(&mut tx, slug.trim(), ProviderKind::Ldap).await?.into_iter().next()
        }
        _ => return Err(Error::field("provider_id", "give either provider_id or organization_slug")),
    };
    // The same error for an unknown organization and for one without a directory.
    found.ok_or(Error::NotFound("identity provider"))
}

/// The account that searches, with its password.
pub(super) fn account<'a>(
    app: &App,
    usable: &Usable,
    settings: &'a Ldap,
) -> Result<Option<Account<'a>>, Error> {
    let Some(dn) = &settings.bind_dn else { return Ok(None) };
    let sealed = usable.secret.as_deref().unwrap_or_default();
    let password = secret::open(&app.keys, usable.provider.id, sealed)?;
    Ok(Some(Account { dn, password }))
}

/// Counts an attempt for this name as it was typed, or for its entry: a filter may find one person by many names.
/// Counted before the directory is asked, so that concurrent attempts are limited like sequential ones.
async fn may_try(app: &App, provider: IdentityProviderId, kind: &str, name: &str) -> Result<bool, Error> {
    let name = Secret::new(format!("{provider}:{kind}:{}", fold(name)));
    let hash = keyed_hash(&app.keys.login_name_key(), &name);
    let limit = [Limit { key: format!("login-try:{hash}"), rate: TRY_RATE }];
    match app.limiter.take(&limit, app.clock.now()).await {
        Ok(verdict) => Ok(matches!(verdict, Verdict::Granted(_))),
        Err(_) => Err(Error::Unavailable(CLOSED.to_owned())),
    }
}
