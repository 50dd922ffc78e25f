//! Who is let in: accounts, sessions with their CSRF token, keys, and the limit of logins.

use std::collections::{BTreeMap, VecDeque};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use heddle_lab::{Answer, Request};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::reply::{Refusal, console, ok};
use crate::settings::{SessionEnd, Settings};

/// The sessions that are open, and the latest logins.
#[derive(Default)]
pub(crate) struct Access {
    sessions: BTreeMap<String, Session>,
    logins: VecDeque<u64>,
    issued: u64,
}

struct Session {
    name: String,
    csrf: String,
    /// The token before: it still counts, for calls that were under way when it changed.
    previous: Option<String>,
    writes: u32,
    ends_at: u64,
}

/// The account behind a request.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) may_write: bool,
    /// Whether it came with an API key.
    pub(crate) has_key: bool,
}

/// What a request gets beside its answer.
pub(crate) type Headers = Vec<(String, String)>;

impl Access {
    pub(crate) fn end_all(&mut self) {
        self.sessions.clear();
    }

    fn fresh(&mut self, kind: &str) -> String {
        self.issued += 1;
        hex::encode(Sha256::digest(format!("{kind} {}", self.issued)))
    }

    /// Counts a login; false when there were too many.
    fn counts(&mut self, settings: &Settings, now: u64) -> bool {
        let window = u64::try_from(settings.login_window.as_millis()).unwrap_or(u64::MAX);
        while self.logins.front().is_some_and(|at| at + window <= now) {
            self.logins.pop_front();
        }
        let has_room = settings.logins_max == 0 || self.logins.len() < settings.logins_max;
        if has_room {
            self.logins.push_back(now);
        }
        has_room
    }

    fn open(&mut self, settings: &Settings, name: &str, now: u64) -> (String, String, u64) {
        let life = u64::try_from(settings.session.as_millis()).unwrap_or(u64::MAX);
        let ends_at = now + life;
        let csrf = uuid_like(&self.fresh("csrf"));
        let secret = self.fresh("session");
        let token = if settings.is_unifi_os() { jwt(name, &csrf, now, ends_at, &secret) } else { secret };
        let session =
            Session { name: name.to_owned(), csrf: csrf.clone(), previous: None, writes: 0, ends_at };
        self.sessions.insert(token.clone(), session);
        (token, csrf, ends_at)
    }

    /// `POST /api/auth/login` of a console.
    pub(crate) fn log_in_console(&mut self, settings: &Settings, request: &Request, now: u64) -> Answer {
        let refuse = |status: u16, code: &str, message: &str| {
            Answer::json(status, &json!({ "code": code, "message": message, "level": "debug" }))
        };
        if !self.counts(settings, now) {
            return refuse(
                429,
                "AUTHENTICATION_FAILED_LIMIT_REACHED",
                "The limit of login attempts is reached",
            );
        }
        // A token that is dead keeps its owner out.
        if request.cookie("TOKEN").is_some_and(|token| !self.sessions.contains_key(token)) {
            return refuse(401, "AUTHENTICATION_REQUIRED", "Unauthorized");
        }
        let body = request.json().unwrap_or_default();
        let Some(name) = account(settings, &body) else {
            return refuse(403, "AUTHENTICATION_FAILED_INVALID_CREDENTIALS", "Invalid username or password");
        };
        if let Some(factor) = &settings.second_factor {
            let sent = body["token"].as_str().or_else(|| body["ubic_2fa_token"].as_str());
            if sent.is_none() {
                let cookie = format!("UBIC_2FA={}", &self.fresh("factor")[..32]);
                return Answer::json(
                    499,
                    &json!({
                        "code": "MFA_AUTH_REQUIRED", "message": "A second factor is required",
                        "data": { "mfaCookie": cookie, "required": "2fa" },
                    }),
                );
            }
            if sent != Some(factor.as_str()) {
                return refuse(403, "AUTHENTICATION_FAILED_INVALID_CREDENTIALS", "Invalid second factor");
            }
        }
        let (token, csrf, ends_at) = self.open(settings, name, now);
        let user = json!({
            "unique_id": "b8e5d7a2-3c1f-4e6a-9d04-7f2b1c8e5a90", "username": name, "full_name": name,
            "first_name": name, "last_name": "", "email": "", "status": "ACTIVE",
            "isOwner": false, "isSuperAdmin": name == settings.admin.0, "local_account_exist": true,
        });
        Answer::json(200, &user)
            .with_header("set-cookie", &format!("TOKEN={token}; path=/; samesite=strict; secure; httponly"))
            .with_header("x-csrf-token", &csrf)
            .with_header("x-token-expire-time", &ends_at.to_string())
    }

