//! The form of what is sent, and refusals status by status and word by word.

use heddle_sdk::crud::{Purpose, Vendor as _};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{
    Adapter as _, Completeness, Effect, Fault, FaultExt, Method, NativeBody, Operation, Response, Stage,
    fault,
};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::{change, plan, run};
use crate::answer::REFUSALS;
use crate::{Proxmox, Vendor};

fn manifest() -> Value {
    serde_json::from_str(include_str!("../../manifest.json")).unwrap()
}

fn vendor() -> Vendor {
    Vendor::of(&FakeHost::new(|_, _| Err(fault::generic("is not asked"))))
}

/// A refusal whose reason stands in the status line, and since 8.4 in the body too.
fn refusals(status: u16, reason: &str) -> [Response; 2] {
    let newer = json!({ "data": null, "message": format!("{reason}\n") });
    let older =
        Response { reason: Some(reason.to_owned()), ..json_response(status, &json!({ "data": null })) };
    [json_response(status, &newer), older]
}

/// Every path of a description.
fn paths<'d>(value: &'d Value, found: &mut Vec<&'d str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().filter(|text| name == "path" && text.starts_with('/')) {
                    Some(path) => found.push(path),
                    None => paths(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, found)),
        _ => {}
    }
}

/// The other form of the API answers 200 whatever happened.
#[test]
fn every_path_is_below_the_json_api() {
    let mut found = Vec::new();
    for section in ["kinds", "features", "model"] {
        for entry in description()[section].as_array().unwrap() {
            paths(&entry["binding"], &mut found);
        }
    }
    assert!(found.len() > 400, "{}", found.len());
    for path in found {
        assert!(path.starts_with("/api2/json/"), "{path}");
    }
    let login = &manifest()["auth"]["ticket"]["login"][0]["request"];
    assert_eq!(login["path"], "/api2/json/access/ticket");
}

#[test]
fn refusals_of_each_status_are_told_apart() {
    type Is = fn(&Fault) -> bool;
    let later: Is = |fault| matches!(fault, Fault::NotReady(info) if info.retry_after_ms.is_some());
    let login: Is = |fault| matches!(fault, Fault::Authentication(_));
    let denied: Is = |fault| matches!(fault, Fault::Denied(_));
    let cases: [(u16, &str, Is); 11] = [
        (401, "No ticket", login),
        (401, "Authentication failed!", login),
        (401, "authentication failure", login),
        (401, "permission denied - invalid PVE ticket", login),
        (401, "Permission denied - invalid csrf token", login),
        (403, "Permission check failed (/vms/100, VM.PowerMgmt)", denied),
        (403, "Permission check failed (URI not available with API token, need proper ticket.)", denied),
        (596, "Broken pipe", later),
        (597, "Connection timed out", later),
        (598, "Too many redirections", later),
        (599, "Too many open files", later),
    ];
    for (status, reason, is_right) in cases {
        for response in refusals(status, reason) {
            let read = vendor().content(&response).unwrap_err();
            assert!(is_right(&read), "{status} {reason}: {read:?}");
            // The node in between does not know how far the other one came.
            let written = vendor().written(Purpose::Update, &response).unwrap_err();
            assert_eq!(matches!(written.info().effect, Effect::Possible), status >= 595, "{status} {reason}");
        }
    }
    let unknown = json!({ "data": null, "errors": { "colour":
        "property is not defined in schema and the schema does not allow additional properties" } });
    let fault = vendor().written(Purpose::Update, &json_response(400, &unknown)).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    assert_eq!(fault.info().fields[0].pointer, "/colour");
}

#[test]
fn every_text_of_a_refusal_has_its_fault() {
    for (text, word, says) in [
        (
            "Configuration file 'nodes/x/qemu-server/100.conf' does not exist",
            "not_found",
            "there is no such object: ",
        ),
        ("no such logical volume pve/x", "not_found", "there is no such object: "),
        ("subnet 'x' not existing", "not_found", "there is no such object: "),
        ("unable to create VM 100 - VM 100 already exists on node 'pve1'", "conflict", "it exists already: "),
        ("storage ID 'x' already defined", "conflict", "it exists already: "),
        ("tag 60 is already used by vnet y", "conflict", "it exists already: "),
        ("VM is locked (backup)", "busy", "another operation holds it: "),
        (
            "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
            "busy",
            "another operation holds it: ",
        ),
        ("got timeout", "timeout", "the node waited in vain: "),
        (
            "detected modified configuration - file changed by other user? Try again.",
            "state_moved",
            "others changed it meanwhile; plan again: ",
        ),
        ("cluster not ready - no quorum?", "not_ready", "the cluster takes no writes: "),
        ("VM 100 not running", "conflict", "its state does not allow this: "),
        ("VM 100 is running - destroy failed", "conflict", "its state does not allow this: "),
        (
            "can't remove drive 'sata0' - protection mode enabled",
            "conflict",
            "its state does not allow this: ",
        ),
        ("something else", "generic", "the node refuses: "),
    ] {
        for text in [text.to_owned(), text.to_uppercase()] {
            let fault = REFUSALS.of_words(&text).fault(&text);
            assert_eq!((fault.word(), &fault.info().message), (word, &format!("{says}{text}")));
        }
    }
}

