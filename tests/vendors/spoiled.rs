//! Spoiled answers reach the built components through a server's egress: whatever comes, they end with an answer or a fault.
//!
//! Every mutant of every cassette is answered natively, beside each adapter. What only the sandbox has is seen here on a
//! part of them: its memory, its time, its conversions, and the host's own look at answers, such as a session that ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use heddle_core::tls::{TlsMode, TlsPolicy};
use heddle_runtime::{Adapter, Call as Settings, CallError};
use heddle_sdk::testing::cassette::{Call, Cassette, Envelope, Mutant, Recorded, mutants};

use super::practice::Vendor;
use super::recorder::{PRACTICE, folder};
use super::sandbox::{Peer, Sandbox};

/// Answers of each vendor that are spoiled, spread over its cassette.
const ANSWERS: usize = 40;
/// Ways in which each is spoiled; the next answer is spoiled in the next ways.
const WAYS: usize = 3;
const BODY_BYTES_MAX: usize = 64 << 20;

/// What is done to the answers of one path, from the one of this number on.
struct Spoiling {
    method: String,
    path: String,
    from: usize,
    seen: usize,
    spoiled: usize,
    answer: heddle_sdk::Response,
}

/// Stands between the server and the device.
#[derive(Clone)]
struct Between {
    device: String,
    client: reqwest::Client,
    spoiling: Arc<Mutex<Option<Spoiling>>>,
}

impl Between {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is no part of the server, and lives as long as the test"
    )]
    async fn start(device: String) -> (Self, String) {
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.danger_accept_invalid_certs(true).build().expect("a client can be made");
        let between = Self { device, client, spoiling: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let serving = Router::new().fallback(forward).with_state(between.clone());
        tokio::spawn(async move { axum::serve(listener, serving).await });
        (between, url)
    }

    fn spoil(&self, spoiling: Option<Spoiling>) -> Option<Spoiling> {
        std::mem::replace(&mut *self.spoiling.lock().unwrap_or_else(PoisonError::into_inner), spoiling)
    }

    /// The answer that is given instead of the device's.
    fn instead(&self, method: &str, path: &str) -> Option<heddle_sdk::Response> {
        let mut spoiling = self.spoiling.lock().unwrap_or_else(PoisonError::into_inner);
        let spoiling = spoiling.as_mut().filter(|one| one.method == method && one.path == path)?;
        spoiling.seen += 1;
        (spoiling.seen > spoiling.from).then(|| {
            spoiling.spoiled += 1;
            spoiling.answer.clone()
        })
    }
}

async fn forward(State(between): State<Between>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_BYTES_MAX).await.expect("a request has a body");
    let sent = between.client.request(parts.method.clone(), format!("{}{}", between.device, parts.uri));
    let mut headers = parts.headers;
    headers.remove("host");
    let answer = sent.headers(headers).body(body).send().await.expect("the device answers");
    if let Some(spoiled) = between.instead(parts.method.as_str(), parts.uri.path()) {
        let mut response = Response::builder().status(spoiled.status);
        for header in &spoiled.headers {
            response = response.header(&header.name, header.value.as_slice());
        }
        return response.body(Body::from(spoiled.body)).expect("a mutant is an answer");
    }
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers().iter().filter(|(name, _)| *name != "transfer-encoding") {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.bytes().await.expect("the answer has a body"))).expect("an answer")
}

/// Makes a call of a cassette again that depends on no other.
async fn call(adapter: &Adapter, at: &Settings, call: &Call) -> Result<(), CallError> {
    match call {
        Call::Check => adapter.check(at).await.map(drop),
        Call::ListSites => adapter.list_sites(at, None).await.map(drop),
        Call::ListDevices { site, cursor } => {
            adapter.list_devices(at, site.as_deref(), cursor.as_deref()).await.map(drop)
        }
        Call::ListObjects { kind, site, cursor } => {
            adapter.list_objects(at, kind, site.as_deref(), cursor.as_deref(), 100, &[]).await.map(drop)
        }
        Call::GetObject { kind, site, key } => {
            adapter.get_object(at, kind, site.as_deref(), key).await.map(drop)
        }
        Call::ListModel { kind, site, cursor } => {
            adapter.list_model(at, kind, site.as_deref(), cursor.as_deref()).await.map(drop)
        }
        Call::Plan { .. }
        | Call::Ready { .. }
        | Call::Judge { .. }
        | Call::Poll { .. }
        | Call::Compare { .. } => {
            unreachable!("only reads are made again")
        }
    }
}

