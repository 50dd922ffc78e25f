//! The one place that opens connections for guests.
//!
//! [`Outbound::send`] holds the order of checks; each check is a file of its
//! own. Nothing here knows a vendor: what is special stands in manifests.

pub(crate) mod address;
mod body;
mod budget;
mod connect;
mod credentials;
mod decoded;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod file_tests;
pub(crate) mod headers;
pub(crate) mod held;
pub(crate) mod holes;
mod interfaces;
mod kept;
mod lanes;
mod ledger;
mod outward;
pub(crate) mod own;
mod path;
pub(crate) mod phase;
pub(crate) mod references;
pub(crate) mod request;
pub(crate) mod scrub;
mod session;
#[cfg(test)]
mod session_tests;
mod substitute;
#[cfg(test)]
mod tests;
mod tls;
#[cfg(test)]
mod tls_tests;
mod wire;
pub(crate) mod witness;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use heddle_core::change::{Hole, HoleSource, HoleValues, NativeCall};
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_core::{Clock, ControllerId};
use heddle_marketplace::manifest::{CaptureFrom, Manifest, Session};
use ledger::Ledger;
use phase::Phase;
use references::{Content, SecretFields};
use request::{Auth, Request, Response, denied};
use serde_json::Value;
use session::Live;
use wire::Outgoing;
use witness::{Exchange, Witness};

use crate::apart::Apart;
use crate::api::{Credential, FileSink, Filling, KeptFile, SecretBook, Target, Urgency, Vault};
use crate::description::Bindings;
use crate::limits::{Bounds, FILE_START_MAX};

/// What a component is, as far as its requests are concerned.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) manifest: Manifest,
    pub(crate) bounds: Bounds,
    pub(crate) secret_fields: SecretFields,
    /// SHA-256 of the component, hex.
    pub(crate) sha256: String,
    pub(crate) bindings: Bindings,
}

impl Facts {
    pub(crate) fn new(manifest: Manifest, sha256: String, bindings: Bindings) -> Self {
        let bounds = Bounds::of(&manifest.limits);
        let secret_fields = SecretFields::of(&manifest.secret_fields);
        Self { manifest, bounds, secret_fields, sha256, bindings }
    }

    /// The fields of a credential that must not be seen in an answer.
    fn hidden(&self, credential: &Credential) -> Vec<Secret> {
        let hidden = credential.fields.iter().filter(|(name, _)| self.manifest.hides_field(name));
        hidden.map(|(_, secret)| secret.clone()).collect()
    }
}

/// Connections, sessions and lanes, shared by all calls.
pub(crate) struct Egress {
    pub(crate) vault: Arc<dyn Vault>,
    clock: Clock,
    rules: address::Rules,
    connections: connect::Connections,
    sessions: session::Sessions,
    lanes: lanes::Lanes,
    rooms: held::Rooms,
    apart: Arc<Apart>,
    pub(crate) witness: OnceLock<Arc<dyn Witness>>,
}

impl Egress {
    pub(crate) fn reconnect(&self, controller: ControllerId) {
        self.connections.forget(controller);
    }

    pub(crate) fn forget_write_session(&self, controller: ControllerId) {
        self.sessions.forget_writes(controller);
    }

    pub(crate) fn new(vault: Arc<dyn Vault>, apart: Arc<Apart>, clock: Clock, rules: address::Rules) -> Self {
        Self {
            vault,
            clock,
            rules,
            connections: connect::Connections::default(),
            sessions: session::Sessions::default(),
            lanes: lanes::Lanes::default(),
            rooms: held::Rooms::default(),
            apart,
            witness: OnceLock::new(),
        }
    }
}

/// The requests of one call.
pub(crate) struct Outbound {
    pub(crate) egress: Arc<Egress>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) target: Target,
    pub(crate) phase: Phase,
    pub(crate) deadline: Instant,
    urgency: Urgency,
    room: held::Room,
    /// Where a file goes, in a call that may keep one.
    pub(crate) sink: Option<Arc<dyn FileSink>>,
    ledger: Mutex<Ledger>,
}

/// An answer, and what was learned from its body.
struct Read {
    answer: wire::Answer,
    content: Result<Content, Fault>,
    verdict: session::Expiry,
    /// Values of the session that the answer replaces.
    replacing: Vec<(String, Secret)>,
}

