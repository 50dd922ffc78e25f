//! The form of what is sent, and what comes where the device itself did not answer.

use std::cell::RefCell;
use std::iter;

use heddle_sdk::testing::{FakeHost, json_body, json_response, send_stage};
use heddle_sdk::{
    Adapter, Auth, Availability, DeviceProfile, Effect, Fault, FaultExt, Header, Host, Listing, Method,
    Operation, Response, Stage,
};
use serde_json::{Value, json};

use super::answers::{judged, page, read};
use super::device::{Device, router};
use super::{change, every_change, plan};
use crate::{OpenWrt, inventory, rpc};

/// The call that stands for a session in a request which the host has not filled yet.
const NO_SESSION: &str = "00000000000000000000000000000000";

fn manifest() -> Value {
    serde_json::from_str(include_str!("../../manifest.json")).unwrap()
}

/// One request with the calls that it carries.
pub(super) struct Asked {
    is_post: bool,
    path: String,
    is_in_session: bool,
    pub(super) calls: Vec<Value>,
}

/// A router that also answers what is not in its files.
fn filled_router() -> Device {
    let device = router();
    let board = json!([0, {"hostname": "gw", "board_name": "m", "release": {"version": "24.10.0"}}]);
    let radios = json!([0, {"radio0": {"interfaces": [{"ifname": "phy0-ap0"}]}}]);
    device.answers.borrow_mut().extend([
        ("system.board".to_owned(), board),
        ("system.info".to_owned(), json!([0, {"uptime": 5000}])),
        ("network.wireless.status".to_owned(), radios),
        ("iwinfo.assoclist".to_owned(), json!([0, {"results": []}])),
        ("file.read".to_owned(), json!([4])),
        ("luci-rpc.getHostHints".to_owned(), json!([0, {}])),
    ]);
    device
}

/// Reads all that can be read, and plans, applies and restores each change.
pub(super) fn everything() -> Vec<Asked> {
    let all = RefCell::new(Vec::new());
    for change in iter::once(None).chain(every_change().into_iter().map(Some)) {
        let device = filled_router();
        let host = FakeHost::new(|request, auth| {
            let body = json_body(request).unwrap();
            all.borrow_mut().push(Asked {
                is_post: matches!(request.method, Method::Post),
                path: request.path.clone(),
                is_in_session: matches!(auth, Auth::Session(name) if name == rpc::SESSION),
                calls: body.as_array().cloned().unwrap_or_else(|| vec![body]),
            });
            device.host().send(request.clone(), auth.clone())
        });
        let Some(change) = change else {
            OpenWrt::check(&host).unwrap();
            OpenWrt::list_devices(&host, None, None).unwrap();
            for kind in inventory::objects::KINDS {
                OpenWrt::list_objects(&host, &Listing::of(kind.id, 10)).unwrap();
            }
            continue;
        };
        let plan = OpenWrt::plan(&host, &[change]).unwrap();
        for stage in [Stage::Apply, Stage::Confirm, Stage::Restore] {
            send_stage::<OpenWrt>(&host, stage, &[], &plan).unwrap();
        }
        OpenWrt::compare(&host, &[], &plan.token).unwrap();
    }
    all.into_inner()
}

/// The method "call", not the one that lists objects.
pub(super) fn is_call(call: &Value) -> bool {
    call["method"] == "call"
}

/// Other methods, and paths of newer web servers, are refused by the releases in use.
#[test]
fn every_request_is_a_post_of_json_rpc_to_one_path() {
    let asked = everything();
    assert!(asked.len() > 100, "{}", asked.len());
    for one in &asked {
        assert!(one.is_post && one.path == "/ubus", "{}", one.path);
        assert!(!one.calls.is_empty());
        for call in &one.calls {
            assert_eq!(call["jsonrpc"], "2.0", "{call}");
            assert!(is_call(call) || call["method"] == "list", "{call}");
        }
    }
}

/// With another number of parameters, or with a session among the arguments, the device answers that it cannot parse.
#[test]
fn every_call_has_four_parameters_and_ends_with_an_object() {
    for call in everything().iter().flat_map(|one| &one.calls).filter(|call| is_call(call)) {
        let parameters = call["params"].as_array().unwrap();
        let [session, object, method, arguments] = &parameters[..] else { panic!("{call}") };
        assert_eq!(session, "", "the host fills it in: {call}");
        assert!(object.is_string() && method.is_string(), "{call}");
        assert!(arguments.is_object() && arguments.get("ubus_rpc_session").is_none(), "{call}");
    }
}

#[test]
fn only_the_list_of_objects_goes_without_a_session() {
    for one in everything() {
        assert_eq!(one.is_in_session, one.calls.iter().all(is_call), "{:?}", one.calls);
    }
}