fn is_read(recorded: &Recorded) -> bool {
    matches!(
        recorded.call,
        Call::Check
            | Call::ListSites
            | Call::ListDevices { .. }
            | Call::ListObjects { .. }
            | Call::GetObject { .. }
            | Call::ListModel { .. }
    )
}

/// The answers that are spoiled: calls, and the place of an exchange of each.
fn chosen(cassette: &Cassette) -> Vec<(&Recorded, usize)> {
    let reads = cassette.calls.iter().filter(|recorded| is_read(recorded));
    let all: Vec<_> = reads
        .flat_map(|recorded| (0..recorded.exchanges.len()).map(move |place| (recorded, place)))
        .collect();
    let each = all.len().div_ceil(ANSWERS).max(1);
    all.into_iter().step_by(each).collect()
}

async fn every_call_ends(vendor: &'static dyn Vendor) {
    let (device, vendor) = (vendor.start().await, vendor.id());
    let (between, url) = Between::start(device.url()).await;
    let peer = Peer {
        url,
        credential: device.credential(),
        settings: device.settings(),
        tls: TlsPolicy { mode: TlsMode::Insecure, ..TlsPolicy::default() },
        reference_key: [9; 32],
        source: String::new(),
    };
    let Sandbox { adapter, call: mut settings, runtime } = Sandbox::start(vendor, &peer).await;
    settings.deadline = Some(Duration::from_secs(10));
    call(&adapter, &settings, &Call::Check).await.expect("the device answers");
    let text = std::fs::read_to_string(folder(vendor).join(PRACTICE)).expect("there is a cassette");
    let cassette = Cassette::load(&text).expect("the cassette can be read");
    let envelope = Envelope { proof: &[], turned: &[] };
    let mut given: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut way, mut unspoiled) = (0, 0);
    for (recorded, place) in chosen(&cassette) {
        let number = recorded.exchanges[place];
        let exchange = &cassette.exchanges[number];
        let path = |number: &usize| {
            let path = &cassette.exchanges[*number].path;
            path.split_once('?').map_or(path.as_str(), |(path, _)| path)
        };
        let from = recorded.exchanges[..place].iter().filter(|before| path(before) == path(&number)).count();
        let all = mutants(&exchange.answer, &envelope, number as u64, WAYS);
        for _ in 0..WAYS {
            let Mutant { answer, name, .. } = &all[way % all.len()];
            way += 1;
            between.spoil(Some(Spoiling {
                method: exchange.method.clone(),
                path: path(&number).to_owned(),
                from,
                seen: 0,
                spoiled: 0,
                answer: answer.clone(),
            }));
            let gave = call(&adapter, &settings, &recorded.call).await;
            let spoiled = between.spoil(None).map_or(0, |one| one.spoiled);
            unspoiled += usize::from(spoiled == 0);
            let told = match &gave {
                Ok(()) => "an answer",
                Err(CallError::Fault(_)) => "a fault",
                Err(other) => panic!(
                    "{vendor}: {:?}, {} {}, {name}: {other}",
                    recorded.call, exchange.method, exchange.path
                ),
            };
            *given.entry(told).or_default() += 1;
        }
    }
    // The device is well again: nothing of it stayed.
    call(&adapter, &settings, &Call::Check).await.expect("the device answers again");
    let all: usize = given.values().sum();
    assert!(all >= 60 && given.contains_key("a fault"), "{vendor}: {given:?}");
    assert!(unspoiled * 10 <= all, "{vendor}: {unspoiled} of {all} calls did not ask what was spoiled");
    drop(runtime);
}

test_each_vendor!(every_call_ends);
