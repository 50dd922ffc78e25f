//! Objects that belong to others, and objects that move between them.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Attribute, Completeness, Fault, FaultExt, Listing, Stage, Standing};
use serde_json::json;

use super::*;

fn listed(kind: &str, filter: &[(&str, &str)]) -> Vec<String> {
    let (device, description) = (Device::new(), description());
    let filter: Vec<Attribute> = filter
        .iter()
        .map(|(key, value)| Attribute { key: (*key).to_owned(), value: (*value).to_owned() })
        .collect();
    let listing = Listing { filter: &filter, ..Listing::of(kind, 100) };
    let page = Json::list_objects(&device.host(&description), &listing).unwrap();
    page.items.into_iter().map(|object| object.reference.key).collect()
}

#[test]
fn lists_join_those_of_all_parents_or_of_the_named_one() {
    assert_eq!(listed("host.slot", &[]), ["n1:a", "n1:a:b", "n2:a"]);
    assert_eq!(listed("host.slot", &[("node", "n2")]), ["n2:a"]);
    assert_eq!(listed("host.card", &[]), ["n1:a:00:1f.2", "n2:a:00:1f.2"]);
    assert_eq!(listed("host.card", &[("node", "n1"), ("slot", "a")]), ["n1:a:00:1f.2"]);
    assert_eq!(listed("host.card", &[("node", "gone")]), Vec::<String>::new());
    assert_eq!(listed("host.options", &[]), ["n1", "n2"], "the witness has none");
    assert_eq!(listed("host.port", &[("node", "n2")]), ["n2:1"], "a list over all is one below a parent");
    assert_eq!(listed("host.snapshot", &[("vmid", "100")]), ["100:base"]);
}