/// The device takes a value of another type for one that is missing, and then its own default.
#[test]
fn optional_arguments_have_the_type_of_the_device() {
    let mut seen = 0;
    for call in everything().iter().flat_map(|one| &one.calls) {
        let arguments = &call["params"][3];
        if call["params"][2] == "apply" {
            seen += 1;
            assert_eq!(arguments["rollback"], json!(true), "{call}");
            assert!(arguments["timeout"].is_u64() || arguments["timeout"] == "{{host.hold_secs}}", "{call}");
        }
    }
    assert!(seen > every_change().len(), "{seen}");
    let device = filled_router();
    for keep in [true, false] {
        let payload = json!({
            "url": "http://192.0.2.1/image.bin", "sha256": "ab".repeat(32), "keep_settings": keep,
        });
        let upgrade = change("system.firmware-upgrade", Operation::Update, &payload);
        let calls = plan(&device, &upgrade).unwrap().native;
        assert_eq!(calls.last().unwrap().json().unwrap()["params"][3]["keep"], json!(keep));
    }
}

#[test]
fn redirect_is_a_fault_and_is_not_followed() {
    for status in [301, 302, 307, 308] {
        let away = Header { name: "location".to_owned(), value: b"https://192.0.2.1/ubus".to_vec() };
        let answer = Response { headers: vec![away], ..page(status) };
        let host = FakeHost::new(|_, _| Ok(answer.clone()));
        let fault = OpenWrt::check(&host).unwrap_err();
        assert!(matches!(&fault, Fault::Generic(_)), "{fault:?}");
        assert_eq!(fault.info().upstream_status, Some(status));
        assert_eq!(host.sent.borrow().len(), 1);
        judged(Stage::Apply, "apply", answer.clone()).unwrap_err();
    }
}

/// The web server takes 65536 bytes and no more; a call is never cut in two.
#[test]
fn call_that_the_web_server_would_not_take_is_refused_when_it_is_planned() {
    let names: Vec<String> = (0..6_000).map(|number| format!("rule_{number:04}")).collect();
    let body = |name: &str| json!({"name": name, "target": "ACCEPT"});
    let rows: Vec<(&str, &str, Value)> =
        names.iter().map(|name| ("rule", name.as_str(), body(name))).collect();
    let device = Device::default().file("firewall", &rows);
    let payload = json!({"name": "rule_0007", "before": "rule_0003"});
    let fault = plan(&device, &change("firewall.rule-order", Operation::Update, &payload)).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains("65536")), "{fault:?}");
    assert_eq!(manifest()["limits"]["request-bytes"], 65_536);
    for one in everything() {
        assert!(json!(one.calls).to_string().len() < 65_536);
    }
}

/// How a session begins and ends: wrong credentials, and the one answer for ended sessions and for missing rights.
#[test]
fn manifest_fits_the_sessions_of_the_device() {
    let manifest = manifest();
    let session = &manifest["auth"][rpc::SESSION];
    let login = &session["login"][0];
    let parameters = &login["request"]["json"]["params"];
    assert_eq!(
        (&parameters[0], &parameters[1], &parameters[2]),
        (&json!(NO_SESSION), &json!("session"), &json!("login"))
    );
    assert_eq!(login["denied"], json!({"json": {"/result/0": [6]}}));
    assert_eq!(login["expect"]["json"], json!({"/result/0": [0]}));
    // One that never ends would stay at the device for good.
    let (asked, kept) = (parameters[3]["timeout"].as_u64().unwrap(), session["ttl-s"].as_u64().unwrap());
    assert!(kept > 0 && kept < asked, "{kept} {asked}");
    // The second one is of the form in which channels are opened.
    let expired = json!([{"json": {"/error/code": [-32002]}}, {"json": {"/error/code": [-13]}}]);
    assert_eq!(session["expired"], expired);
    assert_eq!(session["expired-before-effect"], true);
    assert!(
        session.get("logout").is_none(),
        "it would end the session of another client, which the device lends"
    );
}

#[test]
fn answers_of_a_batch_belong_to_its_calls_in_order() {
    let host = FakeHost::new(|_, _| {
        let answers =
            json!([{"result": [0, {"n": 1}]}, {"result": [6]}, {"error": {"code": -32000}}, {"result": [0]}]);
        Ok(json_response(200, &answers))
    });
    let reads = ["a", "b", "c", "d"].map(|method| ("x", method, json!({})));
    let answers = rpc::batch(&host, &reads).unwrap();
    assert_eq!(answers[0].as_ref().unwrap(), &json!({"n": 1}));
    assert!(answers[1].as_ref().is_err_and(rpc::CallError::is_denied));
    assert!(answers[2].as_ref().is_err_and(rpc::CallError::is_absent));
    assert_eq!(answers[3].as_ref().unwrap(), &json!({}));
    let methods: Vec<Value> =
        host.sent.borrow()[0].as_array().unwrap().iter().map(|call| call["params"][2].clone()).collect();
    assert_eq!(methods, ["a", "b", "c", "d"]);
}

