//! An installed adapter, and the calls that the server makes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::Timestamp;
use heddle_core::adapter::{
    Comparison, Description, DevicePage, DeviceProfile, Object, ObjectPage, RunOutcome,
};
use heddle_core::change::{AdapterPlan, ChangeSpec, NativeCall, Operation};
use heddle_core::fault::{Fault, FaultKind};
use heddle_marketplace::Schema;
use wasmtime::Store;

use crate::api::{Approval, Call, CallError, RunFailure, SecretBook};
use crate::bindings::heddle::common::types;
use crate::breaker::Standing;
use crate::call::{Component, Exports, Prepared, Raw, Shared};
use crate::convert::{self, Unfit, Weigh};
use crate::egress::phase::Phase;
use crate::egress::request::Approved;
use crate::egress::{Outbound, references};
use crate::limits::WALL_MAX;
use crate::observe::Observation;
use crate::schemas::Schemas;
use crate::state::{State, Surroundings};

/// An installed adapter: verified, compiled, linked, described.
///
/// Methods are one call each, in a fresh instance. Dropping the future cancels the call.
#[derive(Clone)]
pub struct Adapter(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    component: Arc<Component>,
    description: Description,
    schemas: Schemas,
    version: String,
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Adapter({} {})", self.id(), self.version())
    }
}

/// Wall time of a call when its caller names none.
fn wall(phase: Phase) -> Duration {
    Duration::from_secs(match phase {
        Phase::Write => 60,
        Phase::Verify => 30,
        Phase::Describe => 5,
        Phase::Probe | Phase::Read | Phase::Plan | Phase::Poll => 15,
    })
}

