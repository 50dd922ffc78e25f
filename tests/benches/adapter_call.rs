//! Calls of the `OpenWrt` adapter through the sandbox, compared with the same functions called natively.
//!
//! One call makes no request, so that all of its time is the call's own: leave
//! to call, a fresh instance, the way to the guests' threads and back. The other
//! plans a change against a router and is what a person waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use heddle_adapter_openwrt::OpenWrt;
use heddle_core::change::{ChangeSpec, Operation};
use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_core::{Clock, ControllerId, CredentialId, OrgId};
use heddle_lab_openwrt::Router;
use heddle_marketplace::{Verified, parse_trusted_keys};
use heddle_runtime::{Adapter, Call, Credential, SecretBook, Target, Urgency, Vault, VaultError};
use heddle_sdk::testing::FakeHost;
use heddle_sdk::{Adapter as _, Change, Listing, fault};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::measure::{Report, in_turns, ratio, show};
use crate::plain_host::PlainHost;
use crate::sandbox;
use crate::support::packages;

const PASSWORD: &str = "router-bench-5uP3r";
const CALLS: usize = 5_000;
const PLANS: usize = 500;
/// As many as one organization may have under way.
const PARALLEL: usize = 16;
/// About what a call computes between the way to the guests' threads and the way back.
const COMPUTING: Duration = Duration::from_micros(45);
/// A kind that the adapter does not know, which it says without asking the device.
const NO_KIND: &str = "acme";

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let router = runtime.block_on(Router::builder().password(PASSWORD).start());
    let (sandbox, adapter) = runtime.block_on(load());
    let call = call_to(&router);
    empty_call(runtime, report, &adapter, &call);
    report.noise.sample();
    plan(runtime, report, &adapter, &call, &router);
    sandbox.shutdown();
    runtime.block_on(router.shutdown());
}

fn empty_call(runtime: &Runtime, report: &mut Report, adapter: &Adapter, call: &Call) {
    let host = FakeHost::new(|_, _| Err(fault::generic("nothing is asked")));
    let sandboxed = || runtime.block_on(adapter.list_objects(call, NO_KIND, None, None, 100, &[]));
    let native = || OpenWrt::list_objects(&host, &Listing::of(NO_KIND, 100));
    assert!(sandboxed().is_err() && native().is_err(), "there is no kind '{NO_KIND}'");
    let (ours, baseline) = in_turns(500, CALLS, sandboxed, native);
    assert!(host.sent.borrow().is_empty(), "the adapter asks nothing");
    let own = ours.median().saturating_sub(baseline.median());
    let threads =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads can be started");
    let elsewhere = || runtime.block_on(async { threads.spawn(async { compute(COMPUTING) }).await });
    let (way, _) = in_turns(500, CALLS, elsewhere, native);
    let together = || (0..PARALLEL).map(|_| adapter.list_objects(call, NO_KIND, None, None, 100, &[]));
    let (together, _) = in_turns(50, CALLS / PARALLEL, || runtime.block_on(join_all(together())), native);
    let each = together.median() / u32::try_from(PARALLEL).expect("it is small");
    report.row("call without a request, native", &baseline, "", "");
    report.row("call without a request, sandbox", &ours, format!("+{}", show(own)), "< 60 us");
    let way_alone = format!("+{}", show(way.median().saturating_sub(COMPUTING)));
    report.row("45 us of computing, on another thread", &way, way_alone, "");
    report.row("16 calls at a time, sandbox", &together, format!("{} each", show(each)), "");
}

/// Keeps a thread busy.
fn compute(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn plan(runtime: &Runtime, report: &mut Report, adapter: &Adapter, call: &Call, router: &Router) {
    let payload = json!({
        "name": "Allow-HTTPS", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
    });
    let feature = "openwrt.firewall.rule".to_owned();
    let change = Change {
        feature: feature.clone(),
        operation: heddle_sdk::Operation::Create,
        site: None,
        payload: payload.to_string(),
    };
    let spec = ChangeSpec { feature, operation: Operation::Create, site: None, payload };
    let host = PlainHost::log_in(runtime, router, PASSWORD);
    let secrets = SecretBook::default();
    let sandboxed = || runtime.block_on(adapter.plan(call, std::slice::from_ref(&spec), &secrets, &[]));
    let native = || OpenWrt::plan(&host, std::slice::from_ref(&change));
    let token = sandboxed().expect("the rule can be planned").0.token;
    assert_eq!(token, native().expect("the rule can be planned").token, "both plan the same");
    let (ours, baseline) = in_turns(50, PLANS, sandboxed, native);
    report.row("plan of a firewall rule, native", &baseline, "", "");
    let times = ratio(ours.median(), baseline.median());
    report.row("plan of a firewall rule, sandbox", &ours, format!("x {times:.2}"), "");
}

async fn load() -> (Arc<heddle_runtime::Runtime>, Adapter) {
    let sandbox = sandbox::start(Arc::new(OneCredential), None);
    let trusted = std::fs::read(packages().join("trusted-keys.json")).expect("packages are built");
    let trusted = parse_trusted_keys(&trusted).expect("the keys are sound");
    let package = Verified::open_dir(&packages().join("openwrt"), &trusted).expect("the package is signed");
    let adapter = sandbox.load(&package).await.expect("the adapter is loaded");
    (sandbox, adapter)
}

fn call_to(router: &Router) -> Call {
    let clock = Clock::default();
    Call {
        target: Target {
            org_id: clock.new_id(),
            controller_id: clock.new_id(),
            url: router.url().parse().expect("a router has a URL"),
            tls: TlsPolicy::default(),
            credential_id: clock.new_id(),
            credential_version: 1,
            settings: json!({}),
            site_ref: None,
        },
        request_id: "bench".to_owned(),
        deadline: Some(Duration::from_secs(30)),
        progress: None,
        urgency: Urgency::Ordinary,
    }
}

/// A credential store with one credential.
struct OneCredential;

#[async_trait::async_trait]
impl Vault for OneCredential {
    async fn credential(&self, _: OrgId, _: CredentialId) -> Result<Credential, VaultError> {
        let field = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        Ok(Credential { fields: vec![field("username", "root"), field("password", PASSWORD)] })
    }

    fn reference_key(&self, _: ControllerId) -> [u8; 32] {
        [9; 32]
    }
}