#[test]
fn keys_with_colons_are_found_below_the_parent_that_they_name() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    device.others("/nodes/n1/slots/a:b/cards", |rows| {
        rows.push(device::fields(&json!({ "id": "x9", "bus": "c:d", "mode": "jbod" })));
    });
    let read = |kind, key| Json::get_object(&host, kind, None, key).map(|object| object.body);
    assert!(read("host.card", "n1:a:b:c:d").unwrap().contains("jbod"));
    assert!(read("host.card", "n2:a:00:1f.2").unwrap().contains(r#""node":"n2""#));
    assert!(read("host.slot", "n1:a:b").is_ok() && read("host.options", "n2").unwrap().contains("two"));
    for (kind, key) in
        [("host.card", "n1:a:b"), ("host.card", "n3:a:00:1f.2"), ("host.options", "w"), ("host.slot", "n1")]
    {
        assert!(matches!(read(kind, key), Err(Fault::NotFound(_))), "{kind} {key}");
    }
    device.reads.borrow_mut().clear();
    read("host.card", "n2:a:00:1f.2").unwrap();
    let reads = device.reads.borrow().clone();
    assert_eq!(reads, ["/nodes", "/nodes/n2/slots", "/nodes/n2/slots/a/cards", "/nodes/n2/slots/a/cards/x3"]);
}

#[test]
fn one_level_deep_objects_are_written_below_their_parent() {
    let label = json!({ "node": "n2", "name": "a", "label": "left" });
    let (device, description) = (Device::new(), description());
    let changes = [update("slot", &label)];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert_eq!(device.row("/nodes/n2/slots", "name", "a").unwrap()["label"], "left");
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(plan.touches, ["host.slot/n2:a"]);
    let inverse: Value = serde_json::from_str(&plan.inverse.unwrap()[0].payload).unwrap();
    assert_eq!(inverse, json!({ "node": "n2", "name": "a", "label": null }));
    there_and_back::<Json>(&[create("slot", &json!({ "node": "n1", "name": "z" }))], |device| {
        device.row("/nodes/n1/slots", "name", "z").is_some()
    });
    there_and_back::<Json>(&[update("options", &json!({ "node": "n1", "motd": "hi" }))], |device| {
        let state = device.state.borrow();
        (&state.settings["/nodes/n1/options"]["motd"], &state.settings["/nodes/n2/options"]["motd"])
            == (&json!("hi"), &json!("two"))
    });
    there_and_back::<Json>(&[update("port", &json!({ "node": "n2", "port": 1, "speed": 10 }))], |device| {
        device.row("/ports", "id", "p2").unwrap()["speed"] == 10
            && device.row("/ports", "id", "p1").unwrap()["speed"] == 100
    });
}

#[test]
fn two_levels_deep_objects_are_written_below_their_parents() {
    let at = json!({ "node": "n1", "slot": "a", "bus": "00:1f.2", "mode": "hba" });
    there_and_back::<Json>(&[update("card", &at)], |device| {
        device.row("/nodes/n1/slots/a/cards", "id", "x2").unwrap()["mode"] == "hba"
            && device.row("/nodes/n2/slots/a/cards", "id", "x3").unwrap()["mode"] == "raid"
    });
    let new = json!({ "node": "n1", "slot": "a:b", "bus": "01:0", "mode": "hba" });
    let plan = there_and_back::<Json>(&[create("card", &new)], |device| {
        device.rows("/nodes/n1/slots/a:b/cards").len() == 1
    });
    assert!(plan.native[0].path.contains("a%3Ab"), "{}", plan.native[0].path);
}

#[test]
fn a_parent_that_is_not_there_or_not_the_only_one_is_said() {
    let device = Device::new();
    for (payload, is_known) in [
        (json!({ "node": "n9", "name": "a", "label": "x" }), false),
        (json!({ "node": "w", "name": "a", "label": "x" }), false),
        (json!({ "name": "a", "label": "x" }), true),
    ] {
        let fault = refused(&device, &[update("slot", &payload)]);
        assert_eq!(matches!(fault, Fault::Invalid(_)), is_known, "{fault:?}");
        assert_eq!(matches!(fault, Fault::NotFound(_)), !is_known, "{fault:?}");
        assert_eq!(fault.info().fields[0].pointer, "/node");
    }
}

#[test]
fn a_parent_that_goes_away_after_the_plan_changes_nothing() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("card", &json!({ "node": "n2", "slot": "a", "bus": "00:1f.2", "mode": "hba" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    device.state.borrow_mut().tables.remove("/nodes/n2/slots/a/cards");
    assert!(send_stage::<Json>(&host, Stage::Apply, &changes, &plan).is_err());
    assert!(device.writes.borrow().is_empty());
}

#[test]
fn an_object_that_moved_is_not_written_where_it_was() {
    let moved = |device: &Device, from: &str, to: &str| {
        let guest = device.rows(from).remove(0);
        device.others(from, Vec::clear);
        device.others(to, |rows| rows.push(guest));
    };
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("guest", &json!({ "vmid": 100, "name": "post" }))];
    let plan = Form::plan(&host, &changes).unwrap();
    assert!(plan.native[0].path.starts_with("/nodes/n1/"));
    moved(&device, "/nodes/n1/guests", "/nodes/n2/guests");
    let fault = send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)) && device.writes.borrow().is_empty(), "{fault:?}");
    let (host, plan) = applied::<Form>(&device, &description, &changes);
    assert!(plan.native[0].path.starts_with("/nodes/n2/"));
    moved(&device, "/nodes/n2/guests", "/nodes/n1/guests");
    let found = standing::<Form>(&host, &changes, &plan);
    assert!(matches!(&found, Standing::Other(what) if what.contains("moved")), "{found:?}");
    let again = restarted(&device, &description, &host);
    assert!(matches!(send_stage::<Form>(&again, Stage::Restore, &changes, &plan), Err(Fault::StateMoved(_))));
}

#[test]
fn a_parent_that_does_not_answer_makes_a_list_partial() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    device.rubbish.replace(Some(("/nodes/n1/".to_owned(), json!("broken"))));
    for (kind, count) in [("host.slot", 1), ("host.options", 1)] {
        let page = Json::list_objects(&host, &Listing::of(kind, 9)).unwrap();
        assert!(matches!(page.complete, Completeness::Partial), "{kind}");
        assert_eq!(page.items.len(), count, "{kind}");
    }
    device.rubbish.replace(Some(("/nodes/n".to_owned(), json!("broken"))));
    assert!(Json::list_objects(&host, &Listing::of("host.options", 9)).is_err());
}

