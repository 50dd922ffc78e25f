//! An installed adapter, and the calls that the server makes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::adapter::{
    CallOutcome, Comparison, Description, DevicePage, DeviceProfile, ModelChange, ModelPage, Object,
    ObjectPage, Readiness, SitePage,
};
use heddle_core::change::{AdapterPlan, ChangeSpec, NativeCall, Operation, Stage};
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::file::GivenFile;
use heddle_core::secret::Secret;
use heddle_core::{OrgId, Timestamp};
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::release::Tested;
use heddle_marketplace::{Schema, SchemaError};
use http::HeaderMap;

use crate::api::{Answer, Call, CallError, FileSink, Filling, KeptFile, SecretBook, SentCall};
use crate::bindings::exports::heddle::adapter::{changes, files, inventory, lifecycle};
use crate::bindings::heddle::common::types;
use crate::breaker::Standing;
use crate::call::{Ask, Component, Prepared, Provenance, Shared, ask};
use crate::convert::{self, Unfit, Weigh};
use crate::egress::phase::Phase;
use crate::egress::push::{self, Ended, Listening, Place, Told, Unheard};
use crate::egress::{Outbound, holes, references};
use crate::limits::{FILE_BYTES_PER_SEC, FILE_START_MAX, FILE_WALL_MAX, WALL_MAX};
use crate::observe::Observation;
use crate::reach::Reach;
use crate::schemas::Schemas;
use crate::state::Surroundings;
use crate::task::Owned;

/// An installed adapter: verified, compiled, linked, described.
///
/// Methods are one call each, in a fresh instance. Dropping the future cancels the call.
#[derive(Clone)]
pub struct Adapter(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    component: Arc<Component>,
    description: Description,
    releases: Vec<Tested>,
    schemas: Schemas,
    version: String,
    identity: String,
    manifest_sha256: String,
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
        Phase::Probe | Phase::Read | Phase::Plan | Phase::Poll => 15,
    })
}

