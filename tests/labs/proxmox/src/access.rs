//! Logins: tickets, their CSRF tokens, and API tokens.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::answer::{Call, Failure, Object, Outcome};
use crate::cluster::Cluster;
use crate::privileges::{Caller, Grant, built_in_roles};

/// Seconds that a ticket is valid.
pub(crate) const TICKET_SECS: u64 = 2 * 3600;

/// An API token. Its secret is answered once, when the token is made.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) info: Object,
    pub(crate) secret: String,
}

/// Users, groups, roles and the access list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    pub(crate) users: BTreeMap<String, Object>,
    pub(crate) passwords: BTreeMap<String, String>,
    /// By user and token id.
    pub(crate) tokens: BTreeMap<(String, String), Token>,
    pub(crate) groups: BTreeMap<String, Object>,
    pub(crate) roles: BTreeMap<String, BTreeSet<String>>,
    pub(crate) acl: Vec<Grant>,
    /// What tickets are signed with.
    pub(crate) secret: String,
}

impl Access {
    pub(crate) fn new(secret: String) -> Self {
        Self { roles: built_in_roles(), secret, ..Self::default() }
    }

    fn sign(&self, text: &str) -> String {
        hex::encode(Sha256::digest(format!("{}\n{text}", self.secret)))
    }

    /// Whether the account exists, is enabled and has not expired.
    fn is_usable(&self, user: &str, now_secs: u64) -> bool {
        self.users.get(user).is_some_and(|user| {
            let expire = user.get("expire").and_then(Value::as_u64).unwrap_or(0);
            user.get("enable") != Some(&Value::from(0)) && (expire == 0 || expire > now_secs)
        })
    }

    /// The user of a valid ticket.
    fn ticket_user(&self, ticket: &str, now_secs: u64) -> Option<String> {
        let (plain, signature) = ticket.rsplit_once("::")?;
        let (user, issued) = plain.strip_prefix("PVE:")?.rsplit_once(':')?;
        let issued = u64::from_str_radix(issued, 16).ok()?;
        // Clocks of nodes may differ by some minutes, so that a ticket may seem to come from the future.
        let is_fresh = now_secs < issued + TICKET_SECS && issued < now_secs + 300;
        (is_fresh && self.sign(plain) == signature && self.is_usable(user, now_secs)).then(|| user.to_owned())
    }
}

/// The headers that identify a caller.
pub(crate) struct Credentials<'a> {
    pub(crate) authorization: Option<&'a str>,
    /// The decoded ticket cookie.
    pub(crate) ticket: Option<&'a str>,
    pub(crate) csrf: Option<&'a str>,
}

impl Cluster {
    /// Returns the account of a request. With a ticket, every request but a read needs its CSRF token.
    pub(crate) fn authenticate(&self, method: &str, credentials: &Credentials<'_>) -> Outcome<Caller> {
        if let Some(token) = credentials.authorization.and_then(|value| value.strip_prefix("PVEAPIToken")) {
            return self.authenticate_token(token.trim_start_matches(['=', ' ']));
        }
        let ticket = credentials.ticket.ok_or_else(|| Failure::new(401, "No ticket"))?;
        let user = self
            .access
            .ticket_user(ticket, self.now_secs())
            .ok_or_else(|| Failure::new(401, "permission denied - invalid PVE ticket"))?;
        if method != "GET" && !credentials.csrf.is_some_and(|token| self.is_csrf_token(token, &user)) {
            return Err(Failure::new(401, "Permission denied - invalid csrf token"));
        }
        Ok(Caller { user, token: None })
    }

    fn authenticate_token(&self, text: &str) -> Outcome<Caller> {
        let denied = |text: String| Failure::new(401, text);
        let (id, secret) = text.split_once('=').ok_or_else(|| denied("invalid API token".to_owned()))?;
        let (user, name) = id.split_once('!').ok_or_else(|| denied("invalid API token".to_owned()))?;
        if !self.access.is_usable(user, self.now_secs()) {
            return Err(denied(format!("no such user ('{user}')")));
        }
        let token = self
            .access
            .tokens
            .get(&(user.to_owned(), name.to_owned()))
            .ok_or_else(|| denied(format!("no such token '{name}' for user '{user}'")))?;
        let expire = token.info.get("expire").and_then(Value::as_u64).unwrap_or(0);
        if expire != 0 && expire <= self.now_secs() {
            return Err(denied("token expired".to_owned()));
        }
        if token.secret != secret {
            return Err(denied("invalid token value!".to_owned()));
        }
        Ok(Caller { user: user.to_owned(), token: Some(name.to_owned()) })
    }

    fn is_csrf_token(&self, token: &str, user: &str) -> bool {
        let Some((issued, signature)) = token.split_once(':') else { return false };
        let is_fresh = u64::from_str_radix(issued, 16)
            .is_ok_and(|issued| self.now_secs() < issued + TICKET_SECS && issued < self.now_secs() + 300);
        is_fresh && self.access.sign(&format!("{issued}:{user}")) == signature
    }

    /// `POST /access/ticket`: a login, or a renewal where the password is a valid ticket.
    pub(crate) fn log_in(&mut self, call: &Call) -> Outcome {
        let name = call.text("username");
        let user = match call.find("realm") {
            Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
            _ if !name.contains('@') => format!("{name}@pam"),
            _ => name.to_owned(),
        };
        let (password, now) = (call.text("password"), self.now_secs());
        let is_renewal = self.access.ticket_user(password, now).as_ref() == Some(&user);
        let is_password = self.access.passwords.get(&user).is_some_and(|known| known == password);
        if !(is_renewal || is_password && self.access.is_usable(&user, now)) {
            self.log(&user, "err", "authentication failure");
            return Err(Failure::new(401, "authentication failure"));
        }
        self.log(&user, "info", "successful auth for user");
        let plain = format!("PVE:{user}:{now:08X}");
        let csrf = format!("{now:08X}");
        let caller = Caller::user(&user);
        let signature = self.access.sign(&format!("{csrf}:{user}"));
        Ok(json!({
            "username": user,
            "ticket": format!("{plain}::{}", self.access.sign(&plain)),
            "CSRFPreventionToken": format!("{csrf}:{signature}"),
            "clustername": self.settings.name,
            "cap": self.capabilities(&caller),
        }))
    }

    /// The privileges on the roots of the object tree, as the web interface wants them.
    fn capabilities(&self, caller: &Caller) -> Value {
        let roots = [
            ("access", "/access"),
            ("dc", "/"),
            ("nodes", "/nodes"),
            ("storage", "/storage"),
            ("vms", "/vms"),
        ];
        let held = |path: &str| -> Value {
            self.privileges(caller, path).into_iter().map(|name| (name, Value::from(1))).collect()
        };
        roots.iter().map(|(name, path)| ((*name).to_owned(), held(path))).collect()
    }
}
