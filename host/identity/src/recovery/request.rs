//! Asking for a link by which a new password can be set.
//!
//! The answer does not show whether there is such a user: it is decided before
//! the user is looked up, and the work is done after it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use heddle_core::name::fold;
use heddle_core::secret::Secret;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::config::Environment;
use heddle_kernel::hashing;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::client::Client;
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::rate_limit::{CLOSED, Limit, Rate, Verdict};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::keyed_hash;
use heddle_kernel::mail::Mail;
use heddle_kernel::metrics::{MailOutcome, RateWindow};
use heddle_kernel::names::{EMAIL_BYTES_MAX, EMAIL_BYTES_MIN, parse_email};
use heddle_store::object::Object as _;
use heddle_store::users::{self, Login};
use heddle_store::{Organization, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::LINK_MINUTES;

/// Requests of one network address, for all accounts together.
const CLIENT_RATE: Rate = Rate::per_hour(5);
/// Mails to one mailbox, for requests of all clients together.
const EMAIL_RATE: Rate = Rate::per_hour(3);
const SUBJECT: &str = "Reset your Heddle password";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PasswordResetRequest")]
struct RequestBody {
    /// The email of the account, in upper or lower case. At most 254 bytes.
    #[schemars(length(min = EMAIL_BYTES_MIN, max = EMAIL_BYTES_MAX))]
    email: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PasswordResetRequested")]
struct Requested {
    /// The same for every request.
    message: &'static str,
}

/// The only answer.
const REQUESTED: Requested =
    Requested { message: "if an account has this email, a link to set a new password is on its way" };

pub(super) fn routes() -> Routes {
    Routes::default().post(
        "/auth/password/reset-request",
        Access::Public,
        request,
        doc("Mail a link to reset the password, if there is such a user; the answer does not tell")
            .named("request_password_reset")
            .body::<RequestBody>()
            .answers::<Requested>(202)
            .limited_as_login()
            .own_proof(),
    )
}

async fn request(
    State(app): State<SharedApp>,
    Extension(client): Extension<Client>,
    origin: Origin,
    Json(body): Json<RequestBody>,
) -> Result<(StatusCode, Answer<Requested>), Error> {
    let email = parse_email(&body.email).map_err(|message| Error::field("email", message))?;
    if !is_within(&app, format!("reset:{}", client.network()), CLIENT_RATE).await? {
        app.metrics.rate_limited(RateWindow::Auth);
        return Err(Error::RateLimited(RateExceeded::Hour));
    }
    let mailbox = keyed_hash(&app.keys.limited_email_key(), &Secret::new(fold(&email)));
    // The answer hides it: a client that asks too often for one mailbox learns no more than one that asks once.
    if is_within(&app, format!("reset:{mailbox}"), EMAIL_RATE).await? {
        begin(&app, email, origin);
    }
    Ok((StatusCode::ACCEPTED, Answer(REQUESTED)))
}

async fn is_within(app: &App, key: String, rate: Rate) -> Result<bool, Error> {
    match app.limiter.take(&[Limit { key, rate }], app.clock.now()).await {
        Ok(Verdict::Granted(_)) => Ok(true),
        Ok(Verdict::Exceeded(_)) => Ok(false),
        Err(_) => Err(Error::Unavailable(CLOSED.to_owned())),
    }
}

/// Does the rest of the work after the answer.
fn begin(app: &SharedApp, email: String, origin: Origin) {
    let Some(place) = app.mailer.place() else {
        app.metrics.mail(MailOutcome::Dropped);
        tracing::warn!("too many mails are waiting: one to reset a password was dropped");
        return;
    };
    let tasks = app.tasks.clone();
    let app = app.clone();
    let work = async move {
        let _place = place;
        if let Err(error) = answer(&app, &email, &origin).await {
            tracing::warn!(error = %error, "link to reset a password could not be made");
        }
    };
    tasks.spawn("password.reset_request", work);
}

async fn answer(app: &App, email: &str, origin: &Origin) -> Result<(), Error> {
    let is_development = app.config.environment == Environment::Development;
    if !app.mailer.is_set() && !is_development {
        return Ok(());
    }
    let Some(login) = find(app, email).await? else { return Ok(()) };
    let Some(link) = keep(app, origin, &login).await? else { return Ok(()) };
    if !app.mailer.is_set() {
        tracing::info!(
            "SMTP_URL is not set; link to reset the password of user {}: {}",
            login.user.id,
            link.expose()
        );
        return Ok(());
    }
    // Sent to the address that is stored, not to the one that was typed.
    let mail =
        Mail { to: login.user.email, subject: SUBJECT.into(), text: text(&app.config.link_base(), &link) };
    match app.mailer.send(&mail, &app.clock, &app.tasks.stopping()).await {
        Ok(()) => app.metrics.mail(MailOutcome::Sent),
        Err(error) => {
            app.metrics.mail(MailOutcome::Failed);
            tracing::warn!(error = %error, user.id = %login.user.id, "mail to reset a password was not sent");
        }
    }
    Ok(())
}

/// Returns the user if they may get a link: they exist, are active, and have a password.
async fn find(app: &App, email: &str) -> Result<Option<Login>, Error> {
    let mut tx = app.db.read().await?;
    let found = users::find_by_login(&mut tx, email).await?;
    let Some(login) = found.filter(|login| fold(&login.user.email) == fold(email)) else {
        return Ok(None);
    };
    let org = login.user.org_id;
    let is_there = Organization::find(&mut tx, &Scope::organization(org), org).await?.is_some();
    let may_reset = is_there && login.user.is_active && hashing::is_set(&login.password_hash);
    Ok(may_reset.then_some(login))
}

/// Makes and stores the link, unless the user has changed meanwhile.
async fn keep(app: &App, origin: &Origin, login: &Login) -> Result<Option<Secret>, Error> {
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let Some(current) = users::find_login(&mut tx, login.user.id).await? else { return Ok(None) };
    if super::bound_to(&app.keys, &current) != super::bound_to(&app.keys, login) {
        return Ok(None);
    }
    let link = super::new_link(&mut tx, &app.keys, &app.config.link_base(), &current, now).await?;
    let entry = NewEntry {
        org: login.user.org_id,
        actor: None,
        action: "user.password_reset_requested",
        target: ("user", login.user.id.0),
        detail: json!({}),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(Some(link))
}

fn text(service: &str, link: &Secret) -> Secret {
    Secret::new(format!(
        "Hello,\r\n\
         \r\n\
         somebody asked to reset the password of your account at Heddle\r\n\
         ({service}).\r\n\
         \r\n\
         To set a new password, open this link within {LINK_MINUTES} minutes:\r\n\
         \r\n\
         {}\r\n\
         \r\n\
         The link works once. A new password ends all your sessions and API keys.\r\n\
         \r\n\
         If it was not you who asked, you need not do anything: your password stays\r\n\
         as it is, and nobody learns whether you have an account.\r\n",
        link.expose()
    ))
}