impl Adapter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        component: Arc<Component>,
        (identity, manifest_sha256): (String, String),
        (description, releases): (Description, Vec<Tested>),
        schemas: Schemas,
    ) -> Self {
        let version = component.facts.manifest.version.to_string();
        Self(Arc::new(Inner {
            shared,
            component,
            description,
            releases,
            schemas,
            version,
            identity,
            manifest_sha256,
        }))
    }

    /// The manifest's id, which is also the vendor of its controllers.
    pub fn id(&self) -> &str {
        &self.0.component.facts.manifest.id
    }

    /// Returns the version of the manifest, such as `1.4.0`.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// SHA-256 of the component, hex: names this very code.
    pub fn component_sha256(&self) -> &str {
        &self.0.component.facts.sha256
    }

    /// Names this very package for people: `acme@1.4.0+0a1b2c3d4e5f`, with the beginning of its manifest's SHA-256.
    /// A plan names the one that made it.
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    /// What the package says of itself: what it may do, and who made it.
    pub fn manifest(&self) -> &Manifest {
        &self.0.component.facts.manifest
    }

    /// SHA-256 of the package's manifest, hex: names this very package.
    pub fn manifest_sha256(&self) -> &str {
        &self.0.manifest_sha256
    }

    /// Returns what the package says that it manages. It is the same for every controller;
    /// what one device can do is in the answer of [`Adapter::check`].
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// The releases that the package was made from and tested with; empty where it says nothing of them.
    pub fn releases(&self) -> &[Tested] {
        &self.0.releases
    }

    /// What a controller's `settings` must fit; an adapter that declares nothing takes none.
    pub fn settings_schema(&self) -> &Schema {
        &self.0.schemas.settings
    }

    /// What the payload of an operation of a feature must fit; `None` when it has no such operation.
    pub async fn payload_schema(
        &self,
        feature: &str,
        operation: Operation,
    ) -> Result<Option<Arc<Schema>>, Arc<SchemaError>> {
        self.0.schemas.payload(&self.0.description, feature, operation).await
    }

    /// Names of fields that hold secrets, wherever they stand.
    pub fn secret_fields(&self) -> &[String] {
        &self.0.component.facts.manifest.secret_fields
    }

    /// Whether it can write: it has the `changes` export.
    pub fn writes(&self) -> bool {
        self.0.component.exports.has::<changes::Guest>()
    }

    /// Whether it takes calls, or failed so often that it takes none.
    pub fn standing(&self) -> Standing {
        self.0.component.breaker.standing()
    }

    /// Whether it failed so often that a person must release it.
    pub fn is_quarantined(&self) -> bool {
        self.standing().is_quarantined
    }

    /// What it came in, and who signed it.
    pub fn provenance(&self) -> &Provenance {
        &self.0.component.provenance
    }

    /// Ends its calls at once, and lets none begin any more. It has to be loaded anew to serve again.
    pub fn cut(&self) {
        self.0.component.cut.cancel();
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
        let ask = ask(|exports, store| {
            Box::pin(async move { exports.get::<lifecycle::Guest>(store)?.call_check(store).await })
        });
        self.call(call, Phase::Probe, ask, convert::profile).await.map(first)
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
                exports
                    .get::<inventory::Guest>(store)?
                    .call_list_devices(store, site.as_deref(), cursor.as_deref())
                    .await
            })
        });
        self.call(call, Phase::Read, ask, convert::devices).await.map(first)
    }

    /// Reads one page of the controller's sites; none where the vendor has no sites.
    pub async fn list_sites(&self, call: &Call, cursor: Option<&str>) -> Result<SitePage, CallError> {
        self.lower("list-sites", format!("{cursor:?}"));
        let cursor = cursor.map(str::to_owned);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports.get::<inventory::Guest>(store)?.call_list_sites(store, cursor.as_deref()).await
            })
        });
        self.call(call, Phase::Read, ask, convert::sites).await.map(first)
    }

    /// Reads one page of a kind of the model; its fields are not checked yet. `site` is the vendor's id of the site.
    pub async fn list_model(
        &self,
        call: &Call,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, CallError> {
        self.lower("list-model", format!("{kind} {site:?} {cursor:?}"));
        let (kind, site, cursor) = (kind.to_owned(), site.map(str::to_owned), cursor.map(str::to_owned));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports
                    .get::<inventory::Guest>(store)?
                    .call_list_model(store, &kind, site.as_deref(), cursor.as_deref())
                    .await
            })
        });
        self.call(call, Phase::Read, ask, convert::model).await.map(first)
    }

    /// Objects of a kind; `limit` bounds the page, and `filter` has names and values that the adapter understands.
    pub async fn list_objects(
        &self,
        call: &Call,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
        limit: u32,
        filter: &[(String, String)],
    ) -> Result<ObjectPage, CallError> {
        self.lower("list-objects", format!("{kind} {site:?} {cursor:?} {filter:?}"));
        let (kind, site, cursor) = (kind.to_owned(), site.map(str::to_owned), cursor.map(str::to_owned));
        let filter = attributes(filter);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports
                    .get::<inventory::Guest>(store)?
                    .call_list_objects(store, &kind, site.as_deref(), cursor.as_deref(), limit, &filter)
                    .await
            })
        });
        self.call(call, Phase::Read, ask, convert::objects).await.map(first)
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
            Box::pin(async move {
                exports
                    .get::<inventory::Guest>(store)?
                    .call_get_object(store, &kind, site.as_deref(), &key)
                    .await
            })
        });
        self.call(call, Phase::Read, ask, convert::object).await.map(first)
    }

    /// Fetches a file of a kind into the sink. The caller keeps what the sink took only after `Ok`: an error says that the
    /// component or the host refused the file.
    pub async fn fetch_file(
        &self,
        call: &Call,
        (kind, site): (&str, Option<&str>),
        key: Option<&str>,
        filter: &[(String, String)],
        sink: Arc<dyn FileSink>,
    ) -> Result<KeptFile, CallError> {
        self.lower("fetch", format!("{kind} {site:?} {key:?} {filter:?}"));
        let (kind, site, key) = (kind.to_owned(), site.map(str::to_owned), key.map(str::to_owned));
        let filter = attributes(filter);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match exports.find::<files::Guest>(store)? {
                    Some(guest) => {
                        guest.call_fetch(store, &kind, site.as_deref(), key.as_deref(), &filter).await
                    }
                    None => Ok(Err(convert::to_guest_fault(Fault::new(
                        FaultKind::Unsupported,
                        "this adapter has no files",
                    )))),
                }
            })
        });
        let mut outbound = self.outbound(call, Phase::Read);
        let by_size = Duration::from_secs(sink.bytes_max().div_ceil(FILE_BYTES_PER_SEC));
        // Twice: a session may have to be renewed first.
        outbound.deadline = Instant::now() + (FILE_START_MAX * 2 + by_size).min(FILE_WALL_MAX);
        outbound.sink = Some(sink);
        let outbound = Arc::new(outbound);
        let answered = self.call_with(call, Arc::clone(&outbound), ask, convert::saved_file).await?.0;
        outbound.kept().filter(|kept| kept.sha256 == answered).ok_or_else(|| {
            let message = "the adapter answered a file that this call did not keep";
            CallError::Fault(Fault::new(FaultKind::Generic, message).with_code("unknown-file"))
        })
    }

    /// Expresses changes in the words of the model in the adapter's own features: for each, the changes that it is.
    ///
    /// `secrets` are those of the payloads. Answers also the secrets to which what it is refers.
    pub async fn express(
        &self,
        call: &Call,
        asked: &[ModelChange],
        secrets: &SecretBook,
    ) -> Result<(Vec<Vec<ChangeSpec>>, SecretBook), CallError> {
        let asked = convert::to_guest_model_changes(asked);
        asked.iter().for_each(|change| self.lower("model-change", &change.payload));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match exports.find::<changes::Guest>(store)? {
                    Some(guest) => guest.call_express(store, &asked).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        let (expressed, mut seen) = self.call(call, Phase::Plan, ask, convert::expressed).await?;
        seen.entries.extend(secrets.entries.clone());
        let kept = named_in(expressed.iter().flatten().map(|change| change.payload.to_string()), &seen);
        Ok((expressed, kept))
    }

    /// Computes what would be sent, without sending it.
    ///
    /// `secrets` are those of the payload, `given` the files that people named, and no others are sent. Answers also the
    /// secrets that the plan's calls refer to, for the server to keep.
    pub async fn plan(
        &self,
        call: &Call,
        changes: &[ChangeSpec],
        secrets: &SecretBook,
        given: &[GivenFile],
    ) -> Result<(AdapterPlan, SecretBook), CallError> {
        let changes = self.changes(changes);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match exports.find::<changes::Guest>(store)? {
                    Some(guest) => guest.call_plan(store, &changes).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        let (mut plan, mut seen) = self.call(call, Phase::Plan, ask, convert::plan).await?;
        complete_files(&mut plan, given).map_err(CallError::Fault)?;
        holes::check(&plan).map_err(CallError::Fault)?;
        for native in &plan.native {
            Outbound::check_planned(&self.0.component.facts, native).map_err(CallError::Fault)?;
        }
        seen.entries.extend(secrets.entries.clone());
        let kept = referred(&plan, &seen);
        Ok((plan, kept))
    }

    /// Asks whether a stage can be sent, and from which call on; `left` calls of it left before.
    pub async fn ready(
        &self,
        call: &Call,
        stage: Stage,
        changes: &[ChangeSpec],
        token: &[u8],
        left: u32,
    ) -> Result<Readiness, CallError> {
        let (changes, token, stage) =
            (self.changes(changes), self.token(token), convert::to_guest_stage(stage));
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match exports.find::<changes::Guest>(store)? {
                    Some(guest) => guest.call_ready(store, stage, &changes, &token, left).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        self.call(call, Phase::Write, ask, convert::readiness).await.map(first)
    }

    /// Sends one call of a plan; `follows` says whether calls of its stage left before. Dropping the future ends it,
    /// and the call may have left.
    pub async fn send(&self, call: &Call, native: &NativeCall, filling: Filling, follows: bool) -> SentCall {
        let mut outbound = self.outbound(call, Phase::Write);
        outbound.deadline += time_of_files(native);
        let outbound = Arc::new(outbound);
        let (sending, native) = (Arc::clone(&outbound), native.clone());
        // On the guests' threads, where the connections to the controllers live.
        let work = async move { sending.write(&native, &filling, follows).await };
        let answer = Owned::spawn(&self.0.shared.guests, work).join().await;
        let left = outbound.account.has_left();
        let answer = answer.unwrap_or_else(|error| {
            tracing::error!(controller.id = %call.target.controller_id, error = %error, "a call was not sent to its end");
            Err(Fault::new(FaultKind::Generic, "internal error"))
        });
        let answer = match answer {
            Err(fault) if left && fault.effect == Effect::None => Err(fault.with_effect(Effect::Possible)),
            other => other.map(Answer),
        };
        SentCall { answer, left }
    }

    /// Asks what the answer to the call `index` of a stage means, counted from 0.
    pub async fn judge(
        &self,
        call: &Call,
        (stage, index): (Stage, u32),
        answer: Result<Answer, Fault>,
        changes: &[ChangeSpec],
        token: &[u8],
    ) -> Result<CallOutcome, CallError> {
        let (changes, token, stage) =
            (self.changes(changes), self.token(token), convert::to_guest_stage(stage));
        let tap = self.0.shared.tap.clone();
        let answer = answer
            .map(|Answer(response)| convert::to_guest_response(response, tap.as_ref()))
            .map_err(|fault| {
                self.lower("fault", format!("{fault:?}"));
                convert::to_guest_fault(fault)
            });
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                let Some(guest) = exports.find::<changes::Guest>(store)? else {
                    return Ok(Err(only_reads()));
                };
                let answer = answer.as_ref();
                guest.call_judge(store, stage, index, answer, &changes, &token).await.map(Ok)
            })
        });
        self.call(call, Phase::Write, ask, convert::outcome).await.map(first)
    }

    /// Asks after a task that runs on at the device.
    pub async fn poll(&self, call: &Call, task: &[u8]) -> Result<CallOutcome, CallError> {
        let task = self.token(task);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                match exports.find::<changes::Guest>(store)? {
                    Some(guest) => guest.call_poll(store, &task).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        self.call(call, Phase::Poll, ask, convert::outcome).await.map(first)
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
                match exports.find::<changes::Guest>(store)? {
                    Some(guest) => guest.call_compare(store, &changes, &token).await,
                    None => Ok(Err(only_reads())),
                }
            })
        });
        self.call(call, Phase::Verify, ask, convert::comparison).await.map(first)
    }

    /// Opens a channel of the manifest for the controller of the call, or for one of its sites, in the session that its
    /// readings use. The call's deadline counts for nothing: opening has 30 s, behind up to 30 s of waiting for a turn, and the
    /// channel lasts until it ends or is dropped.
    ///
    /// What was missed before is not known: the caller has everything read that the channel can tell, once it is open.
    ///
    /// # Errors
    /// Says why there is no channel, and when it is worth asking again ([`Ended::retry`]).
    pub async fn listen(&self, call: &Call, channel: &str, place: Place) -> Result<Listening, Ended> {
        let Inner { shared, component, .. } = &*self.0;
        let of = (&shared.egress, &component.facts);
        push::listen(of, &call.target, (channel, place), (&shared.guests, &component.cut)).await
    }

    /// Judges a request that came to a hook of the manifest: its proof, with the secret of the controller, and then what it
    /// tells. A body that is no JSON tells nothing. The caller bounds how many come.
    ///
    /// # Errors
    /// There is no such hook, or the request does not prove that it is of the controller.
    pub async fn heard(
        &self,
        org: OrgId,
        channel: &str,
        secret: &Secret,
        (headers, body): (&HeaderMap, &[u8]),
    ) -> Result<Vec<Told>, Unheard> {
        let Inner { shared, component, .. } = &*self.0;
        push::heard((&shared.egress, &component.facts), (org, channel), secret, (headers, body)).await
    }

    /// The requests of one call.
    fn outbound(&self, call: &Call, phase: Phase) -> Outbound {
        let Inner { shared, component, .. } = &*self.0;
        let deadline = Instant::now() + call.deadline.unwrap_or_else(|| wall(phase)).min(WALL_MAX);
        let (egress, facts) = (Arc::clone(&shared.egress), Arc::clone(&component.facts));
        Outbound::new(egress, facts, call.target.clone(), phase, deadline, call.urgency)
    }

    async fn call<T: Weigh + Send + 'static, R: Send + 'static>(
        &self,
        call: &Call,
        phase: Phase,
        ask: Ask<T>,
        fit: fn(T) -> Result<R, Unfit>,
    ) -> Result<(R, SecretBook), CallError> {
        let outbound = Arc::new(self.outbound(call, phase));
        self.call_with(call, outbound, ask, fit).await
    }

    async fn call_with<T: Weigh + Send + 'static, R: Send + 'static>(
        &self,
        call: &Call,
        outbound: Arc<Outbound>,
        ask: Ask<T>,
        fit: fn(T) -> Result<R, Unfit>,
    ) -> Result<(R, SecretBook), CallError> {
        let Inner { shared, component, .. } = &*self.0;
        let (target, phase) = (&call.target, outbound.phase);
        let prepared = Prepared {
            around: Surroundings {
                component: self.id().to_owned(),
                request_id: call.request_id.clone(),
                controller_id: Some(target.controller_id.to_string()),
                site_ref: target.site_ref.clone(),
                phase,
                deadline: outbound.deadline,
                settings: target.settings.to_string(),
                progress: call.progress.clone(),
            },
            cpu: component.facts.bounds.cpu,
            reach: Reach::controller(outbound),
            ask,
            fit,
            weigh: T::bytes,
            urgency: call.urgency,
        };
        let observation = Observation::begin(shared.observer.get(), self.id(), phase);
        let result = shared.call(component, target.controller_id, prepared).await;
        observation.end(&result);
        result
    }

    fn lower(&self, what: &str, bytes: impl AsRef<[u8]>) {
        if let Some(tap) = &self.0.shared.tap {
            tap(what, bytes.as_ref());
        }
    }

    fn changes(&self, changes: &[ChangeSpec]) -> Vec<changes::Change> {
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

fn first<R>((answer, _): (R, SecretBook)) -> R {
    answer
}

fn attributes(pairs: &[(String, String)]) -> Vec<types::Attribute> {
    pairs.iter().cloned().map(|(key, value)| types::Attribute { key, value }).collect()
}

fn only_reads() -> types::Fault {
    convert::to_guest_fault(Fault::new(FaultKind::Unsupported, "this adapter only reads"))
}

/// Says how large the files are that a plan sends. Files that people did not name are not sent.
fn complete_files(plan: &mut AdapterPlan, given: &[GivenFile]) -> Result<(), Fault> {
    for sent in plan.native.iter_mut().flat_map(NativeCall::files_mut) {
        let known = given.iter().find(|file| file.sha256 == sent.sha256).ok_or_else(|| {
            let message = format!("the plan sends a file that the change does not name: {}", sent.sha256);
            Fault::new(FaultKind::Denied, message).with_code("unknown-file")
        })?;
        sent.size_bytes = known.size_bytes;
    }
    Ok(())
}

/// Time for the files of a call, beside that for the call itself.
fn time_of_files(call: &NativeCall) -> Duration {
    let bytes = call.files().fold(0_u64, |sum, file| sum.saturating_add(file.size_bytes));
    Duration::from_secs(bytes.div_ceil(FILE_BYTES_PER_SEC))
}

/// The secrets whose references occur in a plan.
fn referred(plan: &AdapterPlan, known: &SecretBook) -> SecretBook {
    if known.entries.is_empty() {
        return SecretBook::default();
    }
    let mut texts: Vec<String> =
        plan.native.iter().filter_map(|call| call.body.as_ref()).map(ToString::to_string).collect();
    texts.extend(plan.native.iter().filter_map(|call| call.form.as_ref()).flatten().map(|(_, v)| v.clone()));
    let parts = plan.native.iter().filter_map(|call| call.multipart.as_ref()).flatten();
    texts.extend(parts.filter_map(|part| part.text.clone()));
    texts.extend(plan.inverse.iter().flatten().map(|change| change.payload.to_string()));
    texts.push(String::from_utf8_lossy(&plan.token).into_owned());
    named_in(texts.into_iter(), known)
}

fn named_in(texts: impl Iterator<Item = String>, known: &SecretBook) -> SecretBook {
    let mut kept = SecretBook::default();
    for text in texts {
        for name in references::find(&text) {
            if let Some(secret) = known.entries.get(name) {
                kept.entries.insert(name.to_owned(), secret.clone());
            }
        }
    }
    kept
}