/// The device prints 32 bits with a sign, and counters of 64 bits as they are.
#[test]
fn numbers_keep_their_sign_and_their_size() {
    let device = router();
    let lease = json!({"mac": "020000000077", "address": "192.168.1.50", "valid": -1, "iaid": -2});
    let counters = json!({"rx_bytes": 9_007_199_254_740_993_u64, "tx_bytes": 5_000_000_000_u64});
    device.answers.borrow_mut().extend([
        ("system.board".to_owned(), json!([0, {"hostname": "gw", "board_name": "m"}])),
        ("system.info".to_owned(), json!([0, {"uptime": 5}])),
        ("network.device.status".to_owned(), json!([0, {"lan1": {"up": true, "statistics": counters}}])),
        ("dhcp.ipv4leases".to_owned(), json!([0, {"device": {"br-lan": {"leases": [lease]}}}])),
        ("luci-rpc.getDHCPLeases".to_owned(), json!([0, {"dhcp_leases": []}])),
    ]);
    let leases = OpenWrt::list_objects(&device.host(), &Listing::of("dhcp.lease", 10)).unwrap();
    let body: Value = serde_json::from_str(&leases.items[0].body).unwrap();
    assert_eq!((&body["mac"], &body["expires_secs"]), (&json!("02:00:00:00:00:77"), &Value::Null));
    let page = OpenWrt::list_devices(&device.host(), None, None).unwrap();
    let measured = &page.items[0].measurements;
    assert!(measured.contains("9007199254740993") && measured.contains("5000000000"), "{measured}");
}

#[test]
fn every_other_code_of_the_envelope_is_a_fault() {
    let of = |code: i64| read(json!({"error": {"code": code, "message": "x"}}));
    for code in [-32700, -32600, -32602] {
        assert!(matches!(of(code), Fault::Invalid(_)), "{code}");
    }
    for code in [-32601, -32603, -32001, -1] {
        assert!(matches!(of(code), Fault::Generic(_)), "{code}");
        assert_eq!(of(code).info().code, Some(format!("vendor:{code}")));
    }
    // Out of memory, and two kinds of trouble that newer devices tell apart.
    for status in [11, 12, 13] {
        assert!(matches!(read(json!([status])), Fault::Generic(_)), "{status}");
    }
}

/// What a read of rules is answered where the file is asked for and this comes.
fn rules(answer: Value) -> Fault {
    let device = router();
    device.answers.borrow_mut().insert("uci.get".to_owned(), answer);
    OpenWrt::list_objects(&device.host(), &Listing::of("firewall.rule", 10)).unwrap_err()
}

#[test]
fn file_that_is_absent_broken_or_not_permitted_is_named() {
    let absent = rules(json!([4]));
    assert!(matches!(&absent, Fault::Unsupported(info) if info.message.contains("/etc/config/firewall")));
    assert_eq!(absent.info().code.as_deref(), Some("config-absent"));
    for status in [9, 12] {
        let broken = rules(json!([status]));
        assert!(matches!(&broken, Fault::Generic(info) if info.message.contains("/etc/config/firewall")));
        assert_eq!(broken.info().code.as_deref(), Some("config-broken"), "{status}");
    }
    // The device asks twice: whether the call is permitted, and whether it is for this file.
    for answer in [json!([6]), json!({"error": {"code": -32002}})] {
        let denied = rules(answer);
        assert!(matches!(&denied, Fault::Denied(info) if info.message.contains("'firewall'")), "{denied:?}");
    }
}

#[test]
fn apply_of_nothing_changed_nothing() {
    let nothing = json_response(200, &json!({"result": [5]}));
    let fault = judged(Stage::Apply, "apply", nothing).unwrap_err();
    assert!(matches!(&fault, Fault::Generic(info) if info.message.contains("nothing staged")), "{fault:?}");
    assert!(matches!(fault.info().effect, Effect::None));
}

/// A router whose user has these rights, as far as it is asked.
fn checked(access: Value) -> DeviceProfile {
    let device = filled_router();
    device.answers.borrow_mut().insert("session.access".to_owned(), access);
    OpenWrt::check(&device.host()).unwrap()
}

#[test]
fn rights_are_asked_for_before_they_are_needed() {
    let of = |access: Value, id: &str| {
        let profile = checked(access);
        let found = profile.capabilities.into_iter().find(|known| known.id == id).unwrap();
        (found.available, found.reason)
    };
    for config in ["network", "firewall", "dhcp", "system"] {
        let id = format!("write.{config}");
        assert!(matches!(of(json!([0, {"access": true}]), &id), (Availability::Yes, None)));
        let (denied, reason) = of(json!([0, {"access": false}]), &id);
        assert!(matches!(denied, Availability::No) && reason.unwrap().contains(config));
        assert!(matches!(of(json!([6]), &id), (Availability::Unknown, None)), "not to know is not to lack");
    }
    let device = filled_router();
    device.answers.borrow_mut().insert("session.access".to_owned(), json!([0, {"access": false}]));
    let restart = plan(&device, &change("system.reboot", Operation::Update, &json!({}))).unwrap_err();
    assert_eq!(restart.info().code.as_deref(), Some("method-denied"), "{restart:?}");
}
