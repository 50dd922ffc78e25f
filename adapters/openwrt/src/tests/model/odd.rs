//! Answers that are odd, fail or are long.

use super::*;

#[test]
fn call_that_fails_is_not_an_empty_list() {
    let bench = Bench::filled();
    let read = |kind: &str| OpenWrt::list_model(&bench.host(), kind, None, None);
    let failures = [
        json!({ "error": { "code": -32003 } }),
        json!({ "result": [7] }),
        json!({ "result": [9] }),
        json!({ "result": [10] }),
        json!({ "no": "answer" }),
    ];
    for failure in &failures {
        for (call, needing) in [
            ("system.info", &["system"][..]),
            (
                "network.interface.dump",
                &["system", "firmware", "interface", "port", "vlan", "route", "client"],
            ),
            ("network.device.status", &["system", "firmware", "interface", "port", "vlan", "route", "radio"]),
            ("network.wireless.status", &["radio", "ssid", "client"]),
        ] {
            bench.fail(call, failure);
            for (kind, _) in kinds() {
                let is_needing = needing.contains(&kind.as_str());
                // A list of others is as whole as before, or cannot be made without the router's identity.
                let is_known = matches!(read(&kind).map(|page| page.complete), Ok(Completeness::Complete));
                assert!(!(is_needing && is_known), "{kind}: {call} {failure}");
                let is_apart = kind.starts_with("dhcp-") || kind.starts_with("dns-");
                assert!(!is_apart || is_known, "{kind}: {call} {failure}");
            }
        }
    }
    bench.fail("network.device.status", &failures[0]);
    assert!(OpenWrt::list_devices(&bench.host(), None, None).is_err(), "the router would be another one");
    bench.fail("network.wireless.status", &failures[0]);
    let page = OpenWrt::list_devices(&bench.host(), None, None).unwrap();
    assert!(matches!(page.complete, Completeness::Partial));
    bench.fail("iwinfo.assoclist", &failures[0]);
    let page = OpenWrt::list_devices(&bench.host(), None, None).unwrap();
    assert!(matches!(page.complete, Completeness::Complete), "the other source tells of all stations");
}

#[test]
fn call_that_the_device_lacks_or_denies_fills_nothing() {
    let bench = Bench::filled();
    let read = |kind: &str| OpenWrt::list_model(&bench.host(), kind, None, None).unwrap();
    bench.fail("network.wireless.status", &json!({ "error": { "code": -32000 } }));
    let page = read("radio");
    assert!(page.items.is_empty() && matches!(page.complete, Completeness::Complete));
    bench.fail("network.wireless.status", &json!({ "error": { "code": -32002 } }));
    assert!(matches!(read("radio").complete, Completeness::RightsLimited));
    assert!(matches!(read("port").complete, Completeness::Complete), "it is not made of that");
}

#[test]
fn odd_answers_leave_fields_out_and_never_fail() {
    let wrong = [
        json!(null),
        json!([]),
        json!([7]),
        json!("é:*"),
        json!({ "x": [] }),
        json!({ "x": { "type": 7, "speed": "F", "bridge-vlans": [{ "id": 9999, "ports": [7, ":", "a:t"] }, 1] } }),
    ];
    for odd in &wrong {
        for nested in [
            odd.clone(),
            json!({ "interface": [odd] }),
            json!({ "r": { "config": odd, "interfaces": [odd] } }),
        ] {
            let answer = |request: &Request, _: &heddle_sdk::Auth| -> Result<Response, Fault> {
                let body = json_body(request).unwrap();
                let one = |_: &Value| json!({ "jsonrpc": "2.0", "id": 1, "result": [0, nested] });
                let answer = match &body {
                    Value::Array(calls) => calls.iter().map(one).collect(),
                    call => one(call),
                };
                Ok(json_response(200, &answer))
            };
            let host = FakeHost::new(answer);
            for (kind, _) in kinds() {
                let Ok(page) = OpenWrt::list_model(&host, &kind, None, None) else { continue };
                for object in page.items {
                    let problem = model::find(&kind).unwrap().problem(&fields(&object));
                    assert_eq!(problem, None, "{kind}: {nested}");
                }
            }
        }
    }
}

#[test]
fn long_lists_come_in_pages() {
    let bench = Bench::of(Router::builder());
    let mut changes = Vec::new();
    for at in 0..1_200 {
        let section = format!("h{at}");
        changes.push(Change::Create { section: section.clone(), kind: "host".to_owned() });
        changes.push(Change::set(&section, "mac", &format!("02:00:00:00:{:02x}:{:02x}", at / 256, at % 256)));
    }
    bench.router.edit("dhcp", &changes);
    assert_eq!(bench.all("dhcp-reservation").len(), 1_202);
    assert!(OpenWrt::list_model(&bench.host(), "vlan", None, Some("x")).is_err());
}
