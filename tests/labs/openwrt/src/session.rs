//! Users, sessions and what each may call.

use std::collections::BTreeMap;
use std::time::Duration;

use heddle_lab::Instant;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::objects;

/// The session that every client has: it may log in, and probe its own access.
pub(crate) const NULL_SESSION: &str = "00000000000000000000000000000000";

/// Seconds that a session lives after its last call, when the login names none.
const TIMEOUT_SECS: u64 = 300;

/// What a user may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every method, configuration and file.
    Full,
    /// Methods that change nothing, every configuration and file to read.
    ReadOnly,
    /// Every method, every configuration to read, but only the named ones to write.
    Writes(Vec<String>),
    /// Everything but the named ubus objects.
    Without(Vec<String>),
}

impl Access {
    fn permits(&self, scope: &str, object: &str, function: &str) -> bool {
        match (self, scope) {
            (Self::Full, _) => true,
            (Self::ReadOnly, "ubus") => {
                objects::method(object, function).is_some_and(|method| !method.is_write)
            }
            (Self::ReadOnly, _) => function == "read" || function == "list",
            (Self::Writes(configs), "uci") => {
                function == "read" || configs.iter().any(|config| config == object)
            }
            (Self::Without(objects), "ubus") => !objects.iter().any(|denied| denied == object),
            (Self::Writes(_) | Self::Without(_), _) => true,
        }
    }

    /// The `acls` of a login answer.
    fn to_json(&self) -> Value {
        let everything = json!({ "*": ["*"] });
        let reading = json!({ "*": ["read"] });
        match self {
            Self::Full | Self::Without(_) => json!({
                "access-group": { "unauthenticated": ["read"], "superuser": ["read", "write"] },
                "ubus": everything,
                "uci": { "*": ["read", "write"] },
                "file": { "*": ["list", "read", "write", "exec"] },
                "cgi-io": { "backup": ["read"], "download": ["read"], "upload": ["write"], "exec": ["read"] },
            }),
            Self::ReadOnly => json!({
                "access-group": { "unauthenticated": ["read"], "monitor": ["read"] },
                "ubus": objects::readable(),
                "uci": reading,
                "file": { "*": ["list", "read"] },
            }),
            Self::Writes(configs) => {
                let mut uci = reading;
                for config in configs {
                    uci[config] = json!(["read", "write"]);
                }
                json!({
                    "access-group": { "unauthenticated": ["read"], "operator": ["read", "write"] },
                    "ubus": everything,
                    "uci": uci,
                    "file": { "*": ["list", "read", "write", "exec"] },
                })
            }
        }
    }
}

/// A login. Without a password any password is accepted, as with an empty hash on the device.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Option<String>,
    pub(crate) access: Access,
}

struct Session {
    user: User,
    /// `None` never expires.
    timeout: Option<Duration>,
    used_at: Instant,
}

/// The sessions that rpcd holds in memory. Ids are a hash of a counter, so that runs are repeatable.
#[derive(Default)]
pub(crate) struct Sessions {
    open: BTreeMap<String, Session>,
    opened: u64,
}

impl Sessions {
    /// Opens a session; `timeout_secs` 0 never expires.
    pub(crate) fn open(&mut self, user: User, timeout_secs: Option<i64>, now: Instant) -> String {
        self.opened += 1;
        let sid = hex::encode(Sha256::digest(format!("session {}", self.opened)))[..32].to_owned();
        let secs = timeout_secs.and_then(|secs| u64::try_from(secs).ok()).unwrap_or(TIMEOUT_SECS);
        let timeout = (secs > 0).then(|| Duration::from_secs(secs));
        self.open.insert(sid.clone(), Session { user, timeout, used_at: now });
        sid
    }

    /// The answer to a login.
    pub(crate) fn describe(&self, sid: &str, now: Instant) -> Option<Value> {
        let session = self.open.get(sid)?;
        let secs = session.timeout.map_or(0, |timeout| timeout.as_secs());
        let left =
            session.timeout.map_or(0, |timeout| (session.used_at + timeout).duration_since(now).as_secs());
        Some(json!({
            "ubus_rpc_session": sid,
            "timeout": secs,
            "expires": left,
            "acls": session.user.access.to_json(),
            "data": { "username": session.user.name },
        }))
    }

    /// Drops the sessions whose time is over, and gives their ids.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<String> {
        let is_over =
            |session: &Session| session.timeout.is_some_and(|timeout| session.used_at + timeout <= now);
        self.open.extract_if(.., |_, session| is_over(session)).map(|(sid, _)| sid).collect()
    }

    /// Sliding expiry: naming the session in a call renews it.
    pub(crate) fn renew(&mut self, sid: &str, now: Instant) {
        if let Some(session) = self.open.get_mut(sid) {
            session.used_at = now;
        }
    }

    /// Whether the session may use `function` of `object`. The unknown and the expired session may nothing.
    pub(crate) fn may(&self, sid: &str, scope: &str, object: &str, function: &str) -> bool {
        let is_open_to_all = scope == "ubus" && object == "session" && matches!(function, "login" | "access");
        if sid == NULL_SESSION {
            return is_open_to_all;
        }
        self.open.get(sid).is_some_and(|session| {
            let is_own_logout = scope == "ubus" && object == "session" && function == "destroy";
            is_open_to_all || is_own_logout || session.user.access.permits(scope, object, function)
        })
    }

    pub(crate) fn user_of(&self, sid: &str) -> Option<String> {
        self.open.get(sid).map(|session| session.user.name.clone())
    }

    pub(crate) fn is_alive(&self, sid: &str) -> bool {
        self.open.contains_key(sid)
    }

    pub(crate) fn destroy(&mut self, sid: &str) {
        self.open.remove(sid);
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}