/// What a list says with these reads failing: its keys, and how much of it that is.
fn failing(kind: &str, failing: &[(&'static str, u16)]) -> Result<(Vec<String>, Completeness), Fault> {
    let (device, description) = (Device::new(), description());
    device.failing.replace(failing.to_vec());
    let page = Json::list_objects(&device.host(&description), &Listing::of(kind, 100))?;
    Ok((page.items.into_iter().map(|object| object.reference.key).collect(), page.complete))
}

#[test]
fn fault_of_one_parent_does_not_hide_that_of_another() {
    let (first, second) = ("/nodes/n1/slots", "/nodes/n2/slots");
    let fault = failing("host.slot", &[(first, 501), (second, 504)]).unwrap_err();
    assert!(matches!(fault, Fault::Timeout(_)), "{fault:?}");
    let fault = failing("host.slot", &[(first, 501), (second, 404)]).unwrap_err();
    assert!(matches!(fault, Fault::Unsupported(_)), "{fault:?}");
    let (keys, complete) = failing("host.slot", &[(first, 501)]).unwrap();
    assert_eq!(keys, ["n2:a"]);
    assert!(matches!(complete, Completeness::Complete), "the first has no slots");
    for (status, is_right) in [(403, true), (504, false)] {
        let (keys, complete) = failing("host.slot", &[(first, status)]).unwrap();
        assert_eq!(keys, ["n2:a"]);
        assert_eq!(matches!(complete, Completeness::RightsLimited), is_right, "{complete:?}");
        assert_eq!(matches!(complete, Completeness::Partial), !is_right, "{complete:?}");
    }
}

#[test]
fn parents_of_parents_that_fail_make_a_list_partial_and_a_plan_impossible() {
    let (keys, complete) = failing("host.card", &[("/nodes/n1/slots", 504)]).unwrap();
    assert_eq!(keys, ["n2:a:00:1f.2"]);
    assert!(matches!(complete, Completeness::Partial), "{complete:?}");
    assert!(matches!(failing("host.card", &[("/slots", 504)]), Err(Fault::Timeout(_))));
    assert!(matches!(failing("host.card", &[("/nodes", 504)]), Err(Fault::Timeout(_))));
    let device = Device::new();
    device.failing.replace(vec![("/nodes/n1/slots", 504)]);
    // The other parent has such an object: whether this one has it too is not known.
    let fault = refused(&device, &[update("card", &json!({ "slot": "a", "bus": "00:1f.2", "mode": "hba" }))]);
    assert!(matches!(fault, Fault::Timeout(_)), "{fault:?}");
}

#[test]
fn parents_without_a_part_of_the_api_do_not_end_the_list() {
    let (device, description) = (Device::new(), description());
    // These have no slots, as if their software had none.
    let without =
        |at: usize| device::fields(&json!({ "name": format!("x{at:02}"), "number": at, "role": "host" }));
    device.others("/nodes", |rows| {
        let known = std::mem::take(rows);
        rows.extend((0..64).map(without));
        rows.extend(known);
    });
    let read = |host: &dyn Host| {
        let (mut keys, mut cursor, mut pages) = (Vec::new(), None::<String>, 0);
        loop {
            let listing = Listing { cursor: cursor.as_deref(), ..Listing::of("host.slot", 100) };
            let page = Json::list_objects(host, &listing).unwrap();
            assert!(matches!(page.complete, Completeness::Complete));
            keys.extend(page.items.into_iter().map(|object| object.reference.key));
            pages += 1;
            cursor = page.next;
            if cursor.is_none() {
                return (keys.join(" "), pages);
            }
        }
    };
    assert_eq!(read(&device.host(&description)), ("n1:a n1:a:b n2:a".to_owned(), 2));
    let slow = Slow(device.host(&description));
    assert_eq!(read(&slow), ("n1:a n1:a:b n2:a".to_owned(), 3), "a page of a slow device has fewer parents");
}

/// A device that takes a tenth of a second for each answer.
struct Slow<'d>(FakeHost<'d>);

impl Host for Slow<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        self.0.now_ms.set(self.0.now_ms.get() + 100);
        self.0.send(request, auth)
    }
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }
    fn kind_binding(&self, id: &str) -> Option<Value> {
        self.0.kind_binding(id)
    }
}
