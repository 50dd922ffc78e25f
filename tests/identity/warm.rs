//! What authentication costs the database: nothing for a caller who was known a moment ago.
//!
//! Counts what the databases' driver logs of each statement. That leaves out
//! the beginning and the end of a transaction that only reads.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::{Duration, Instant};

use heddle_core::adapter::{Completeness, DeviceStatus, SeenDevice};
use heddle_core::{Clock, DeviceId};
use heddle_store::devices::{self, Seen};
use heddle_store::{Scope, controllers};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Instrument as _, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::support::{Api, Server, on_both, register};

/// Less than a caller stays known.
const WARM: Duration = Duration::from_millis(700);
const ATTEMPTS: usize = 50;

on_both! {
    async fn a_warm_request_runs_the_statements_of_its_handler_only(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let device = add_device(&server, &admin).await;
        let path = format!("/devices/{device}");
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let holder = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());

        let handler = statements_of_the_handler(&server, device).await;
        assert_eq!(handler.len(), 1, "{handler:?}");
        for caller in [&admin, &holder] {
            let (cold, warm) = cold_and_warm(&server, caller, &path).await;
            assert!(cold.len() > handler.len() && cold.ends_with(&handler), "{cold:?}");
            assert_eq!(warm, handler);
        }
    }
}

/// The statements of a request by who is not known, and of the next one, which came while they were.
async fn cold_and_warm(server: &Server, caller: &Api, path: &str) -> (Vec<String>, Vec<String>) {
    for _ in 0..ATTEMPTS {
        server.running().app.callers.forget();
        let started = Instant::now();
        let [cold, warm] = [counted_request(), counted_request()];
        caller.with("x-request-id", &cold).get(path).await.expect_status(200);
        caller.with("x-request-id", &warm).get(path).await.expect_status(200);
        // On a machine that is busy the second one may come too late.
        if started.elapsed() < WARM {
            return (statements(&cold), statements(&warm));
        }
    }
    panic!("two requests take longer than {WARM:?} each time");
}

/// What reads the device, without a request around it.
async fn statements_of_the_handler(server: &Server, device: DeviceId) -> Vec<String> {
    let request = counted_request();
    let work = async {
        let mut tx = server.running().app.db.read().await.unwrap();
        devices::find(&mut tx, &Scope::everything(), device).await.unwrap().unwrap();
    };
    work.instrument(tracing::info_span!("request", request.id = %format!("ext-{request}"))).await;
    statements(&request)
}

async fn add_device(server: &Server, admin: &Api) -> DeviceId {
    let controller = register(admin, "http://127.0.0.1:9", "unused").await;
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let id = serde_json::from_value(controller["id"].clone()).unwrap();
    let controller = controllers::find(&mut tx, &Scope::everything(), id).await.unwrap().unwrap();
    let device = SeenDevice {
        identity: "02:00:00:00:00:01".to_owned(),
        name: "ap".to_owned(),
        kind: "access_point".to_owned(),
        status: DeviceStatus::Online,
        model: None,
        serial: None,
        firmware: None,
        mac: None,
        addresses: Vec::new(),
        site: None,
        attributes: json!({}),
        measurements: json!({}),
    };
    let seen = Seen {
        org_id: controller.org_id,
        site_id: controller.site_id,
        controller_id: controller.id,
        devices: &[device],
        complete: Completeness::Partial,
    };
    let sightings = devices::upsert_seen(&mut tx, &seen, &app.clock).await.unwrap();
    tx.commit().await.unwrap();
    sightings[0].device_id
}

/// Requests with an id that begins so are counted.
const COUNTED: &str = "count-";

static COUNTS: LazyLock<Mutex<HashMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);

/// An `X-Request-ID` under which the statements of one request are counted.
fn counted_request() -> String {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let is_counted = filter_fn(|metadata| {
            metadata.target() == "sqlx::query" || (metadata.is_span() && metadata.name() == "request")
        });
        let subscriber = tracing_subscriber::registry().with(Statements.with_filter(is_counted));
        tracing::subscriber::set_global_default(subscriber).expect("no other subscriber is installed");
    });
    format!("{COUNTED}{}", Clock::default().new_id::<uuid::Uuid>().simple())
}

/// The statements that ran within this request, each by its first words.
fn statements(request: &str) -> Vec<String> {
    COUNTS.lock().unwrap().remove(request).unwrap_or_default()
}

struct Statements;

/// The id that a request's span carries.
struct RequestId(String);

#[derive(Default)]
struct Fields {
    request: String,
    summary: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "request.id" => value.clone_into(&mut self.request),
            "summary" => value.clone_into(&mut self.summary),
            _ => {}
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Statements {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        // The log marks a client's own id.
        let request = fields.request.strip_prefix("ext-").filter(|request| request.starts_with(COUNTED));
        if let (Some(request), Some(span)) = (request, context.span(id)) {
            span.extensions_mut().insert(RequestId(request.to_owned()));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(mut scope) = context.event_scope(event) else { return };
        let request = scope.find_map(|span| span.extensions().get::<RequestId>().map(|id| id.0.clone()));
        let Some(request) = request else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        COUNTS.lock().unwrap().entry(request).or_default().push(fields.summary);
    }
}
