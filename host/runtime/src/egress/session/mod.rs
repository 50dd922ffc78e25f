//! Sessions that the host opens, keeps and renews as a manifest declares it.
//!
//! Components never see what a login captured, except what is marked `expose`.

mod expose;
mod gaps;
mod lifetime;
mod live;
mod login;
mod matcher;
mod places;
mod renewal;
mod template;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{ControllerId, CredentialId, Timestamp};
use heddle_marketplace::manifest::{Manifest, Session};
pub(super) use live::Live;
pub(super) use login::when_holds;
pub(super) use matcher::{Expiry, expired, fits, json};
pub(super) use places::replacing;
use tokio::sync::OwnedMutexGuard;

use super::connect::Owner;
use super::{Outbound, budget};
use crate::egress::phase::Phase;

const REFUSALS_MAX: u32 = 3;
const SUSPENDED: TimeDelta = TimeDelta::minutes(5);
const SESSIONS_KEPT: usize = 4_096;

/// Writes have a session of their own: a provisional change can belong to the
/// session that made it, and readers must not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Read,
    Write,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    owner: Owner,
    component: String,
    name: String,
    class: Class,
}

type Slot = Arc<tokio::sync::Mutex<Option<Arc<Live>>>>;

#[derive(Default)]
pub(super) struct Sessions {
    slots: Mutex<HashMap<Key, Slot>>,
    /// Refused logins in a row, and since when no more are tried.
    refusals: Mutex<HashMap<(ControllerId, CredentialId, i64), (u32, Option<Timestamp>)>>,
    gaps: gaps::Gaps,
}

impl Sessions {
    fn slot(&self, key: Key, now: Timestamp) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() > SESSIONS_KEPT {
            slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1
                    || slot.try_lock().is_ok_and(|live| live.as_ref().is_some_and(|open| open.is_good(now)))
            });
        }
        Arc::clone(slots.entry(key).or_default())
    }

    /// Calls that run keep theirs.
    pub(super) fn forget_writes(&self, controller: ControllerId) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|key, _| key.owner.controller != controller || key.class != Class::Write);
    }

    fn refusals(
        &self,
    ) -> MutexGuard<'_, HashMap<(ControllerId, CredentialId, i64), (u32, Option<Timestamp>)>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
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
            owner: Owner::of(&self.target),
            component: self.facts.sha256.clone(),
            name: name.to_owned(),
            class: if self.phase == Phase::Write { Class::Write } else { Class::Read },
        }
    }

    /// The place of the session of this name, once no other call is logging in there.
    async fn locked(&self, name: &str) -> Result<OwnedMutexGuard<Option<Arc<Live>>>, Fault> {
        let slot: Slot = self.egress.sessions.slot(self.key(name), self.egress.clock.now());
        let time = budget::time_left(self.deadline, None)?;
        tokio::time::timeout(time, slot.lock_owned()).await.map_err(|_elapsed| {
            Fault::new(FaultKind::Busy, "another call is still logging in at the controller")
                .with_code("login-under-way")
        })
    }

    /// The open session of this name; logs in when there is none, and renews it when it is old enough. One that is still
    /// good and can neither be renewed nor opened anew is used on.
    ///
    /// Between the calls of a stage it is not renewed: what they did may belong to the session as it is.
    pub(super) async fn session(&self, name: &str, follows: bool) -> Result<Arc<Live>, Fault> {
        let declared = self.declared(name)?;
        // Held while logging in: a caller that comes meanwhile waits for the same session.
        let mut live = self.locked(name).await?;
        let now = self.egress.clock.now();
        let good = live.as_ref().filter(|open| open.is_good(now)).map(Arc::clone);
        let Some(good) = good else {
            *live = None;
            return Ok(Arc::clone(live.insert(self.open_session(name, declared).await?)));
        };
        let renewal = declared.renew.as_ref().filter(|renewal| !follows && good.asks_for(renewal, now));
        let Some(renewal) = renewal else { return Ok(good) };
        let renewed = match self.prolong(name, (declared, renewal), &good).await {
            Ok(renewed) => renewed,
            Err(fault) => {
                tracing::info!(
                    component = self.facts.manifest.id,
                    controller.id = %self.target.controller_id,
                    session = name,
                    "the session was not renewed, and is opened anew: {fault}"
                );
                match self.open_session(name, declared).await {
                    Ok(opened) => opened,
                    Err(fault) => {
                        good.rest(now + renewal::PAUSE);
                        tracing::warn!(
                            component = self.facts.manifest.id,
                            controller.id = %self.target.controller_id,
                            session = name,
                            "the session was not opened anew, and is used as it is: {fault}"
                        );
                        return Ok(good);
                    }
                }
            }
        };
        Ok(Arc::clone(live.insert(renewed)))
    }

    /// Returns another session than `old`, which the device no longer accepts.
    pub(super) async fn replace_session(&self, name: &str, old: &Arc<Live>) -> Result<Arc<Live>, Fault> {
        let mut live = self.locked(name).await?;
        if live.as_ref().is_some_and(|open| Arc::ptr_eq(open, old)) {
            *live = None;
        }
        drop(live);
        self.session(name, false).await
    }

    /// Ends a session, at the device too where the manifest says how.
    pub(crate) async fn reset_session(&self, name: &str) {
        let Ok(declared) = self.declared(name) else { return };
        // Logging in and out is work for the device; it counts like a request.
        if budget::take(&mut self.ledger(), self.facts.bounds.requests).is_err() {
            return;
        }
        let Ok(mut live) = self.locked(name).await else { return };
        let open = live.take();
        drop(live);
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
        if let Some(gap) = declared.login_gap_ms {
            let (time, at) = (budget::time_left(self.deadline, None)?, (key.0, key.1));
            self.egress.sessions.gaps.keep(at, Duration::from_millis(u64::from(gap)), time).await?;
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