impl Adapter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        component: Arc<Component>,
        description: Description,
        schemas: Schemas,
    ) -> Self {
        let version = component.facts.manifest.version.to_string();
        Self(Arc::new(Inner { shared, component, description, schemas, version }))
    }

    /// The manifest's id, which is also the vendor of its controllers.
    pub fn id(&self) -> &str {
        &self.0.component.facts.manifest.id
    }

    /// Returns the version of the manifest, such as `1.4.0`. Plans name it with the id of the adapter that
    /// made them.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// SHA-256 of the component, hex: names this very code.
    pub fn component_sha256(&self) -> &str {
        &self.0.component.facts.sha256
    }

    /// Returns what the component said of itself when it was loaded. It is the same for every controller;
    /// what one device can do is in the answer of [`Adapter::check`].
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// What a controller's `settings` must fit; an adapter that declares nothing takes none.
    pub fn settings_schema(&self) -> &Schema {
        &self.0.schemas.settings
    }

    /// What the payload of an operation of a feature must fit; `None` when it has no such operation.
    pub fn payload_schema(&self, feature: &str, operation: Operation) -> Option<&Schema> {
        self.0.schemas.payload(feature, operation)
    }

    /// Names of fields that hold secrets, wherever they stand.
    pub fn secret_fields(&self) -> &[String] {
        &self.0.component.facts.manifest.secret_fields
    }

    /// Whether it can write: it has the `changes` export.
    pub fn writes(&self) -> bool {
        self.0.component.exports.changes.is_some()
    }

    /// Whether it takes calls, or failed so often that it takes none.
    pub fn standing(&self) -> Standing {
        self.0.component.breaker.standing()
    }

    /// Whether it failed so often that a person must release it.
    pub fn is_quarantined(&self) -> bool {
        self.standing().is_quarantined
    }

    /// Takes calls again after a quarantine.
    pub fn release(&self) {
        self.0.component.breaker.release();
    }

    /// The same where it was suspended until then; tells whether it was. For a release in another process.
    pub fn release_as_of(&self, at: Timestamp) -> bool {
        self.0.component.breaker.release_as_of(at)
    }

    /// Logs in and asks the device who it is.
    pub async fn check(&self, call: &Call) -> Result<DeviceProfile, CallError> {
        let ask = ask(|exports, store| Box::pin(async move { exports.lifecycle.call_check(store).await }));
        self.call(call, Phase::Probe, None, ask, convert::profile).await.map(first)
    }

    /// Reads one page of devices, of one site by the vendor's name for it or of the whole controller.
    /// `cursor` is the `next` of the page before. The calling function bounds the number of pages: a
    /// component can always name a next one.
    pub async fn list_devices(
        &self,
        call: &Call,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<DevicePage, CallError> {
        self.lower("list-devices", format!("{site:?} {cursor:?}"));
        let (site, cursor) = (site.map(str::to_owned), cursor.map(str::to_owned));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports.inventory.call_list_devices(store, site.as_deref(), cursor.as_deref()).await
            })
        });
        self.call(call, Phase::Read, None, ask, convert::devices).await.map(first)
    }

    /// Objects of a kind; `limit` bounds the page.
    pub async fn list_objects(
        &self,
        call: &Call,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<ObjectPage, CallError> {
        self.lower("list-objects", format!("{kind} {site:?} {cursor:?}"));
        let (kind, site, cursor) = (kind.to_owned(), site.map(str::to_owned), cursor.map(str::to_owned));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports
                    .inventory
                    .call_list_objects(store, &kind, site.as_deref(), cursor.as_deref(), limit)
                    .await
            })
        });
        self.call(call, Phase::Read, None, ask, convert::objects).await.map(first)
    }

    /// Reads one object by its natural key, as it is now; `site` is the vendor's name for the site. By
    /// convention, an object that does not exist is a fault of [`FaultKind::NotFound`].
    pub async fn get_object(
        &self,
        call: &Call,
        kind: &str,
        site: Option<&str>,
        key: &str,
    ) -> Result<Object, CallError> {
        self.lower("get-object", format!("{kind} {site:?} {key}"));
        let (kind, site, key) = (kind.to_owned(), site.map(str::to_owned), key.to_owned());
        let ask = ask(move |exports, store| {
            Box::pin(
                async move { exports.inventory.call_get_object(store, &kind, site.as_deref(), &key).await },
            )
        });
        self.call(call, Phase::Read, None, ask, convert::object).await.map(first)
    }

    /// Computes what would be sent, without sending it.
    ///
    /// `secrets` are those of the payload. Answers also the secrets that the
    /// plan's calls refer to, for the server to keep.
    pub async fn plan(
        &self,
        call: &Call,
        changes: &[ChangeSpec],
        secrets: &SecretBook,
    ) -> Result<(AdapterPlan, SecretBook), CallError> {
        let changes = self.changes(changes);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match &exports.changes {
                    Some(guest) => guest.call_plan(store, &changes).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        let (plan, mut seen) = self.call(call, Phase::Plan, None, ask, convert::plan).await?;
        seen.entries.extend(secrets.entries.clone());
        let kept = referred(&plan, &seen);
        Ok((plan, kept))
    }

    /// Sends the calls of one stage. A write that is not the plan's next one is refused.
    pub async fn run(
        &self,
        call: &Call,
        approval: Approval<'_>,
        changes: &[ChangeSpec],
        token: &[u8],
    ) -> Result<RunOutcome, RunFailure> {
        let of_stage = |native: &&NativeCall| native.stage == approval.stage;
        let approved = Approved {
            calls: approval.native.iter().filter(of_stage).cloned().collect(),
            hold_secs: approval.hold_secs,
            secrets: approval.secrets.clone(),
        };
        let (changes, token, stage) =
            (self.changes(changes), self.token(token), convert::to_guest_stage(approval.stage));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match &exports.changes {
                    Some(guest) => guest.call_run(store, stage, &changes, &token).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        let (result, wrote) =
            self.call_and_tell(call, Phase::Write, Some(approved), ask, convert::outcome).await;
        result.map(first).map_err(|error| RunFailure { error, wrote })
    }

    /// Asks after a task that runs on at the device.
    pub async fn poll(&self, call: &Call, task: &[u8]) -> Result<RunOutcome, CallError> {
        let task = self.token(task);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match &exports.changes {
                    Some(guest) => guest.call_poll(store, &task).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        self.call(call, Phase::Poll, None, ask, convert::outcome).await.map(first)
    }

    /// Reads the device and says where it stands, seen from the plan.
    pub async fn compare(
        &self,
        call: &Call,
        changes: &[ChangeSpec],
        token: &[u8],
    ) -> Result<Comparison, CallError> {
        let (changes, token) = (self.changes(changes), self.token(token));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match &exports.changes {
                    Some(guest) => guest.call_compare(store, &changes, &token).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        self.call(call, Phase::Verify, None, ask, convert::comparison).await.map(first)
    }

    async fn call<T: Weigh + Send + 'static, R: Send + 'static>(
        &self,
        call: &Call,
        phase: Phase,
        approved: Option<Approved>,
        ask: Ask<T>,
        fit: fn(T) -> Result<R, Unfit>,
    ) -> Result<(R, SecretBook), CallError> {
        self.call_and_tell(call, phase, approved, ask, fit).await.0
    }

    /// The answer, and whether a write was handed to the connection.
    async fn call_and_tell<T: Weigh + Send + 'static, R: Send + 'static>(
        &self,
        call: &Call,
        phase: Phase,
        approved: Option<Approved>,
        ask: Ask<T>,
        fit: fn(T) -> Result<R, Unfit>,
    ) -> (Result<(R, SecretBook), CallError>, bool) {
        let Inner { shared, component, .. } = &*self.0;
        let deadline = Instant::now() + call.deadline.unwrap_or_else(|| wall(phase)).min(WALL_MAX);
        let target = &call.target;
        let outbound = Arc::new(Outbound::new(
            Arc::clone(&shared.egress),
            Arc::clone(&component.facts),
            target.clone(),
            phase,
            deadline,
            approved,
            call.urgency,
        ));
        let prepared = Prepared {
            around: Surroundings {
                component: self.id().to_owned(),
                request_id: call.request_id.clone(),
                controller_id: Some(target.controller_id.to_string()),
                site_ref: target.site_ref.clone(),
                phase,
                deadline,
                settings: target.settings.to_string(),
                progress: call.progress.clone(),
            },
            cpu: component.facts.bounds.cpu,
            outbound: Some(Arc::clone(&outbound)),
            ask,
            fit,
            weigh: T::bytes,
            urgency: call.urgency,
        };
        let observation = Observation::begin(shared.observer.get(), self.id(), phase);
        let result = shared.call(component, target.org_id, target.controller_id, prepared).await;
        observation.end(&result);
        let wrote = outbound.ledger().wrote;
        (result, wrote)
    }

    fn lower(&self, what: &str, bytes: impl AsRef<[u8]>) {
        if let Some(tap) = &self.0.shared.tap {
            tap(what, bytes.as_ref());
        }
    }

    fn changes(
        &self,
        changes: &[ChangeSpec],
    ) -> Vec<crate::bindings::exports::heddle::adapter::changes::Change> {
        let changes = convert::to_guest_changes(changes);
        for change in &changes {
            self.lower("change", &change.payload);
        }
        changes
    }

    fn token(&self, token: &[u8]) -> Vec<u8> {
        self.lower("token", token);
        token.to_vec()
    }
}

type Ask<T> = Box<
    dyn for<'a> FnOnce(&'a Exports, &'a mut Store<State>) -> futures::future::BoxFuture<'a, Raw<T>> + Send,
>;

/// Names the type of a closure, which the compiler does not infer.
fn ask<T>(
    ask: impl for<'a> FnOnce(&'a Exports, &'a mut Store<State>) -> futures::future::BoxFuture<'a, Raw<T>>
    + Send
    + 'static,
) -> Ask<T> {
    Box::new(ask)
}

fn first<R>((answer, _): (R, SecretBook)) -> R {
    answer
}

fn only_reads() -> types::Fault {
    convert::to_guest_fault(Fault::new(FaultKind::Unsupported, "this adapter only reads"))
}

/// The secrets whose references occur in a plan.
fn referred(plan: &AdapterPlan, known: &SecretBook) -> SecretBook {
    let mut texts: Vec<String> =
        plan.native.iter().filter_map(|call| call.body.as_ref()).map(ToString::to_string).collect();
    texts.extend(plan.inverse.iter().flatten().map(|change| change.payload.to_string()));
    texts.push(String::from_utf8_lossy(&plan.token).into_owned());
    let mut kept = SecretBook::default();
    for name in texts.iter().flat_map(|text| references::find(text)) {
        if let Some(secret) = known.entries.get(name) {
            kept.entries.insert(name.to_owned(), secret.clone());
        }
    }
    kept
}
