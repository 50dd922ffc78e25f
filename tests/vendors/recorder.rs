//! Records a cassette: the calls of an adapter, through the egress of a server.
//!
//! All kinds are read. At a practice device changes are written, too, and taken back; a real one is only read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use heddle_core::adapter::{CallOutcome, Completeness, ModelPage, Object, Readiness};
use heddle_core::change::{AdapterPlan, ChangeSpec, HoleValues, NativeCall, Operation, Stage};
use heddle_core::fault::Fault;
use heddle_core::file::{FILE_REFERENCE, GivenFile, SentPart};
use heddle_runtime::{Adapter, Call, CallError, Exchange as Told, Filling, SecretBook, Urgency, Witness};
use heddle_sdk::json as sdk_json;
use heddle_sdk::testing::cassette::{Answer, Call as Named, Exchange, Planned, Recording, Source, listed};
use serde_json::{Value, json};

use super::sandbox::{NOW_MS, Peer, Sandbox};

/// The name of the cassette of a practice device.
pub(super) const PRACTICE: &str = "practice.jsonl";
/// Pages of one list that are recorded.
const PAGES_MAX: usize = 2;
/// Of so many lists that are empty one is kept.
const EMPTY_EACH: usize = 10;
/// Objects of a page.
const LIMIT: u32 = 100;
const HOLD_SECS: u32 = 30;
const POLLS_MAX: usize = 100;
/// What a device needs between its answer and the effect.
const SETTLE: Duration = Duration::from_millis(700);

/// A change that is planned, applied and, where it says so, taken back.
pub(super) struct Writing {
    pub(super) feature: &'static str,
    pub(super) operation: Operation,
    pub(super) payload: Value,
    /// The restore is sent, too.
    pub(super) is_taken_back: bool,
}

#[derive(Default)]
struct Tape {
    exchanges: Mutex<Vec<Told>>,
    exposed: Mutex<Vec<(String, Vec<(String, String)>)>>,
}

