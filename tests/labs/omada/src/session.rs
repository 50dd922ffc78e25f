//! The two ways in: access tokens of the Open API, and sessions of the web surface. Neither opens the
//! other's door.

use std::collections::BTreeMap;

use heddle_lab::Request;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::outcome::{
    Failure, INVALID, NO_CONTROLLER, Outcome, REFRESH_EXPIRED, TOKEN_EXPIRED, TOKEN_INVALID, WRONG_CLIENT,
    WRONG_PASSWORD, WRONG_SURFACE,
};

const REFRESH_MS: u64 = 14 * 24 * 3_600_000;
const CODE_MS: u64 = 120_000;
const IDLE_MS: u64 = 30 * 60_000;

/// The accounts that can log in, and the sessions that are open.
pub struct Sessions {
    /// Id of the Open API application.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// Name of the administrator.
    pub user: String,
    /// Their password.
    pub password: String,
    /// Life of an access token, in milliseconds.
    pub token_ms: u64,
    access: BTreeMap<String, Token>,
    refresh: BTreeMap<String, u64>,
    codes: BTreeMap<String, u64>,
    /// Session id to its CSRF token and when it was last used.
    web: BTreeMap<String, (String, u64)>,
    issued: u64,
}

struct Token {
    ends_at: u64,
    is_of_user: bool,
}

/// How a web session looks once it is dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionEnd {
    /// The login page, with status 200.
    #[default]
    Html,
    /// A redirect to the login page.
    Redirect,
    /// The envelope with -1200.
    Code,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self {
            client_id: "lab-client".to_owned(),
            client_secret: "lab-secret".to_owned(),
            user: "admin".to_owned(),
            password: "omada".to_owned(),
            token_ms: 7_200_000,
            access: BTreeMap::new(),
            refresh: BTreeMap::new(),
            codes: BTreeMap::new(),
            web: BTreeMap::new(),
            issued: 0,
        }
    }

    /// 32 hexadecimal digits, different in every call.
    fn fresh(&mut self, kind: &str) -> String {
        self.issued += 1;
        let seed = format!("{kind} {} {}", self.issued, self.client_secret);
        hex::encode(Sha256::digest(seed))[..32].to_owned()
    }

    /// Ends every token and every session, as a restart or a restore does.
    pub(crate) fn end_all(&mut self) {
        self.access.clear();
        self.refresh.clear();
        self.codes.clear();
        self.web.clear();
    }

    pub(crate) fn expire_tokens(&mut self) {
        self.access.values_mut().for_each(|token| token.ends_at = 0);
    }

    pub(crate) fn end_web_sessions(&mut self) {
        self.web.clear();
    }

    /// `/openapi/authorize/…`: the three grants, and the login that leads to a code.
    pub(crate) fn authorize(&mut self, request: &Request, omadac_id: &str, now: u64) -> Outcome {
        let query: BTreeMap<String, String> = request.query_pairs().into_iter().collect();
        let body = request.json().unwrap_or(Value::Null);
        let asked = |name: &str| {
            body[name].as_str().or_else(|| query.get(name).map(String::as_str)).unwrap_or_default()
        };
        let known = asked("client_id") == self.client_id;
        match request.path.rsplit('/').next().unwrap_or_default() {
            "login" if asked("omadac_id") == omadac_id && known => {
                let (session, token) = self.log_in(asked("username"), asked("password"), now)?;
                Ok(json!({"csrfToken": token, "sessionId": session}))
            }
            "code" if asked("omadac_id") == omadac_id && known => {
                if !self.is_signed_in(request, now) {
                    return Err(Failure::new(TOKEN_INVALID));
                }
                let code = format!("OC-{}", self.fresh("code"));
                self.codes.insert(code.clone(), now + CODE_MS);
                Ok(json!(code))
            }
            "token" => match asked("grant_type") {
                "client_credentials" if asked("omadacId") != omadac_id => Err(Failure::new(NO_CONTROLLER)),
                _ if !known || asked("client_secret") != self.client_secret => {
                    Err(Failure::new(WRONG_CLIENT))
                }
                "client_credentials" => Ok(self.issue(now, false)),
                // A refresh token and a code serve once.
                "refresh_token" => match self.refresh.remove(asked("refresh_token")) {
                    Some(ends_at) if now < ends_at => Ok(self.issue(now, false)),
                    _ => Err(Failure::new(REFRESH_EXPIRED)),
                },
                "authorization_code" => match self.codes.remove(asked("code")) {
                    Some(ends_at) if now < ends_at => Ok(self.issue(now, true)),
                    _ => Err(Failure::new(TOKEN_INVALID)),
                },
                _ => Err(Failure::new(INVALID)),
            },
            _ => Err(Failure::new(INVALID)),
        }
    }

    fn issue(&mut self, now: u64, is_of_user: bool) -> Value {
        let access = format!("AT-{}", self.fresh("access"));
        let refresh = format!("RT-{}", self.fresh("refresh"));
        self.access.insert(access.clone(), Token { ends_at: now + self.token_ms, is_of_user });
        self.refresh.insert(refresh.clone(), now + REFRESH_MS);
        json!({
            "accessToken": access, "tokenType": "bearer",
            "expiresIn": self.token_ms / 1000, "refreshToken": refresh,
        })
    }

    /// Whether the Open API lets the request in, and whether it acts for a user.
    pub(crate) fn admit(&self, request: &Request, now: u64) -> Result<bool, Failure> {
        let Some(header) = request.header("authorization") else {
            let status = if request.header("csrf-token").is_some() { 200 } else { 401 };
            return Err(Failure { status, ..Failure::new(WRONG_SURFACE) });
        };
        // The vendor answers "expired" to every other scheme, `Bearer` among them.
        let token = header.strip_prefix("AccessToken=").ok_or_else(|| Failure::new(TOKEN_EXPIRED))?;
        let token = self.access.get(token).ok_or_else(|| Failure::new(TOKEN_INVALID))?;
        if now < token.ends_at { Ok(token.is_of_user) } else { Err(Failure::new(TOKEN_EXPIRED)) }
    }

    /// The session id (a cookie) and the CSRF token of a new web session.
    pub(crate) fn log_in(
        &mut self,
        user: &str,
        password: &str,
        now: u64,
    ) -> Result<(String, String), Failure> {
        if user != self.user || password != self.password {
            return Err(Failure::new(WRONG_PASSWORD));
        }
        let (session, token) = (self.fresh("session"), self.fresh("csrf"));
        self.web.insert(session.clone(), (token.clone(), now));
        Ok((session, token))
    }

    /// Both the cookie and the header must be of one live session.
    pub(crate) fn is_signed_in(&mut self, request: &Request, now: u64) -> bool {
        let Some(session) = request.cookie("TPOMADA_SESSIONID") else { return false };
        let Some((token, used_at)) = self.web.get_mut(session) else { return false };
        let is_live = now < *used_at + IDLE_MS && request.header("csrf-token") == Some(token.as_str());
        if is_live {
            *used_at = now;
        }
        is_live
    }

    pub(crate) fn log_out(&mut self, request: &Request) {
        if let Some(session) = request.cookie("TPOMADA_SESSIONID") {
            self.web.remove(session);
        }
    }
}