/// It has the status of a path that is missing.
#[test]
fn request_that_is_too_large_is_no_missing_path() {
    for response in refusals(501, "for data too large") {
        let fault = vendor().written(Purpose::Create, &response).unwrap_err();
        assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    }
    for response in refusals(501, "Method 'POST /cluster/x' not implemented") {
        let fault = vendor().written(Purpose::Create, &response).unwrap_err();
        assert!(matches!(fault, Fault::Unsupported(_)), "{fault:?}");
    }
    assert_eq!(manifest()["limits"]["request-bytes"], 512 * 1024, "no request gets as far");
}

/// A body of a DELETE is refused.
#[test]
fn delete_has_its_parameters_in_the_query() {
    let device = Device::new();
    let deletions = [
        (
            "firewall.alias",
            json!({ "name": "sample" }),
            Some(json!({ "name": "sample", "cidr": "192.0.2.7" })),
        ),
        ("vm.config", json!({ "vmid": 103 }), None),
        ("access.user", json!({ "userid": "operator@pve" }), None),
    ];
    for (feature, key, made) in deletions {
        if let Some(payload) = made {
            let plan = plan(&device, &change(feature, Operation::Create, &payload)).unwrap();
            run(&device, Stage::Apply, &plan).unwrap();
        }
        let made = plan(&device, &change(feature, Operation::Delete, &key)).unwrap();
        let call = &made.native[0];
        assert!(matches!(call.method, Method::Delete) && matches!(call.body, NativeBody::None), "{call:?}");
        assert_eq!(call.path.contains("?digest="), feature == "firewall.alias", "{}", call.path);
    }
}

/// A semicolon parts the fields of a form, and keys are written encoded into a form that is encoded once more.
#[test]
fn flags_and_separators_arrive_as_they_were_meant() {
    let device = Device::new();
    let keys = "ssh-ed25519%20AAAAC3Nz%2Bx%20me%40host";
    let payload = json!({ "vmid": 103, "onboot": true, "boot": "order=sata0;net0", "sshkeys": keys });
    let made = plan(&device, &change("vm.config", Operation::Update, &payload)).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let stored = device.state()["guests"]["103"]["config"].clone();
    assert_eq!((&stored["boot"], &stored["sshkeys"]), (&json!("order=sata0;net0"), &json!(keys)));
    assert!(stored["onboot"] == 1 || stored["onboot"] == "1", "{stored}");
    let off =
        plan(&device, &change("vm.config", Operation::Update, &json!({ "vmid": 103, "onboot": false })));
    let NativeBody::Form(fields) = &off.unwrap().native[0].body.clone() else { panic!("it is a form") };
    assert!(fields.contains(&("onboot".to_owned(), "0".to_owned())), "{fields:?}");
}

#[test]
fn numbers_may_come_as_texts_and_more_may_stand_beside_the_data() {
    let whole = json!({ "data": [{ "vmid": 100 }], "total": 7, "changes": "--- a", "success": 1 });
    assert_eq!(vendor().content(&json_response(200, &whole)).unwrap(), json!([{ "vmid": 100 }]));
    let identities = |vmid: Value, shared: Value| -> Vec<String> {
        let host = FakeHost::new(|request, _| {
            let rows = json!([
                { "type": "qemu", "vmid": vmid, "name": "web", "status": "running", "node": "pve1" },
                { "type": "storage", "storage": "nas", "shared": shared, "status": "available", "node": "pve1" },
            ]);
            let data = if request.path.ends_with("/resources") { rows } else { json!({}) };
            Ok(json_response(200, &json!({ "data": data })))
        });
        let page = Proxmox::list_devices(&host, None, None).unwrap();
        page.items.into_iter().map(|item| item.identity).collect()
    };
    assert_eq!(identities(json!(100), json!(1)), ["qemu/100", "storage/nas"]);
    assert_eq!(identities(json!("100"), json!("1")), ["qemu/100", "storage/nas"]);
}

/// A token may have no rights although its user has.
#[test]
fn empty_list_of_a_token_without_rights_is_said_to_be_limited() {
    let complete = |rights: Value| {
        let host = FakeHost::new(|request, _| {
            let is_rights = request.path.ends_with("/access/permissions");
            let data = if is_rights { rights.clone() } else { json!([]) };
            Ok(json_response(200, &json!({ "data": data })))
        });
        let page = Proxmox::list_devices(&host, None, None).unwrap();
        assert!(page.items.is_empty());
        page.complete
    };
    assert!(matches!(complete(json!({})), Completeness::RightsLimited));
    let of_one_guest = json!({ "/vms/100": { "VM.Audit": 1, "Sys.Audit": 1, "Datastore.Audit": 1 } });
    assert!(matches!(complete(of_one_guest), Completeness::RightsLimited));
    let of_all = json!({ "/": { "VM.Audit": 1, "Sys.Audit": 1, "Datastore.Audit": 1 } });
    assert!(matches!(complete(of_all), Completeness::Complete));
}
