//! An open session: what its requests carry, and what its answers change of that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heddle_core::Timestamp;
use heddle_core::fault::Fault;
use heddle_core::secret::Secret;
use heddle_marketplace::manifest::{Apply, ApplyTo, Renewal, Session};
use serde_json::Value;

use super::lifetime::Times;
use super::template;
use crate::egress::credentials;
use crate::egress::request::Request;
use crate::egress::wire::{Answer, Outgoing};

/// Cookies that a session keeps, as a browser would (RFC 6265 section 6.1); what a device sets beyond is dropped.
const COOKIES_MAX: usize = 50;
const COOKIE_BYTES_MAX: usize = 4_096;
/// Replaced values that are still taken out of answers: a request that is under way may carry one.
const REPLACED_KEPT: usize = 16;

/// An open session.
///
/// What is captured and the cookies belong to the session with all its renewals: a request that began before a renewal and
/// is answered behind it replaces them, too.
pub(in crate::egress) struct Live {
    pub(super) captures: Arc<Mutex<Captures>>,
    pub(in crate::egress) exposed: Vec<(String, String)>,
    /// Captures that the manifest exposes and this login did not, with the reason.
    pub(super) withheld: Vec<(String, &'static str)>,
    pub(super) cookies: Arc<Mutex<BTreeMap<String, String>>>,
    pub(super) settings: Value,
    /// The fields of the credential, for what every request carries of it.
    pub(super) credential: Vec<(String, Secret)>,
    /// What of the credential must not come back in answers.
    pub(super) secrets: Vec<Secret>,
    pub(super) times: Times,
    /// Until when it is not renewed, because that did not work.
    pub(super) rests_until: Mutex<Option<Timestamp>>,
}

/// What the login captured, as it was replaced since.
#[derive(Debug, Clone, Default)]
pub(super) struct Captures {
    pub(super) values: BTreeMap<String, Secret>,
    /// Values that were replaced, the latest last.
    replaced: VecDeque<Secret>,
}

impl Captures {
    pub(super) fn of(values: BTreeMap<String, Secret>) -> Self {
        Self { values, replaced: VecDeque::new() }
    }

    pub(super) fn replace(&mut self, name: String, value: Secret) {
        if self.values.get(&name) == Some(&value) {
            return;
        }
        let Some(before) = self.values.insert(name, value) else { return };
        if self.replaced.len() == REPLACED_KEPT {
            self.replaced.pop_front();
        }
        self.replaced.push_back(before);
    }
}

impl Live {
    pub(super) fn is_good(&self, now: Timestamp) -> bool {
        self.times.until > now
    }

    /// Whether the session is old enough to be renewed, and may be.
    pub(super) fn asks_for(&self, renewal: &Renewal, now: Timestamp) -> bool {
        let rests_until = *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        rests_until.is_none_or(|until| until <= now) && self.times.asks_for(renewal, now)
    }

    /// Has the session not renewed before this time.
    pub(super) fn rest(&self, until: Timestamp) {
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// The request with the session in it.
    pub(in crate::egress) fn apply(&self, request: &Request, declared: &Session) -> Result<Outgoing, Fault> {
        self.apply_as(request, declared, &declared.apply)
    }

    /// The request with the session in it, in these places.
    pub(in crate::egress) fn apply_as(
        &self,
        request: &Request,
        declared: &Session,
        places: &[Apply],
    ) -> Result<Outgoing, Fault> {
        let mut outgoing = Outgoing::of(request);
        let captures = self.captures();
        let values = template::Values {
            secrets: &self.credential,
            captures: &captures.values,
            settings: &self.settings,
        };
        for apply in places {
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
    pub(in crate::egress) fn keep_cookies(&self, declared: &Session, answer: &Answer) {
        if declared.cookie_jar {
            take_cookies(&mut self.jar(), answer);
        }
    }

    /// Replaces captured values; of two answers, the later one counts. A request that is under way keeps its own.
    pub(in crate::egress) fn replace(&self, values: &[(String, Secret)]) {
        let mut captures = self.captures();
        for (name, value) in values {
            captures.replace(name.clone(), value.clone());
        }
    }

    /// What must not come back in answers.
    pub(in crate::egress) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.secrets.clone();
        secrets.extend(self.jar().values().map(|value| Secret::new(value.as_str())));
        let captures = self.captures();
        let is_hidden = |name: &str| self.exposed.iter().all(|(exposed, _)| exposed != name);
        let hidden = captures.values.iter().filter(|(name, _)| is_hidden(name)).map(|(_, value)| value);
        secrets.extend(hidden.chain(&captures.replaced).cloned());
        secrets
    }

    pub(super) fn captures(&self) -> MutexGuard<'_, Captures> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn jar(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cookies by name and value; paths and times do not matter between one host and one session.
pub(super) fn take_cookies(jar: &mut BTreeMap<String, String>, answer: &Answer) {
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