    /// `POST /api/login` of the self-hosted application.
    pub(crate) fn log_in_classic(&mut self, settings: &Settings, request: &Request, now: u64) -> Answer {
        if !self.counts(settings, now) {
            return Answer::status(429);
        }
        let body = request.json().unwrap_or_default();
        let stale = request.cookie("unifises").is_some_and(|token| !self.sessions.contains_key(token));
        let Some(name) = account(settings, &body).filter(|_| !stale) else {
            return Refusal::new("Invalid").v1();
        };
        if let Some(factor) = &settings.second_factor {
            match body["ubic_2fa_token"].as_str() {
                None => return Refusal::new("Ubic2faTokenRequired").v1(),
                Some(sent) if sent != factor => return Refusal::new("Invalid2FAToken").v1(),
                Some(_) => {}
            }
        }
        let (token, csrf, _) = self.open(settings, name, now);
        Answer::json(200, &ok(Vec::new()))
            .with_header("set-cookie", &format!("unifises={token}; Path=/; Secure; HttpOnly"))
            .with_header("set-cookie", &format!("csrf_token={csrf}; Path=/; Secure"))
    }

    pub(crate) fn log_out(&mut self, settings: &Settings, request: &Request) {
        if let Some(token) = request.cookie(cookie_of(settings)) {
            self.sessions.remove(token);
        }
    }

    /// Whether the request comes with a live session, a good key, and the CSRF token where it needs one.
    pub(crate) fn admit(
        &mut self,
        settings: &Settings,
        request: &Request,
        now: u64,
    ) -> Result<(Who, Headers), Answer> {
        if let Some(key) = request.header("x-api-key").filter(|_| settings.is_unifi_os()) {
            if !settings.api_keys.iter().any(|own| own == key) {
                return Err(console(401, "Unauthorized"));
            }
            let who = Who { name: settings.admin.0.clone(), may_write: true, has_key: true };
            return Ok((who, Vec::new()));
        }
        let token = request.cookie(cookie_of(settings)).unwrap_or_default();
        let Some(session) = self.sessions.get(token).filter(|session| now < session.ends_at) else {
            return Err(signed_out(settings, request));
        };
        let name = session.name.clone();
        let who = Who { may_write: name == settings.admin.0, name, has_key: false };
        if !settings.is_unifi_os() {
            return Ok((who, Vec::new()));
        }
        let is_write = !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        let sent = request.header("x-csrf-token");
        let is_right =
            sent.is_some() && (sent == Some(session.csrf.as_str()) || sent == session.previous.as_deref());
        if is_write && !is_right {
            return Err(console(403, "Invalid CSRF Token"));
        }
        if settings.csrf_on_reads && !is_right {
            return Err(console(401, "Unauthorized"));
        }
        let token = token.to_owned();
        Ok((who, self.after(settings, &token, is_write)))
    }

    /// Counts a call, changes the CSRF token when its time has come, and gives the headers that tell it.
    fn after(&mut self, settings: &Settings, token: &str, is_write: bool) -> Headers {
        let next = uuid_like(&self.fresh("csrf"));
        let Some(session) = self.sessions.get_mut(token) else { return Vec::new() };
        session.writes += u32::from(is_write);
        let changes = settings.csrf_writes > 0 && session.writes >= settings.csrf_writes;
        if changes {
            session.writes = 0;
            session.previous = Some(std::mem::replace(&mut session.csrf, next));
        }
        let mut headers = vec![
            ("x-csrf-token".to_owned(), session.csrf.clone()),
            ("x-token-expire-time".to_owned(), session.ends_at.to_string()),
        ];
        if changes {
            headers.push(("x-updated-csrf-token".to_owned(), session.csrf.clone()));
        }
        headers
    }
}

fn cookie_of(settings: &Settings) -> &'static str {
    if settings.is_unifi_os() { "TOKEN" } else { "unifises" }
}

/// The name of the account whose password a login gives.
fn account<'a>(settings: &'a Settings, body: &Value) -> Option<&'a str> {
    let sent = (body["username"].as_str()?, body["password"].as_str()?);
    let accounts = [&settings.admin, &settings.viewer];
    let own = accounts.into_iter().find(|(name, password)| sent == (name.as_str(), password.as_str()))?;
    Some(&own.0)
}

/// How a request without a live session is answered.
pub(crate) fn signed_out(settings: &Settings, request: &Request) -> Answer {
    let is_v1 = request.path.contains("/api/s/");
    let refusal = Refusal::new("LoginRequired");
    match settings.session_end {
        SessionEnd::Envelope if is_v1 => refusal.with_status(200).v1(),
        _ if settings.is_unifi_os() => console(401, "Unauthorized"),
        _ => refusal.with_status(401).v1(),
    }
}

/// A token whose middle part tells the CSRF token.
fn jwt(name: &str, csrf: &str, now: u64, ends_at: u64, secret: &str) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(&json!({ "alg": "HS256", "typ": "JWT" }));
    let body = part(&json!({
        "userId": uuid_like(&hex::encode(Sha256::digest(name))), "passwordRevision": 1_767_000_000,
        "isRemembered": true,
        "csrfToken": csrf, "iat": now / 1000, "exp": ends_at / 1000, "jti": uuid_like(secret),
    }));
    format!("{head}.{body}.{}", &secret[..43])
}

fn uuid_like(hex: &str) -> String {
    format!("{}-{}-4{}-9{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
