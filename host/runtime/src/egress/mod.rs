//! The one place that opens connections for guests.
//!
//! [`Outbound::send`] holds the order of checks; each check is a file of its
//! own. Nothing here knows a vendor: what is special stands in manifests.

mod account;
pub(crate) mod address;
mod body;
mod budget;
mod connect;
mod credentials;
pub(crate) mod declared;
#[cfg(test)]
mod declared_tests;
mod decoded;
mod exchange;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod file_tests;
pub(crate) mod headers;
pub(crate) mod held;
pub(crate) mod holes;
pub(crate) mod interfaces;
mod kept;
mod lanes;
mod ledger;
mod outward;
pub(crate) mod own;
mod path;
pub(crate) mod phase;
mod planned;
pub(crate) mod push;
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

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

pub(crate) use account::Account;
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::secret::Secret;
use heddle_core::{Clock, ControllerId, OrgId};
use heddle_marketplace::manifest::Manifest;
use ledger::Ledger;
use phase::Phase;
use references::{Content, SecretFields};
use request::{Auth, Request, Response, denied};
use session::Live;
use witness::{Exchange, Witness};

use crate::apart::Apart;
use crate::api::{Credential, FileSink, Filling, KeptFile, Target, Urgency, Vault};
use crate::description::Bindings;
use crate::limits::{Bounds, FILE_START_MAX};

/// The name of an adapter's only target.
pub(crate) const CONTROLLER: &str = "controller";

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
    channels: Arc<push::places::Places>,
    pub(crate) apart: Arc<Apart>,
    pub(crate) witness: OnceLock<Arc<dyn Witness>>,
}

impl Egress {
    pub(crate) fn reconnect(&self, controller: ControllerId) {
        self.connections.forget(controller);
    }

    pub(crate) fn forget_write_session(&self, controller: ControllerId) {
        self.sessions.forget_writes(controller);
    }

    pub(crate) fn channels_open(&self) -> push::ChannelsOpen {
        self.channels.counts()
    }

    /// An account for one call.
    pub(crate) fn account(&self, org: OrgId, is_under_way: bool) -> Arc<Account> {
        Arc::new(Account { room: self.rooms.room(org, is_under_way), ledger: Mutex::default() })
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
            channels: Arc::default(),
            apart,
            witness: OnceLock::new(),
        }
    }
}

/// Whose requests these are: it decides what may be sent, which addresses are reached and whose secrets are put in.
pub(crate) enum Side {
    /// Of an adapter, to the controller of the call.
    Controller,
    /// Of a plugin, to a target of its manifest.
    Plugin(declared::Declared),
}

impl Side {
    /// What texts call the other side.
    fn peer(&self) -> &'static str {
        match self {
            Self::Controller => CONTROLLER,
            Self::Plugin(_) => "target",
        }
    }
}

/// The requests of one call to one target.
pub(crate) struct Outbound {
    pub(crate) egress: Arc<Egress>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) target: Target,
    pub(crate) phase: Phase,
    pub(crate) deadline: Instant,
    urgency: Urgency,
    side: Side,
    /// Where a file goes, in a call that may keep one.
    pub(crate) sink: Option<Arc<dyn FileSink>>,
    pub(crate) account: Arc<Account>,
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
    /// A plugin changes something at a target of its own.
    Outward,
}

