//! Sessions that the host opens, keeps and renews as a manifest declares it.
//!
//! Components never see what a login captured, except what is marked `expose`.

mod expose;
mod login;
mod matcher;
mod template;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::TimeDelta;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_core::{ControllerId, CredentialId, OrgId, Timestamp};
use heddle_marketplace::manifest::{ApplyTo, Manifest, Session};
pub(super) use matcher::{Expiry, expired};

use super::request::Request;
use super::wire::{Answer, Outgoing};
use super::{Outbound, credentials};
use crate::egress::phase::Phase;

const REFUSALS_MAX: u32 = 3;
const SUSPENDED: TimeDelta = TimeDelta::minutes(5);
const SESSIONS_KEPT: usize = 4_096;
/// Cookies that a session keeps, as a browser would (RFC 6265 section 6.1); what a device sets beyond is dropped.
const COOKIES_MAX: usize = 50;
const COOKIE_BYTES_MAX: usize = 4_096;

/// Writes have a session of their own: a provisional change can belong to the
/// session that made it, and readers must not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Read,
    Write,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    org: OrgId,
    controller: ControllerId,
    credential: CredentialId,
    credential_version: i64,
    component: String,
    name: String,
    class: Class,
}

/// An open session.
pub(super) struct Live {
    captures: BTreeMap<String, Secret>,
    pub(super) exposed: Vec<(String, String)>,
    /// Captures that the manifest exposes and this login did not, with the reason.
    withheld: Vec<(String, &'static str)>,
    cookies: Mutex<BTreeMap<String, String>>,
    settings: serde_json::Value,
    /// The fields of the credential, for what every request carries of it.
    credential: Vec<(String, Secret)>,
    /// What must not come back in answers.
    secrets: Vec<Secret>,
    until: Instant,
}

type Slot = Arc<tokio::sync::Mutex<Option<Arc<Live>>>>;

#[derive(Default)]
pub(super) struct Sessions {
    slots: Mutex<HashMap<Key, Slot>>,
    /// Refused logins in a row, and since when no more are tried.
    refusals: Mutex<HashMap<(ControllerId, CredentialId, i64), (u32, Option<Timestamp>)>>,
}

impl Sessions {
    fn slot(&self, key: Key) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() > SESSIONS_KEPT {
            let now = Instant::now();
            slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1
                    || slot.try_lock().is_ok_and(|live| live.as_ref().is_some_and(|l| l.until > now))
            });
        }
        Arc::clone(slots.entry(key).or_default())
    }

    /// Calls that run keep theirs.
    pub(super) fn forget_writes(&self, controller: ControllerId) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|key, _| key.controller != controller || key.class != Class::Write);
    }

    fn refusals(
        &self,
    ) -> MutexGuard<'_, HashMap<(ControllerId, CredentialId, i64), (u32, Option<Timestamp>)>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// The request with the session in it.
    pub(super) fn apply(&self, request: &Request, declared: &Session) -> Result<Outgoing, Fault> {
        let mut outgoing = Outgoing::of(request);
        let values = template::Values {
            secrets: &self.credential,
            captures: &self.captures,
            settings: &self.settings,
        };
        for apply in &declared.apply {
            if !apply.methods.is_empty()
                && !apply.methods.iter().any(|method| method == request.method.as_str())
            {
                continue;
            }
            match &apply.to {
                ApplyTo::Basic(username) => {
                    let pair = (values.text(username)?, values.text(&apply.value)?);
                    credentials::basic(&mut outgoing, &pair.0, &pair.1)?;
                }
                ApplyTo::Header(name) => {
                    credentials::header(&mut outgoing, name, &values.text(&apply.value)?)?;
                }
                ApplyTo::Cookie(name) => outgoing.cookies.push((name.clone(), values.cookie(&apply.value)?)),
                ApplyTo::Query(name) => outgoing.query.push((name.clone(), values.text(&apply.value)?)),
                ApplyTo::FormField(name) => {
                    credentials::form_field(&mut outgoing, name, &values.text(&apply.value)?)?;
                }
                ApplyTo::JsonPointer(pointer) => {
                    credentials::json_pointer(&mut outgoing, pointer, &values.json_text(&apply.value)?)?;
                }
            }
        }
        if declared.cookie_jar {
            outgoing.cookies.extend(self.jar().iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(outgoing)
    }

    /// Takes over cookies that an answer sets.
    pub(super) fn keep_cookies(&self, declared: &Session, answer: &Answer) {
        if declared.cookie_jar {
            take_cookies(&mut self.jar(), answer);
        }
    }

    pub(super) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.secrets.clone();
        secrets.extend(self.jar().values().map(|value| Secret::new(value.as_str())));
        secrets
    }

    fn jar(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cookies by name and value; paths and times do not matter between one host and one session.
fn take_cookies(jar: &mut BTreeMap<String, String>, answer: &Answer) {
    for (_, value) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
        let Ok(text) = std::str::from_utf8(value) else { continue };
        let pair = text.split(';').next().unwrap_or_default();
        let Some((name, value)) = pair.split_once('=') else { continue };
        let gone =
            text.split(';').skip(1).any(|attribute| attribute.trim().eq_ignore_ascii_case("max-age=0"));
        if gone || value.trim().is_empty() {
            jar.remove(name.trim());
        } else if pair.len() <= COOKIE_BYTES_MAX && (jar.len() < COOKIES_MAX || jar.contains_key(name.trim()))
        {
            jar.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
}

/// The session of this name, as the manifest declares it.
pub(super) fn declared<'m>(manifest: &'m Manifest, name: &str) -> Result<&'m Session, Fault> {
    manifest.auth.get(name).ok_or_else(|| {
        super::request::denied(
            "session",
            format!("session '{name}' is not declared in the manifest's 'auth'"),
        )
    })
}

impl Outbound {
    pub(super) fn declared(&self, name: &str) -> Result<&Session, Fault> {
        declared(&self.facts.manifest, name)
    }

    fn key(&self, name: &str) -> Key {
        Key {
            org: self.target.org_id,
            controller: self.target.controller_id,
            credential: self.target.credential_id,
            credential_version: self.target.credential_version,
            component: self.facts.sha256.clone(),
            name: name.to_owned(),
            class: if self.phase == Phase::Write { Class::Write } else { Class::Read },
        }
    }

    /// The open session of this name; logs in when there is none.
    pub(super) async fn session(&self, name: &str) -> Result<Arc<Live>, Fault> {
        let declared = self.declared(name)?;
        let slot = self.egress.sessions.slot(self.key(name));
        // Held while logging in: a caller that comes meanwhile waits for the same session.
        let mut live = slot.lock().await;
        if let Some(open) = live.as_ref().filter(|open| open.until > Instant::now()) {
            return Ok(Arc::clone(open));
        }
        *live = None;
        let open = self.open_session(name, declared).await?;
        *live = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Returns another session than `old`, which the device no longer accepts.
    pub(super) async fn renew(&self, name: &str, old: &Arc<Live>) -> Result<Arc<Live>, Fault> {
        {
            let slot = self.egress.sessions.slot(self.key(name));
            let mut live = slot.lock().await;
            if live.as_ref().is_some_and(|open| Arc::ptr_eq(open, old)) {
                *live = None;
            }
        }
        self.session(name).await
    }

    /// Ends a session, at the device too where the manifest says how.
    pub(crate) async fn reset_session(&self, name: &str) {
        let Ok(declared) = self.declared(name) else { return };
        // Logging in and out is work for the device; it counts like a request.
        if super::budget::take(&mut self.ledger(), self.facts.bounds.requests).is_err() {
            return;
        }
        let slot = self.egress.sessions.slot(self.key(name));
        let open = slot.lock().await.take();
        if let (Some(open), Some(logout)) = (open, &declared.logout) {
            self.log_out(name, &open, declared, logout).await;
        }
    }

    async fn open_session(&self, name: &str, declared: &Session) -> Result<Arc<Live>, Fault> {
        let key = (self.target.controller_id, self.target.credential_id, self.target.credential_version);
        let now = self.egress.clock.now();
        if let Some((_, Some(until))) = self.egress.sessions.refusals().get(&key)
            && *until > now
        {
            return Err(Fault::new(
                FaultKind::Authentication,
                "the device refused this credential repeatedly; no login is tried for 5 minutes, so that it does not lock the account",
            )
            .with_code("credential-suspended"));
        }
        let outcome = self.log_in(name, declared).await;
        let mut refusals = self.egress.sessions.refusals();
        match &outcome {
            Ok(_) => {
                refusals.remove(&key);
            }
            Err(fault) if fault.code.as_deref() == Some(login::REFUSED) => {
                let (count, until) = refusals.entry(key).or_default();
                *count += 1;
                tracing::info!(session = name, controller.id = %self.target.controller_id, refusals = *count, "the device refused the credential");
                if *count >= REFUSALS_MAX {
                    *until = Some(now + SUSPENDED);
                    *count = 0;
                }
            }
            Err(_) => {}
        }
        outcome
    }
}
