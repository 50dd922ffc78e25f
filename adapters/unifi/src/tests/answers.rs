//! What answers mean.

use heddle_sdk::crud::{Purpose, Vendor as _, Written};
use heddle_sdk::testing::{FakeHost, json_response, response};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Listing, Response};
use serde_json::{Value, json};

use super::device::Device;
use crate::{Unifi, Vendor};

fn vendor() -> Vendor {
    Vendor::of(&FakeHost::new(|_, _| Ok(json_response(200, &json!({})))))
}

/// A refusal of the first interface, with a status of its own.
fn envelope(status: u16, code: &str) -> Response {
    json_response(status, &json!({ "meta": { "rc": "error", "msg": code }, "data": [] }))
}

/// A refusal of the second one.
fn bare(status: u16, code: &str) -> Response {
    json_response(status, &json!({ "code": code, "message": "no", "errorCode": status }))
}

#[track_caller]
fn fault(answer: &Response) -> Fault {
    vendor().content(answer).unwrap_err()
}

#[test]
fn codes_of_refusals_are_told_apart_whatever_the_status() {
    for (code, word) in [
        ("api.err.LoginRequired", "authentication"),
        ("api.err.NoPermission", "denied"),
        ("api.err.IdInvalid", "not_found"),
        ("api.err.NotFound", "not_found"),
        ("api.err.UnknownDevice", "not_found"),
        ("api.err.FirewallGroupExisted", "conflict"),
        ("api.err.VlanUsed", "conflict"),
        ("api.err.MacUsed", "conflict"),
        ("api.err.DuplicateFixedIP", "conflict"),
        ("api.err.ResourceReferredBy", "conflict"),
        ("api.err.ObjectReferredByDevice", "conflict"),
        ("api.err.CannotAdopt", "not_ready"),
        ("api.err.BgpUnsupportedDevice", "unsupported"),
        ("api.err.SpeedTestNotSupported", "unsupported"),
        ("api.err.InvalidPayload", "invalid"),
        ("api.err.WireguardMissingPrivateKey", "invalid"),
    ] {
        for answer in [envelope(200, code), envelope(400, code), bare(400, code)] {
            let found = fault(&answer);
            assert_eq!(found.word(), word, "{code} {}: {found:?}", answer.status);
            assert_eq!(found.info().code, Some(format!("vendor:{code}")));
        }
    }
}

#[test]
fn row_of_the_answer_says_more_than_its_envelope() {
    let answer = json_response(
        400,
        &json!({
            "meta": { "rc": "error", "msg": "api.err.InvalidPayload" },
            "data": [{ "rc": "error", "msg": "api.err.InvalidValue", "validationError": { "field": "vlan", "pattern": "[0-9]+" } }],
        }),
    );
    let found = fault(&answer);
    assert_eq!(found.info().code.as_deref(), Some("vendor:api.err.InvalidValue"));
    let fields: Vec<&str> = found.info().fields.iter().map(|field| field.pointer.as_str()).collect();
    assert_eq!(fields, ["/vlan"]);
}

#[test]
fn official_refusals_have_a_form_and_a_status() {
    let of = |status: u16, code: &str| {
        json_response(
            status,
            &json!({
                "statusCode": status, "statusName": "X", "code": code, "message": "no", "requestPath": "/integration/v1/sites",
            }),
        )
    };
    for (status, code, word) in [
        (400, "api.request.argument-type-mismatch", "invalid"),
        (401, "api.authentication.missing-credentials", "authentication"),
        (403, "api.authorization.denied", "denied"),
        (404, "api.firewall.policy.not-found", "not_found"),
        (404, "api.something.else", "not_found"),
        (409, "api.request.conflict", "conflict"),
        (429, "api.request.limit", "rate_limit"),
    ] {
        assert_eq!(fault(&of(status, code)).word(), word, "{status} {code}");
    }
    let gate = json_response(401, &json!({ "error": "unauthorized", "message": "Invalid API key" }));
    assert_eq!(fault(&gate).word(), "authentication");
}

