//! The routes of the second factor.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use heddle_core::secret::Secret;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::{Caller, REVOKED};
use heddle_kernel::checks::{PRESENTED_CHARS_MAX, refuse_long_secret};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::routes::{Doc, Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::{second_factors, users};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::admission::Opened;
use super::super::cookies;
use super::super::session::Tokens;
use crate::declarations::SIGNING_IN;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SecondFactor")]
struct LoginBody {
    /// The `mfa_token` from the answer to the first factor.
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    mfa_token: Secret,
    /// Six digits of the app, or a backup code.
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    code: Secret,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OneTimeCode")]
struct CodeBody {
    #[schemars(extend("maxLength" = PRESENTED_CHARS_MAX))]
    code: Secret,
}

#[derive(Serialize, JsonSchema)]
struct MfaStatus {
    enabled: bool,
    backup_codes_left: i64,
}

#[derive(Serialize, JsonSchema)]
struct MfaSetup {
    /// The secret in base 32, to type it in.
    secret: String,
    /// The content of the picture.
    otpauth_uri: String,
    /// A picture for the app's camera, as SVG.
    qr_svg: String,
}

#[derive(Serialize, JsonSchema)]
struct MfaEnabled {
    /// Shown once. Each is good for one login.
    backup_codes: Vec<String>,
    /// All sessions ended; these tokens belong to a new one.
    #[serde(flatten)]
    tokens: Tokens,
}

#[derive(Serialize, JsonSchema)]
struct BackupCodes {
    /// Shown once. Each is good for one login.
    backup_codes: Vec<String>,
}

pub(crate) fn routes() -> Routes {
    let login = Routes::default().post(
        "/auth/login/mfa",
        Access::Public,
        log_in,
        doc("Complete a login with the second factor")
            .named("log_in_with_second_factor")
            .body::<LoginBody>()
            .answers::<Opened>(200)
            .checks_credential()
            .limited_as_login()
            .own_proof(),
    );
    let own = Routes::default()
        .get(
            "/auth/mfa",
            Access::Authenticated(SIGNING_IN),
            status,
            doc("Whether one-time codes are set up").named("get_second_factor").answers::<MfaStatus>(200),
        )
        .post(
            "/auth/mfa/setup",
            Access::Authenticated(SIGNING_IN),
            set_up,
            doc("Stage a secret for an authenticator app")
                .named("set_up_second_factor")
                .answers::<MfaSetup>(200)
                .fails_with(501),
        )
        .post(
            "/auth/mfa/enable",
            Access::Authenticated(SIGNING_IN),
            enable,
            doc("Confirm the staged secret with a code")
                .named("enable_second_factor")
                .body::<CodeBody>()
                .answers::<MfaEnabled>(200)
                .fails_with(501),
        )
        .post(
            "/auth/mfa/disable",
            Access::Authenticated(SIGNING_IN),
            disable,
            doc("Take the second factor away").named("disable_second_factor").answers::<Tokens>(200),
        )
        .post(
            "/auth/mfa/backup-codes",
            Access::Authenticated(SIGNING_IN),
            renew,
            doc("Replace all backup codes")
                .named("replace_backup_codes")
                .body::<CodeBody>()
                .answers::<BackupCodes>(200)
                .fails_with(423),
        );
    login.merge(own.each(Doc::personal).changing_callers())
}

async fn log_in(
    State(app): State<SharedApp>,
    origin: Origin,
    Json(body): Json<LoginBody>,
) -> Result<Response, Error> {
    refuse_long_secret("mfa_token", &body.mfa_token)?;
    refuse_long_secret("code", &body.code)?;
    super::complete(&app, &origin, &body.mfa_token, &body.code).await?.respond(&app, &origin)
}

async fn status(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<MfaStatus>, Error> {
    let mut tx = app.db.read().await?;
    let login = users::find_login(&mut tx, caller.user_id).await?.ok_or(REVOKED)?;
    let backup_codes_left = second_factors::backup_codes_left(&mut tx, caller.user_id).await?;
    Ok(Answer(MfaStatus { enabled: login.user.mfa_enabled, backup_codes_left }))
}

async fn set_up(State(app): State<SharedApp>, caller: Caller) -> Result<Answer<MfaSetup>, Error> {
    let enrolment = super::stage(&app, &caller).await?;
    Ok(Answer(MfaSetup {
        secret: enrolment.secret_base32,
        otpauth_uri: enrolment.otpauth_uri,
        qr_svg: enrolment.qr_svg,
    }))
}

async fn enable(by: By, Json(body): Json<CodeBody>) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    refuse_long_secret("code", &body.code)?;
    let enabled = super::enable(app, caller, origin, &body.code).await?;
    let answer = MfaEnabled { backup_codes: shown(&enabled.backup_codes), tokens: enabled.tokens };
    cookies::set(app, origin, &answer.tokens, Answer(&answer).into_response())
}

async fn disable(State(app): State<SharedApp>, caller: Caller, origin: Origin) -> Result<Response, Error> {
    let tokens = super::disable(&app, &caller, &origin).await?;
    cookies::set(&app, &origin, &tokens, Answer(&tokens).into_response())
}

async fn renew(by: By, Json(body): Json<CodeBody>) -> Result<Answer<BackupCodes>, Error> {
    let By { app, caller, origin } = &by;
    refuse_long_secret("code", &body.code)?;
    let codes = super::renew_backup_codes(app, caller, origin, &body.code).await?;
    Ok(Answer(BackupCodes { backup_codes: shown(&codes) }))
}

fn shown(codes: &[Secret]) -> Vec<String> {
    codes.iter().map(|code| code.expose().to_owned()).collect()
}