impl Purpose<'_> {
    fn is_write(self) -> bool {
        matches!(self, Purpose::Write { .. } | Purpose::Outward)
    }

    fn follows(self) -> bool {
        match self {
            Purpose::Read | Purpose::Save | Purpose::Outward => false,
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
        let account = egress.account(target.org_id, urgency == Urgency::UnderWay);
        let side = Side::Controller;
        Self { egress, facts, target, phase, deadline, urgency, side, sink: None, account }
    }

    /// The requests of a plugin to a target that it declares.
    pub(crate) fn of_plugin(
        egress: Arc<Egress>,
        facts: Arc<Facts>,
        target: Target,
        (phase, deadline): (Phase, Instant),
        declared: declared::Declared,
        account: Arc<Account>,
    ) -> Self {
        let (urgency, side) = (Urgency::Ordinary, Side::Plugin(declared));
        Self { egress, facts, target, phase, deadline, urgency, side, sink: None, account }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.account.ledger()
    }

    /// Takes one request from the budget of the call. The host does so before it looks at anything of the request, so
    /// that looking at requests that are not sent is bounded, too.
    pub(crate) fn take_request(&self) -> Result<(), Fault> {
        budget::take(&mut self.ledger(), self.facts.bounds.requests)
    }

    /// Sends one request of a component, which was taken from the budget, through every check, in the order that matters.
    pub(crate) async fn send_taken(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        let shown = self.egress.witness.get().map(|_| Exchange::of(&request));
        let purpose = match &self.side {
            Side::Plugin(_) if !declared::only_reads(&request) => Purpose::Outward,
            _ => Purpose::Read,
        };
        let answer = self.counted(self.steps(request, auth, purpose)).await;
        self.show(shown, &answer);
        answer
    }

    /// Sends one read of a component, which was taken from the budget, whose answer is kept as a file, through the same
    /// checks.
    pub(crate) async fn save_taken(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
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

    async fn counted(&self, steps: impl Future<Output = Result<Response, Fault>>) -> Result<Response, Fault> {
        let answer = steps.await;
        if answer.as_ref().is_err_and(|fault| fault.code.as_deref() == Some(held::OVERLOAD)) {
            self.ledger().overloaded = true;
        }
        if let Err(fault) = &answer
            && fault.kind == FaultKind::Denied
        {
            self.refused(fault);
        }
        answer
    }

    /// Counts a refused request against the component, or against what it was given.
    fn refused(&self, fault: &Fault) {
        let (component, code) = (&self.facts.manifest.id, fault.code.as_deref().unwrap_or_default());
        match &self.side {
            Side::Controller => {
                // Where an address leads is not the component's choice.
                let is_logged = code == "address" || self.account.refuse();
                if is_logged {
                    tracing::warn!(component, controller.id = %self.target.controller_id, code, "request of a component was refused: {}", fault.message);
                }
            }
            Side::Plugin(declared) => {
                let is_of_data = !declared::is_of_component(code);
                let is_logged =
                    if is_of_data { self.account.refuse_for_data() } else { self.account.refuse() };
                if is_logged {
                    let target = &declared.target.name;
                    tracing::warn!(component, organization.id = %self.target.org_id, target, code, "request of a plugin was refused: {}", fault.message);
                }
            }
        }
    }

    async fn steps(&self, request: Request, auth: &Auth, purpose: Purpose<'_>) -> Result<Response, Fault> {
        let bounds = &self.facts.bounds;
        // 1. Time; the budget was taken by the caller.
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
        // 2. What this call may send.
        credentials::check_places(auth)?;
        match &self.side {
            Side::Controller if purpose.is_write() => {}
            Side::Controller => phase::check(self.phase, &self.facts.manifest.reads, &request)?,
            Side::Plugin(declared) => declared.check(&self.facts.manifest, &request, auth)?,
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
            Purpose::Read | Purpose::Save | Purpose::FreshRead { .. } | Purpose::Outward => Vec::new(),
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
        let (url, rules) = (&self.target.url, &self.egress.rules);
        let addresses = match &self.side {
            Side::Controller => address::resolve(url, rules).await?,
            Side::Plugin(declared) => own::addresses_for_plugin(url, rules, declared.reach(url)).await?,
        };
        self.egress.connections.route(&self.target, addresses, self.side.peer())
    }

    /// Does work on an answer of so many bytes, away from the guests' threads where they are many.
    async fn apart<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.egress.apart.run(self.target.org_id, bytes, work).await.unwrap_or_else(|error| {
            tracing::error!(target = self.shown_target(), error = %error, "an answer could not be worked on");
            Err(Fault::new(FaultKind::Generic, "the answer could not be worked on")
                .with_effect(Effect::Possible))
        })
    }

    /// Names the target in the log: a controller by its id, a target of a plugin by its organization and its name.
    fn shown_target(&self) -> String {
        match &self.side {
            Side::Controller => format!("controller {}", self.target.controller_id),
            Side::Plugin(declared) => {
                let (plugin, name) = (&self.facts.manifest.id, &declared.target.name);
                format!("{name} of plugin {plugin} in organization {}", self.target.org_id)
            }
        }
    }

    /// The credential, decrypted just before it is used.
    async fn credential(&self) -> Result<Credential, Fault> {
        if let Side::Plugin(declared) = &self.side {
            return declared.secrets(self.target.org_id, &self.facts.manifest, &self.account).await;
        }
        self.egress.vault.credential(self.target.org_id, self.target.credential_id).await.map_err(|error| {
            if self.account.is_first_failure() {
                tracing::error!(credential.id = %self.target.credential_id, reason = %error, "credential cannot be read");
            }
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

#[cfg(test)]
impl Outbound {
    /// Takes a request from the budget and sends it, as the host does for a component.
    pub(crate) async fn send(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        self.take_request()?;
        self.send_taken(request, auth).await
    }
}