/// What a request is for. `follows` says whether calls of the stage left before: a session that ended since may have
/// held what they did, and is not opened again.
#[derive(Clone, Copy)]
enum Purpose<'a> {
    /// A component reads.
    Read,
    /// A component reads what the host keeps as a file.
    Save,
    /// The host reads what fills a hole of a reviewed call.
    FreshRead { follows: bool },
    /// A reviewed call.
    Write { filling: &'a Filling, follows: bool },
}

impl Purpose<'_> {
    fn is_write(self) -> bool {
        matches!(self, Purpose::Write { .. })
    }

    fn follows(self) -> bool {
        match self {
            Purpose::Read | Purpose::Save => false,
            Purpose::FreshRead { follows } | Purpose::Write { follows, .. } => follows,
        }
    }
}

/// A request that passed every check, and what is needed to send it.
struct Cleared {
    request: Request,
    is_write: bool,
    /// Calls of its stage left before.
    follows: bool,
    client: connect::Route,
    timeout: Duration,
    limit: usize,
    /// Secrets that were filled into the body: an error of the device may quote them.
    filled: Vec<Secret>,
    /// Takes the body of a good answer, where that is a file.
    sink: Option<Arc<dyn FileSink>>,
}

impl Cleared {
    /// What must not come back in the answer: the session's secrets, and those that were filled in.
    fn and(&self, mut secrets: Vec<Secret>) -> Vec<Secret> {
        secrets.extend(self.filled.iter().cloned());
        secrets
    }
}

impl Outbound {
    pub(crate) fn new(
        egress: Arc<Egress>,
        facts: Arc<Facts>,
        target: Target,
        phase: Phase,
        deadline: Instant,
        urgency: Urgency,
    ) -> Self {
        let room = egress.rooms.room(target.org_id, urgency == Urgency::UnderWay);
        Self { egress, facts, target, phase, deadline, urgency, room, sink: None, ledger: Mutex::default() }
    }

