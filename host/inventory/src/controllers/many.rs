//! Many controllers at once: tested side by side, or read as soon as possible; each by itself.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use futures::StreamExt as _;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{ControllerId, OrgId, SiteLevel};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::bulk::{ItemError, Outcomes, check_ids};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, Origin};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_runtime::CallError;
use heddle_store::controllers::{self, ControllerTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::probe::{self, Tested};
use crate::adapters::call_for;
use crate::sync::Bell;

/// Most controllers of one test.
const TESTS_MAX: usize = 50;
/// Most controllers of one request to read them.
const SYNCS_MAX: usize = 200;
/// Tests at a time, of one request.
const PARALLEL: usize = 8;
/// How long one controller may take.
const ONE_LIMIT: Duration = Duration::from_secs(15);
/// How long all tests of a request may take together.
const ALL_LIMIT: Duration = Duration::from_mins(1);
/// Pause before another try where no slot for a call was free.
const SLOT_PAUSE: Duration = Duration::from_millis(200);

heddle_core::words! {
    pub enum ControllerBulkStatus {
        /// The test was made; `test` says how it ended.
        Tested = "tested",
        Scheduled = "scheduled",
        /// It does not exist, or the caller may not see it.
        NotFound = "not_found",
        Error = "error",
    }
}

use ControllerBulkStatus as Status;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ControllerIds")]
struct IdsBody {
    /// Different ones, 1 to 200.
    #[schemars(length(min = 1, max = SYNCS_MAX))]
    controller_ids: Vec<ControllerId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ControllersToTest")]
struct TestBody {
    /// Different ones, 1 to 50.
    #[schemars(length(min = 1, max = TESTS_MAX))]
    controller_ids: Vec<ControllerId>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ControllerBulkItem")]
struct Item {
    id: ControllerId,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<Tested>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

pub(super) fn routes(access: Access) -> Routes {
    Routes::default()
        .post(
            "/controllers/test",
            access,
            test,
            doc("Ask up to 50 controllers, 8 at a time and for a minute at most, whether they answer; \
                 those that do count as succeeded")
            .body::<TestBody>()
            .answers::<Outcomes<Item>>(200),
        )
        .post(
            "/controllers/sync",
            access,
            sync,
            doc("Read up to 200 controllers as soon as possible")
                .body::<IdsBody>()
                .answers::<Outcomes<Item>>(202),
        )
}

impl Item {
    fn new(id: ControllerId, outcome: Result<Status, Error>) -> Self {
        let (status, error) = match outcome {
            Ok(status) => (status, None),
            Err(error) => (Status::Error, Some(error.into())),
        };
        Self { id, status, test: None, error }
    }

    fn tested(id: ControllerId, outcome: Result<Tested, Error>) -> Self {
        match outcome {
            Ok(test) => Self { id, status: Status::Tested, test: Some(test), error: None },
            Err(error) => Self::new(id, Err(error)),
        }
    }

    fn has_answered(&self) -> bool {
        self.test.as_ref().is_some_and(Tested::is_ok)
    }
}

/// Returns the items in the order of the request; those that were not found are marked as such.
fn in_order(ids: &[ControllerId], items: Vec<Item>) -> Vec<Item> {
    let mut items: HashMap<ControllerId, Item> = items.into_iter().map(|item| (item.id, item)).collect();
    let absent = |id| Item::new(id, Ok(Status::NotFound));
    ids.iter().map(|id| items.remove(id).unwrap_or_else(|| absent(*id))).collect()
}

fn checked(ids: Vec<ControllerId>, most: usize) -> Result<Vec<ControllerId>, Error> {
    let mut checks = Checks::default();
    check_ids(&mut checks, "controller_ids", &ids, most);
    checks.done()?;
    Ok(ids)
}

async fn test(by: By, Json(body): Json<TestBody>) -> Result<Answer<Outcomes<Item>>, Error> {
    let By { app, caller, origin } = &by;
    let ids = checked(body.controller_ids, TESTS_MAX)?;
    let targets = {
        let mut tx = app.db.read().await?;
        controllers::find_targets(&mut tx, &caller.scope(), &ids).await?
    };
    let orgs: HashMap<ControllerId, OrgId> =
        targets.iter().map(|target| (target.id, target.org_id)).collect();
    let started = Instant::now();
    let tests = targets.into_iter().map(|target| {
        let (app, caller, origin) = (app, caller, origin);
        async move {
            let left = ALL_LIMIT.saturating_sub(started.elapsed());
            let tested = tokio::time::timeout(left, test_one(app, caller, origin, &target)).await;
            Item::tested(target.id, tested.unwrap_or_else(|_elapsed| Err(not_in_time())))
        }
    });
    let items: Vec<Item> = futures::stream::iter(tests).buffer_unordered(PARALLEL).collect().await;
    record(app, caller, origin, &orgs, &items).await?;
    Ok(Answer(Outcomes::of(in_order(&ids, items), Item::has_answered)))
}

async fn test_one(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    target: &ControllerTarget,
) -> Result<Tested, Error> {
    caller.require_level(target.site_id, SiteLevel::Write)?;
    let mut call = call_for(target, &origin.request_id)?;
    call.deadline = Some(ONE_LIMIT);
    let adapter = app.adapter(&target.vendor)?;
    probe::check_shape(app, &adapter, target).await?;
    loop {
        match probe::ask(&adapter, &call, caller).await {
            // Slots that silent controllers hold become free; the limit of all tests ends the waiting.
            Err(Error::Adapter(CallError::Overload)) => tokio::time::sleep(SLOT_PAUSE).await,
            outcome => return outcome,
        }
    }
}

fn not_in_time() -> Error {
    let message =
        "the tests of this request took more than a minute together; test this controller by itself";
    Fault::new(FaultKind::Timeout, message).into()
}

/// One audit entry per organization: which of its controllers were asked, and which answered.
async fn record(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    orgs: &HashMap<ControllerId, OrgId>,
    items: &[Item],
) -> Result<(), Error> {
    let mut asked: BTreeMap<OrgId, Vec<&Item>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.test.is_some()) {
        if let Some(org) = orgs.get(&item.id) {
            asked.entry(*org).or_default().push(item);
        }
    }
    if asked.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    for (org, items) in asked {
        let (ok, failed): (Vec<&Item>, Vec<&Item>) = items.into_iter().partition(|item| item.has_answered());
        let ids = |items: Vec<&Item>| items.into_iter().map(|item| item.id).collect::<Vec<_>>();
        let entry = NewEntry {
            org,
            actor: caller.actor(),
            action: "controller.bulk_tested",
            target: ("organization", org.0),
            detail: json!({ "ok": ids(ok), "failed": ids(failed) }),
        };
        entry::record(&mut tx, app, origin, entry).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn sync(
    State(app): State<SharedApp>,
    caller: Caller,
    Json(body): Json<IdsBody>,
) -> Result<(StatusCode, Answer<Outcomes<Item>>), Error> {
    let ids = checked(body.controller_ids, SYNCS_MAX)?;
    let mut tx = app.db.write().await?;
    let targets = controllers::find_targets(&mut tx, &caller.scope(), &ids).await?;
    let judge = |target: &ControllerTarget| {
        let allowed = caller.require_level(target.site_id, SiteLevel::Write);
        Item::new(target.id, allowed.map(|()| Status::Scheduled))
    };
    let items: Vec<Item> = targets.iter().map(judge).collect();
    let is_scheduled = |item: &Item| item.status == Status::Scheduled;
    let scheduled: Vec<ControllerId> = items.iter().filter(|i| is_scheduled(i)).map(|i| i.id).collect();
    controllers::schedule_all_now(&mut tx, &scheduled, app.clock.now()).await?;
    tx.commit().await?;
    Bell::of(&app).ring();
    Ok((StatusCode::ACCEPTED, Answer(Outcomes::of(in_order(&ids, items), is_scheduled))))
}