impl Witness for Tape {
    fn exchanged(&self, exchange: Told) {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    fn exposed(&self, session: &str, facts: &[(String, String)]) {
        let mut exposed = self.exposed.lock().unwrap_or_else(PoisonError::into_inner);
        exposed.push((session.to_owned(), facts.to_vec()));
    }
}

impl Tape {
    fn take(&self) -> Vec<Told> {
        std::mem::take(&mut *self.exchanges.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) struct Recorder {
    sandbox: Sandbox,
    tape: Arc<Tape>,
    recording: Recording,
    /// The first of the vendor's own sites.
    site: Option<String>,
    /// The kinds that are read, where an earlier recording says which.
    kinds: Option<BTreeSet<String>>,
    /// Lists that were empty.
    empty: usize,
}

/// A plan, and where it stands in the recording.
struct Reviewed {
    place: usize,
    plan: AdapterPlan,
    secrets: Arc<SecretBook>,
    changes: Vec<ChangeSpec>,
    values: HoleValues,
}

impl Recorder {
    pub(super) async fn start(vendor: &str, peer: &Peer) -> Self {
        let sandbox = Sandbox::start(vendor, peer).await;
        let tape = Arc::new(Tape::default());
        sandbox.runtime.witness(Arc::clone(&tape) as Arc<dyn Witness>);
        let now = u64::try_from(NOW_MS).expect("it is after 1970");
        let mut source = Source::of(vendor, &peer.source, now);
        source.settings = peer.settings.clone();
        Self { sandbox, tape, recording: Recording::new(source), site: None, kinds: None, empty: 0 }
    }

    /// The same, which reads the kinds of an earlier recording and no other.
    pub(super) fn again(mut self, kinds: BTreeSet<String>) -> Self {
        self.kinds = Some(kinds);
        self
    }

    /// The text of the cassette.
    pub(super) fn text(mut self) -> String {
        let exposed = std::mem::take(&mut *self.tape.exposed.lock().expect("no test panics with it"));
        for (session, facts) in exposed {
            self.recording.expose(&session, &facts);
        }
        self.recording.text()
    }

    /// Takes what was exchanged since; none where an answer did not come, which no cassette can give again.
    fn exchanges(&self) -> Option<Vec<Exchange>> {
        self.tape.take().into_iter().map(exchange).collect()
    }

    /// Adds a call with what it gave.
    #[track_caller]
    fn add<T>(
        &mut self,
        named: Named,
        given: &Result<T, CallError>,
        short: impl Fn(&T) -> Value,
    ) -> Option<usize> {
        let told = match given {
            Ok(given) => short(given),
            Err(CallError::Fault(fault)) => fault_of(fault),
            Err(other) => panic!("{named:?}: {other:?}"),
        };
        let exchanges = self.exchanges()?;
        // A call that asks nothing, such as a list that needs a filter, tells nothing of the device.
        (!exchanges.is_empty()).then(|| self.recording.add(named, exchanges, told))
    }

    /// Reads everything that the adapter can read.
    pub(super) async fn read(&mut self) {
        let (adapter, call) = (self.sandbox.adapter.clone(), self.sandbox.call.clone());
        let profile = adapter.check(&call).await;
        self.add(
            Named::Check,
            &profile,
            |profile| json!({ "product": profile.product, "version": profile.version }),
        );
        profile.expect("the device answers");
        let sites = adapter.list_sites(&call, None).await;
        self.add(Named::ListSites, &sites, |page| {
            let entries = page.items.iter().map(|site| (site.id.clone(), json!(site.name)));
            listed(&entries.collect::<Vec<_>>(), page.next.is_some(), "complete")
        });
        self.site = sites.expect("sites can be listed").items.first().map(|site| site.id.clone());
        self.devices(&adapter, &call).await;
        for kind in adapter.description().kinds.clone().into_iter().filter(|kind| kind.file.is_none()) {
            let site = self.site.clone().filter(|_| kind.is_of_site);
            self.objects(&adapter, &call, &kind.id, site).await;
        }
        for filled in adapter.description().model.clone() {
            let site = self.site.clone().filter(|_| filled.is_of_site);
            self.model(&adapter, &call, &filled.kind, site).await;
        }
    }

    async fn devices(&mut self, adapter: &Adapter, call: &Call) {
        let site = self.site.clone();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let page = adapter.list_devices(call, site.as_deref(), cursor.as_deref()).await;
            let named = Named::ListDevices { site: site.clone(), cursor };
            self.add(named, &page, |page| {
                let entry = |device: &heddle_core::adapter::SeenDevice| {
                    let (model, serial, mac) = (&device.model, &device.serial, &device.mac);
                    let rest = json!([device.name, device.kind, model, serial, mac, device.addresses]);
                    (device.identity.clone(), rest)
                };
                let entries: Vec<_> = page.items.iter().map(entry).collect();
                listed(&entries, page.next.is_some(), word(page.complete))
            });
            cursor = page.expect("devices can be listed").next;
            if cursor.is_none() {
                return;
            }
        }
    }

    async fn objects(&mut self, adapter: &Adapter, call: &Call, kind: &str, site: Option<String>) {
        if self.kinds.as_ref().is_some_and(|kinds| !kinds.contains(kind)) {
            return;
        }
        let (mut cursor, mut first): (Option<String>, Option<String>) = (None, None);
        for _ in 0..PAGES_MAX {
            let page = adapter.list_objects(call, kind, site.as_deref(), cursor.as_deref(), LIMIT, &[]).await;
            if cursor.is_none() && !self.is_kept(page.as_ref().is_ok_and(|page| !page.items.is_empty())) {
                self.tape.take();
                return;
            }
            let named = Named::ListObjects { kind: kind.to_owned(), site: site.clone(), cursor };
            self.add(named, &page, |page| {
                listed(&entries_of(&page.items), page.next.is_some(), word(page.complete))
            });
            let Ok(page) = page else { return };
            first = first.or_else(|| page.items.first().map(|object| object.reference.key.clone()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let Some(key) = first else { return };
        let object = adapter.get_object(call, kind, site.as_deref(), &key).await;
        let named = Named::GetObject { kind: kind.to_owned(), site, key };
        self.add(named, &object, |object| {
            listed(&entries_of(std::slice::from_ref(object)), false, "complete")
        });
    }

    /// Whether a list is kept: of those that are empty one in ten is enough.
    fn is_kept(&mut self, has_objects: bool) -> bool {
        self.empty += usize::from(!has_objects);
        has_objects || self.kinds.is_some() || self.empty % EMPTY_EACH == 1
    }

    async fn model(&mut self, adapter: &Adapter, call: &Call, kind: &str, site: Option<String>) {
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let page = adapter.list_model(call, kind, site.as_deref(), cursor.as_deref()).await;
            let named = Named::ListModel { kind: kind.to_owned(), site: site.clone(), cursor };
            self.add(named, &page, |page: &ModelPage| {
                let entries = page.items.iter().map(|object| (object.key.clone(), object.fields.clone()));
                listed(&entries.collect::<Vec<_>>(), page.next.is_some(), word(page.complete))
            });
            let Ok(page) = page else { return };
            cursor = page.next;
            if cursor.is_none() {
                return;
            }
        }
    }

    /// Plans a change, applies it, and compares the device before, after, and behind the way back.
    pub(super) async fn write(&mut self, writing: &Writing) {
        let (adapter, mut call) = (self.sandbox.adapter.clone(), self.sandbox.call.clone());
        let feature = adapter.description().feature(writing.feature);
        let feature = feature.unwrap_or_else(|| panic!("there is no feature '{}'", writing.feature));
        let site = self.site.clone().filter(|_| feature.is_of_site);
        let changes = vec![ChangeSpec {
            feature: writing.feature.to_owned(),
            operation: writing.operation,
            site,
            payload: writing.payload.clone(),
        }];
        let given = GivenFile::all_in(&writing.payload);
        let planned = adapter.plan(&call, &changes, &SecretBook::default(), &given).await;
        let named = Named::Plan { changes: changes.iter().map(planned_of).collect() };
        let place = self.add(named, &planned, |(plan, _)| calls_of(plan)).expect("a plan reads");
        let (plan, secrets) = planned.unwrap_or_else(|error| panic!("{}: {error}", writing.feature));
        let mut reviewed =
            Reviewed { place, plan, secrets: Arc::new(secrets), changes, values: HoleValues::new() };
        call.urgency = Urgency::UnderWay;
        self.compare(&call, &reviewed).await;
        let mut stages = vec![Stage::Apply, Stage::Confirm];
        stages.extend(writing.is_taken_back.then_some(Stage::Restore));
        for stage in stages {
            if reviewed.plan.native.iter().any(|native| native.stage == stage) {
                self.stage(&call, &mut reviewed, stage).await;
                tokio::time::sleep(SETTLE).await;
                self.compare(&call, &reviewed).await;
            }
        }
    }

    async fn compare(&mut self, call: &Call, reviewed: &Reviewed) {
        let adapter = self.sandbox.adapter.clone();
        let found = adapter.compare(call, &reviewed.changes, &reviewed.plan.token).await;
        self.add(Named::Compare { plan: reviewed.place }, &found, |found| json!(found.standing.as_str()));
        found.expect("the device can be compared");
    }

    async fn stage(&mut self, call: &Call, reviewed: &mut Reviewed, stage: Stage) {
        let adapter = self.sandbox.adapter.clone();
        let (changes, token) = (reviewed.changes.clone(), reviewed.plan.token.clone());
        let ready = adapter.ready(call, stage, &changes, &token, 0).await;
        let named = Named::Ready { plan: reviewed.place, stage: stage.to_string() };
        self.add(named, &ready, |ready| match ready {
            Readiness::Send { from, .. } => json!({ "send": from }),
            Readiness::Nothing(_) => json!("nothing"),
        });
        let from = match ready.expect("the stage can be sent") {
            Readiness::Send { from, found } => {
                reviewed.values.extend(found);
                from
            }
            Readiness::Nothing(_) => return,
        };
        let calls: Vec<NativeCall> =
            reviewed.plan.native.iter().filter(|native| native.stage == stage).cloned().collect();
        for (index, native) in calls.iter().enumerate().skip(from as usize) {
            self.send(call, reviewed, (stage, index), native).await;
        }
    }

    async fn send(&mut self, call: &Call, reviewed: &mut Reviewed, at: (Stage, usize), native: &NativeCall) {
        let (adapter, (stage, index)) = (self.sandbox.adapter.clone(), at);
        let filling = Filling {
            hold_secs: HOLD_SECS,
            secrets: Arc::clone(&reviewed.secrets),
            files: Arc::default(),
            holes: reviewed.plan.holes.clone().into(),
            values: reviewed.values.clone(),
        };
        let holes = filling.holes.clone();
        let sent = adapter.send(call, native, filling, index > 0).await;
        // What fills holes was read before it.
        let written = self.exchanges().and_then(|mut exchanges| exchanges.pop()).expect("an answer came");
        if let (Ok(answer), Some(id)) = (&sent.answer, &native.id) {
            for (hole, value) in answer.values(id, &holes) {
                reviewed.values.insert(hole.name.clone(), value.expect("the answer has it"));
            }
        }
        let position = u32::try_from(index).expect("it is small");
        let outcome = adapter
            .judge(call, (stage, position), sent.answer, &reviewed.changes, &reviewed.plan.token)
            .await;
        let mut exchanges = vec![written];
        exchanges.extend(self.exchanges().expect("every answer came"));
        let named = Named::Judge { plan: reviewed.place, stage: stage.to_string(), index };
        let outcome = outcome.expect("the answer is judged");
        let mut place = self.recording.add(named, exchanges, outcome_of(&outcome));
        let mut pending = outcome;
        for _ in 0..POLLS_MAX {
            match &pending {
                CallOutcome::Done(_) => return,
                CallOutcome::Failed(fault) => panic!("{} {}: {fault:?}", native.method, native.path),
                CallOutcome::Pending(task) => {
                    let wait = u64::from(task.poll_after_ms.min(1_000));
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    let polled = adapter.poll(call, &task.token).await;
                    let named = Named::Poll { of: place };
                    place = self.add(named, &polled, outcome_of).expect("a task is asked after");
                    pending = polled.expect("the task can be asked after");
                }
            }
        }
        panic!("the task of {} {} does not end", native.method, native.path);
    }
}

fn exchange(told: Told) -> Option<Exchange> {
    let answer = told.answer.ok()?;
    Some(Exchange {
        method: told.method,
        path: told.path,
        body: told.body,
        form: told.form,
        answer: Answer::of(answer.status, answer.reason, &answer.headers, &answer.body),
    })
}

fn fault_of(fault: &Fault) -> Value {
    json!({ "fault": fault.kind.as_str() })
}

fn word(complete: Completeness) -> &'static str {
    complete.as_str()
}

fn entries_of(objects: &[Object]) -> Vec<(String, Value)> {
    objects.iter().map(|object| (object.reference.key.clone(), object.body.clone())).collect()
}

fn planned_of(change: &ChangeSpec) -> Planned {
    Planned {
        feature: change.feature.clone(),
        operation: change.operation.to_string(),
        site: change.site.clone(),
        payload: change.payload.clone(),
    }
}

fn calls_of(plan: &AdapterPlan) -> Value {
    let calls = plan.native.iter().map(|native| {
        let form = native.form.as_ref().map(|form| json!(form));
        let file = native.file.as_ref().map(|sent| json!(format!("{FILE_REFERENCE}{}", sent.sha256)));
        let names = |parts: &Vec<SentPart>| json!(parts.iter().map(|part| &part.name).collect::<Vec<_>>());
        let body = native.body.clone().or(form).or(file).or(native.multipart.as_ref().map(names));
        let body = body.unwrap_or_default();
        let digest = hex::encode(sdk_json::digest(&body));
        format!("{} {} {}", native.method, native.path, &digest[..12])
    });
    json!({ "calls": calls.collect::<Vec<_>>() })
}

fn outcome_of(outcome: &CallOutcome) -> Value {
    match outcome {
        CallOutcome::Done(_) => json!("done"),
        CallOutcome::Pending(_) => json!("pending"),
        CallOutcome::Failed(fault) => fault_of(fault),
    }
}

/// Where the cassettes of a vendor are.
pub(super) fn folder(vendor: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters").join(vendor).join("cassettes")
}