    /// Bytes that the device answered so far.
    pub(crate) fn answered(&self) -> usize {
        self.room.taken()
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one request of a component through every check, in the order that matters.
    pub(crate) async fn send(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        let shown = self.egress.witness.get().map(|_| Exchange::of(&request));
        let answer = self.counted(self.steps(request, auth, Purpose::Read)).await;
        self.show(shown, &answer);
        answer
    }

    /// Sends one read of a component whose answer is kept as a file, through the same checks.
    pub(crate) async fn save(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        let shown = self.egress.witness.get().map(|_| Exchange::of(&request));
        // What was kept before is overwritten from here on, whatever comes.
        self.ledger().kept = None;
        let answer = self.counted(self.steps(request, auth, Purpose::Save)).await;
        self.show(shown, &answer);
        let answer = answer?;
        if let Some(kept) = &answer.kept {
            self.ledger().kept = Some(kept.clone());
        }
        Ok(answer)
    }

    /// Takes the file that the call kept last.
    pub(crate) fn kept(&self) -> Option<KeptFile> {
        self.ledger().kept.take()
    }

    /// Shows an exchange to the witness, where there is one.
    fn show(&self, shown: Option<Exchange>, answer: &Result<Response, Fault>) {
        if let (Some(witness), Some(shown)) = (self.egress.witness.get(), shown) {
            witness.exchanged(shown.answered(answer));
        }
    }

    /// Sends one reviewed call of a plan through the same checks; `follows` says whether calls of its stage left
    /// before.
    pub(crate) async fn write(
        &self,
        call: &NativeCall,
        filling: &Filling,
        follows: bool,
    ) -> Result<Response, Fault> {
        let steps = async {
            let values = self.hole_values(call, filling, follows).await?;
            let (mut request, auth) = Request::of(&holes::fill(call, &values, filling)?)?;
            request.attach(&filling.files)?;
            let shown = match self.egress.witness.get() {
                Some(_) => Some(Exchange::of_call(&holes::fill(call, &values, &holes::Unchanged)?)),
                None => None,
            };
            let answer = self.steps(request, &auth, Purpose::Write { filling, follows }).await;
            self.show(shown, &answer);
            answer
        };
        self.counted(steps).await
    }

    /// The values of the holes that a reviewed call has.
    async fn hole_values(
        &self,
        call: &NativeCall,
        filling: &Filling,
        follows: bool,
    ) -> Result<HoleValues, Fault> {
        let (mut values, mut read) = (HoleValues::new(), BTreeMap::new());
        for name in holes::of_call(call) {
            let Some(hole) = filling.holes.iter().find(|hole| hole.name == name) else { continue };
            let value = match &hole.source {
                HoleSource::Fresh { path, pointer } => {
                    if !read.contains_key(path) {
                        read.insert(path.clone(), self.fresh(hole, path, call, follows).await?);
                    }
                    holes::pick(hole, pointer, &read[path]).map_err(|why| holes::unfilled(hole, &why))?
                }
                HoleSource::Answer { .. } | HoleSource::Found => match filling.values.get(&name) {
                    Some(value) => value.clone(),
                    None => return Err(holes::unfilled(hole, "it was not found")),
                },
            };
            values.insert(name, value);
        }
        Ok(values)
    }

    /// What the device has at a path now, read in the session that the call is sent in.
    async fn fresh(&self, hole: &Hole, path: &str, call: &NativeCall, follows: bool) -> Result<Value, Fault> {
        let auth = call.session.clone().map_or(Auth::None, Auth::Session);
        let request = Request::get(path);
        let shown = self.egress.witness.get().map(|_| Exchange::of(&request));
        let answer = self.steps(request, &auth, Purpose::FreshRead { follows }).await;
        self.show(shown, &answer);
        let answer = answer?;
        if !(200..300).contains(&answer.status) {
            let mut fault = holes::unfilled(hole, &format!("the device answered status {}", answer.status));
            if matches!(answer.status, 429 | 502..=504) {
                fault.kind = FaultKind::NotReady;
            }
            fault.upstream_status = Some(answer.status);
            return Err(fault);
        }
        holes::readable(&answer.body).map_err(|why| holes::unfilled(hole, &why))
    }

    /// Refuses a planned call that could not be sent, or that a component could send without a review.
    pub(crate) fn check_planned(facts: &Facts, call: &NativeCall) -> Result<(), Fault> {
        substitute::check_places(call)?;
        let call = &holes::with_samples(call)?;
        let (request, auth) = Request::of(call)?;
        path::check(&request.path)?;
        headers::check(&request.headers, &facts.manifest, &auth)?;
        body::check(&request, facts.bounds.request_bytes)?;
        if let Auth::Session(name) = &auth {
            session::declared(&facts.manifest, name)?;
        }
        match phase::read_rule(&facts.manifest.reads, &request) {
            None => Ok(()),
            Some(rule) => Err(denied(
                "plan-is-read",
                format!(
                    "{} {} fits reads[{rule}]: it could be sent without a review",
                    call.method, call.path
                ),
            )),
        }
    }

    async fn counted(&self, steps: impl Future<Output = Result<Response, Fault>>) -> Result<Response, Fault> {
        let answer = steps.await;
        if answer.as_ref().is_err_and(|fault| fault.code.as_deref() == Some(held::OVERLOAD)) {
            self.ledger().overloaded = true;
        }
        if let Err(fault) = &answer
            && fault.kind == FaultKind::Denied
        {
            // Where an address leads is not the component's choice.
            if fault.code.as_deref() != Some("address") {
                self.ledger().denied += 1;
            }
            tracing::warn!(
                component = self.facts.manifest.id,
                controller.id = %self.target.controller_id,
                code = fault.code,
                "request of a component was refused: {}", fault.message
            );
        }
        answer
    }

    async fn steps(&self, request: Request, auth: &Auth, purpose: Purpose<'_>) -> Result<Response, Fault> {
        let bounds = &self.facts.bounds;
        // 1. Budget.
        budget::take(&mut self.ledger(), bounds.requests)?;
        let (is_save, sink) = (matches!(purpose, Purpose::Save), self.sink.clone());
        if is_save && sink.is_none() {
            return Err(denied("no-file", "only 'files.fetch' may keep an answer as a file"));
        }
        let asked = request.timeout.filter(|_| !is_save);
        let timeout = budget::time_left(self.deadline, asked)?;
        // The time for a file is not the time to wait for others.
        let patience = if is_save { timeout.min(FILE_START_MAX) } else { timeout };
        let lane = self.egress.lanes.lane(&self.target, bounds.parallel);
        let _turn = lane.enter(patience, self.urgency).await?;
        // 2. What this phase may send.
        if !purpose.is_write() {
            phase::check(self.phase, &self.facts.manifest.reads, &request)?;
        }
        // 3. and 4. Path and headers.
        path::check(&request.path)?;
        headers::check(&request.headers, &self.facts.manifest, auth)?;
        body::check(&request, bounds.request_bytes)?;
        // 5. and 6. Addresses, and a connection to exactly those.
        let client = self.route().await?;
        let _paced = lane.pace(self.facts.manifest.pace.as_ref(), purpose.is_write(), patience).await?;
        let timeout = budget::time_left(self.deadline, asked)?;
        let limit = request
            .max_response
            .and_then(|n| (n > 0).then_some(n))
            .unwrap_or(usize::MAX)
            .min(bounds.response_bytes);
        // 7. to 10.
        let filled = match purpose {
            Purpose::Write { filling, .. } => filling.secrets.entries.values().cloned().collect(),
            Purpose::Read | Purpose::Save | Purpose::FreshRead { .. } => Vec::new(),
        };
        let (is_write, follows) = (purpose.is_write(), purpose.follows());
        let sink = sink.filter(|_| is_save);
        self.exchange(Cleared { request, is_write, follows, client, timeout, limit, filled, sink }, auth)
            .await
    }

    /// A connection for a request of a login, which keeps the controller's pace like any other.
    async fn login_route(&self) -> Result<(connect::Route, Option<lanes::Paced>), Fault> {
        let route = self.route().await?;
        let lane = self.egress.lanes.lane(&self.target, self.facts.bounds.parallel);
        let time = budget::time_left(self.deadline, None)?;
        let paced = lane.pace(self.facts.manifest.pace.as_ref(), false, time).await?;
        Ok((route, paced))
    }

    async fn route(&self) -> Result<connect::Route, Fault> {
        let addresses = address::resolve(&self.target.url, &self.egress.rules).await?;
        self.egress.connections.route(&self.target, addresses)
    }

    async fn exchange(&self, cleared: Cleared, auth: &Auth) -> Result<Response, Fault> {
        if let Auth::Session(name) = auth {
            self.exchange_in_session(cleared, name).await
        } else {
            let credential = match auth {
                // For the answer: the device may repeat what an earlier request told it.
                Auth::None => self.credential().await.unwrap_or_default(),
                _ => self.credential().await?,
            };
            let mut outgoing = Outgoing::of(&cleared.request);
            credentials::place(&mut outgoing, auth, &credential)?;
            let secrets = cleared.and(self.facts.hidden(&credential));
            let answer = self.hand_over(&cleared, outgoing).await?;
            let read = self.read(answer, None, cleared.is_write).await?;
            self.present(read, secrets, None).await
        }
    }

    /// Sends in a session, and keeps what the answer changes of it.
    async fn ask(&self, cleared: &Cleared, name: &str, session: &Live) -> Result<Read, Fault> {
        let declared = self.declared(name)?;
        let answer = self.hand_over(cleared, session.apply(&cleared.request, declared)?).await?;
        session.keep_cookies(declared, &answer);
        let read = self.read(answer, Some(name), cleared.is_write).await?;
        session.replace(&read.replacing);
        Ok(read)
    }

    async fn exchange_in_session(&self, cleared: Cleared, name: &str) -> Result<Response, Fault> {
        let session = self.session(name, cleared.follows).await?;
        let declared = self.declared(name)?;
        let read = self.ask(&cleared, name, &session).await?;
        let verdict = read.verdict;
        if verdict == session::Expiry::Alive {
            return self.present(read, cleared.and(session.secrets()), Some(name)).await;
        }
        if cleared.follows {
            return Err(Fault::new(
                FaultKind::Authentication,
                "the session ended after a call of the plan was sent; it is not opened again in the same stage",
            )
            .with_code("session-lost")
            .with_effect(Effect::Possible));
        }
        let repeatable =
            !cleared.is_write || (declared.expired_before_effect && verdict == session::Expiry::Expired);
        if !repeatable || !self.ledger().renewed.insert(name.to_owned()) {
            // A right that is missing looks the same; the component must tell.
            return self.present(read, cleared.and(session.secrets()), Some(name)).await;
        }
        drop(read);
        if cleared.is_write {
            // The refused write was not carried out: the manifest says so.
            self.ledger().left = false;
        }
        let fresh = self.replace_session(name, &session).await?;
        let read = self.ask(&cleared, name, &fresh).await?;
        self.present(read, cleared.and(fresh.secrets()), Some(name)).await
    }

    /// Sends, and keeps the books of what left.
    async fn hand_over(&self, cleared: &Cleared, outgoing: Outgoing) -> Result<wire::Answer, Fault> {
        let timeout = budget::time_left(self.deadline, Some(cleared.timeout))?;
        let write = cleared.is_write;
        if write {
            // Until the answer is there: the call may be cancelled meanwhile.
            self.ledger().left = true;
        }
        let room = (cleared.limit, &self.room);
        let answer = match &cleared.sink {
            Some(sink) => kept::exchange(&cleared.client, outgoing, timeout, room, sink.as_ref()).await,
            None => wire::exchange(&cleared.client, outgoing, timeout, room, write).await,
        };
        if answer.as_ref().is_err_and(|fault| fault.effect == Effect::None) {
            self.ledger().left = false;
        }
        answer
    }

    /// Parses an answer, where anything asks what is in it, and sees whether it says that the session is gone.
    async fn read(&self, answer: wire::Answer, session: Option<&str>, write: bool) -> Result<Read, Fault> {
        let (bytes, facts, session) =
            (answer.body.len(), Arc::clone(&self.facts), session.map(str::to_owned));
        let read = move || {
            let session = session.and_then(|name| facts.manifest.auth.get(&name));
            let asks = |session: &Session| {
                session.expired.iter().any(|matcher| !matcher.json.is_empty())
                    || session.refresh.iter().any(|refresh| matches!(refresh.from, CaptureFrom::Json(_)))
            };
            let content = if session.is_some_and(asks) || !facts.secret_fields.is_empty() {
                Content::of(&answer.body)
            } else {
                Ok(Content::Unread)
            };
            let body = content.as_ref().ok().and_then(Content::json);
            let verdict = session
                .map_or(session::Expiry::Alive, |session| session::expired(session, &answer, body, write));
            let replacing = session
                .map(|session| session::replacing(&session.refresh, &answer, body))
                .unwrap_or_default();
            Ok(Read { answer, content, verdict, replacing })
        };
        self.apart(bytes, read).await
    }

    /// Takes out of an answer what the guest must not see; `session` names the session that it came in.
    async fn present(
        &self,
        read: Read,
        mut secrets: Vec<Secret>,
        session: Option<&str>,
    ) -> Result<Response, Fault> {
        let key = self.egress.vault.reference_key(self.target.controller_id);
        let (bytes, facts) = (read.answer.body.len(), Arc::clone(&self.facts));
        let (controller, session) = (self.target.controller_id, session.map(str::to_owned));
        let present = move || {
            let Read { answer, content, replacing, .. } = read;
            // Another answer may have replaced them again meanwhile.
            secrets.extend(replacing.into_iter().map(|(_, value)| value));
            let session = session.and_then(|name| facts.manifest.auth.get(&name));
            let kind = answer.header("content-type").map(str::to_owned);
            let mut seen = SecretBook::default();
            let body = references::replace(
                answer.body,
                content?,
                (answer.status, kind.as_deref()),
                &facts.secret_fields,
                &key,
                &mut seen,
            )?;
            let mut response = Response {
                status: answer.status,
                reason: answer.reason,
                headers: answer.headers,
                body,
                elapsed: answer.elapsed,
                held: answer.held,
                kept: answer.kept,
            };
            response.headers.retain(|(name, _)| headers::reaches_guest(name, session));
            let echoes = scrub::response(&mut response, &secrets);
            if echoes > 0 {
                tracing::warn!(controller.id = %controller, echoes, "the device sent a secret back; it was taken out");
            }
            Ok((response, seen))
        };
        let (response, seen) = self.apart(bytes, present).await?;
        self.ledger().seen.entries.extend(seen.entries);
        Ok(response)
    }

    /// Does work on an answer of so many bytes, away from the guests' threads where they are many.
    async fn apart<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.egress.apart.run(self.target.org_id, bytes, work).await.unwrap_or_else(|error| {
            tracing::error!(controller.id = %self.target.controller_id, error = %error, "an answer could not be worked on");
            Err(Fault::new(FaultKind::Generic, "the answer could not be worked on").with_effect(Effect::Possible))
        })
    }

    /// The credential, decrypted just before it is used.
    async fn credential(&self) -> Result<Credential, Fault> {
        self.egress.vault.credential(self.target.org_id, self.target.credential_id).await.map_err(|error| {
            tracing::error!(credential.id = %self.target.credential_id, reason = %error, "credential cannot be read");
            Fault::new(FaultKind::Authentication, "the controller's credential cannot be read").with_code("credential-unreadable")
        })
    }

    /// Names of the credential's secrets.
    pub(crate) async fn secret_names(&self) -> Result<Vec<String>, Fault> {
        Ok(self.credential().await?.fields.into_iter().map(|(name, _)| name).collect())
    }

    /// What a login exposed to the component.
    pub(crate) async fn session_facts(&self, name: &str) -> Result<Vec<(String, String)>, Fault> {
        let session: Arc<Live> = self.session(name, false).await?;
        if let Some(witness) = self.egress.witness.get() {
            witness.exposed(name, &session.exposed);
        }
        Ok(session.exposed.clone())
    }
}