#[test]
fn page_is_a_controller_that_is_starting() {
    for status in [200, 302, 502, 503] {
        let found = fault(&response(status, Vec::new(), b"<!DOCTYPE html>".to_vec()));
        assert!(
            matches!(&found, Fault::NotReady(info) if info.retry_after_ms.is_some()),
            "{status}: {found:?}"
        );
    }
    let found = fault(&response(404, Vec::new(), b"<html></html>".to_vec()));
    assert!(matches!(found, Fault::Unsupported(_)), "{found:?}");
    let device = Device::new();
    device.lab().fault(heddle_lab::Fault::vendor("starting", Value::Null));
    let found = Unifi::list_objects(&device.host(), &Listing::of("wifi.wlan", 10)).unwrap_err();
    assert!(matches!(found, Fault::NotReady(_)), "{found:?}");
}

#[test]
fn answer_of_nothing_is_no_empty_list_and_a_good_write() {
    let nothing = response(200, Vec::new(), Vec::new());
    assert!(matches!(fault(&nothing), Fault::NotReady(_)));
    assert!(matches!(vendor().written(Purpose::Delete, &nothing), Ok(Written::Done)));
    let gone = response(204, Vec::new(), Vec::new());
    assert!(matches!(vendor().written(Purpose::Update, &gone), Ok(Written::Done)));
}

#[test]
fn success_is_an_envelope_that_says_so_or_a_bare_answer() {
    let good = json!({ "meta": { "rc": "ok" }, "data": [{ "a": 1 }] });
    assert_eq!(vendor().content(&json_response(200, &good)).unwrap(), good);
    assert_eq!(vendor().content(&json_response(200, &json!([]))).unwrap(), json!([]));
    assert_eq!(vendor().content(&json_response(201, &json!({ "id": "x" }))).unwrap(), json!({ "id": "x" }));
    for bad in [json!({ "meta": { "rc": "error" } }), json!({ "meta": { "rc": "perhaps" }, "data": [] })] {
        assert!(vendor().content(&json_response(200, &bad)).is_err(), "{bad}");
        assert!(vendor().written(Purpose::Create, &json_response(200, &bad)).is_err(), "{bad}");
    }
    // An envelope does not undo a status.
    assert!(vendor().content(&json_response(500, &good)).is_err());
}

#[test]
fn refusal_changed_nothing_and_what_proves_nothing_leaves_it_open() {
    for (answer, effect) in [
        (envelope(400, "api.err.InvalidPayload"), Effect::None),
        (envelope(403, "api.err.NoPermission"), Effect::None),
        (bare(400, "api.err.VlanUsed"), Effect::None),
        (bare(404, "api.err.NotFound"), Effect::Possible),
        (response(500, Vec::new(), Vec::new()), Effect::Possible),
        (response(418, Vec::new(), b"{}".to_vec()), Effect::Possible),
    ] {
        let found = vendor().written(Purpose::Update, &answer).unwrap_err();
        assert_eq!(found.info().effect, effect, "{found:?}");
    }
    assert!(matches!(
        vendor().written(Purpose::Delete, &envelope(400, "api.err.IdInvalid")),
        Ok(Written::Done)
    ));
}

#[test]
fn refused_key_is_told_as_such() {
    let device = Device::new().with_key("another-key");
    let found = Unifi::check(&device.host()).unwrap_err();
    assert!(matches!(found, Fault::Authentication(_)), "{found:?}");
}

/// Answers that a controller could give in the place of a good one, each with what it means.
#[test]
fn every_mutant_of_a_good_answer_gets_the_right_fault() {
    let good = json!({ "meta": { "rc": "ok" }, "data": [{ "_id": "6751", "name": "one" }] });
    let mutate = |pointer: &str, value: Value| {
        let mut mutant = good.clone();
        *mutant.pointer_mut(pointer).unwrap() = value;
        mutant
    };
    for (mutant, is_list) in [
        (mutate("/data", json!([])), true),
        (mutate("/data", Value::Null), true),
        (mutate("/data", json!("text")), false),
        (mutate("/data", json!(7)), false),
        (mutate("/meta/rc", json!("error")), false),
        (mutate("/meta/rc", json!("OK")), false),
        (json!({ "meta": { "rc": "ok" } }), false),
        (json!({ "data": [] }), true),
        (json!("text"), false),
        (json!(true), false),
    ] {
        let host =
            FakeHost::new(|_, _| Ok(json_response(200, &mutant))).with_package(super::device::package());
        let listed = Unifi::list_objects(&host, &Listing::of("profiles.client-group", 10));
        assert_eq!(listed.is_ok(), is_list, "{mutant}: {listed:?}");
    }
}
