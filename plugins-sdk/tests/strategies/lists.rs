//! Lists in parts, filters, and a device that answers rubbish.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Attribute, Fault, Listing, Stage};
use serde_json::json;

use super::*;
use crate::device::{Ids, Table};

fn with_log(count: usize, page_max: usize, total: Option<u64>) -> Device {
    let device = Device::new();
    let rows = (0..count).map(|n| device::fields(&json!({ "id": format!("e{n:03}") }))).collect();
    device.state.borrow_mut().tables.insert("/log".to_owned(), Table { ids: Ids::Field("id"), rows });
    device.page_max.set(page_max);
    device.total.set(total);
    device
}

/// The keys of all pages.
fn paged(device: &Device, kind: &str, limit: u32) -> Vec<String> {
    let description = description();
    let host = device.host(&description);
    let (mut keys, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..100 {
        let page =
            Json::list_objects(&host, &Listing { cursor: cursor.as_deref(), ..Listing::of(kind, limit) })
                .unwrap();
        assert!(page.items.len() <= limit as usize);
        keys.extend(page.items.into_iter().map(|object| object.reference.key));
        cursor = page.next;
        if cursor.is_none() {
            return keys;
        }
    }
    panic!("the pages do not end");
}

#[test]
fn pages_are_followed_to_the_end_whatever_their_size_and_total() {
    for (count, page_max, total) in [
        (25, 1000, None),
        (25, 4, None),
        (20, 1000, None),
        (25, 1000, Some(3)),
        (25, 1000, Some(900)),
        (0, 9, None),
    ] {
        let device = with_log(count, page_max, total);
        for kind in ["log.numbered", "log.offset"] {
            let keys = paged(&device, kind, 1000);
            let is_whole = keys.len() == count && keys.is_sorted();
            assert!(is_whole, "{kind} {count} {page_max} {total:?}: {keys:?}");
        }
    }
    assert_eq!(paged(&with_log(25, 1000, None), "log.untold", 1000).len(), 25, "without a total");
    assert_eq!(paged(&with_log(25, 1000, None), "log.offset", 3).len(), 25);
}

#[test]
fn single_objects_are_found_in_whole_lists() {
    let description = description();
    for (page_max, total) in [(1000, None), (4, None), (1000, Some(2)), (1000, Some(900))] {
        let device = with_log(25, page_max, total);
        let host = device.host(&description);
        for kind in ["log.numbered", "log.offset"] {
            assert!(Json::get_object(&host, kind, None, "e024").is_ok(), "{kind} {page_max} {total:?}");
        }
    }
}

#[test]
fn the_same_page_again_and_again_is_a_fault() {
    let (device, description) = (with_log(25, 1000, None), description());
    let rows: Vec<Value> = (0..10).map(|n| json!({ "id": n })).collect();
    device.rubbish.replace(Some(("/log".to_owned(), json!({ "items": rows, "total": 100 }))));
    assert!(Json::get_object(&device.host(&description), "log.offset", None, "e024").is_err());
    assert!(device.reads.borrow().len() < 4);
}

fn asked(kind: &str, filter: &[(&str, &str)]) -> (Device, Result<heddle_sdk::ObjectPage, Fault>) {
    let (device, description) = (with_log(3, 1000, None), description());
    let filter: Vec<Attribute> = filter
        .iter()
        .map(|(key, value)| Attribute { key: (*key).to_owned(), value: (*value).to_owned() })
        .collect();
    let page =
        Json::list_objects(&device.host(&description), &Listing { filter: &filter, ..Listing::of(kind, 10) });
    (device, page)
}

#[test]
fn filters_become_parameters_and_required_ones_are_asked_for() {
    let (device, page) = asked("log.filtered", &[("since", "12 h"), ("host", "n1")]);
    assert_eq!(page.unwrap().items.len(), 3);
    assert_eq!(*device.reads.borrow(), ["/log?all=1&of=n1&start=12%20h"]);
    for (filter, field) in [(&[][..], "since"), (&[("since", "1"), ("other", "1")][..], "since")] {
        let (device, page) = asked("log.filtered", filter);
        let fault = page.unwrap_err();
        assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains(field)), "{fault:?}");
        assert!(device.reads.borrow().is_empty());
    }
}

#[test]
fn filters_may_be_lists_and_flags_or_stand_in_the_path() {
    let (_, page) = asked("log.usage", &[("node", "n2"), ("attributes", "rx,tx"), ("all", "true")]);
    let body: Value = serde_json::from_str(&page.unwrap().items[0].body).unwrap();
    assert_eq!((&body["asked"]["attrs"], &body["asked"]["all"]), (&json!(["rx", "tx"]), &json!(true)));
    let (device, page) = asked("log.named", &[("log", "log")]);
    assert_eq!((page.unwrap().items.len(), device.reads.take()), (3, vec!["/log".to_owned()]));
    assert!(matches!(asked("log.named", &[]).1, Err(Fault::Invalid(_))));
}

#[test]
fn answers_to_a_post_are_read_with_constants_and_filters() {
    let (_, page) = asked("log.usage", &[("node", "n1"), ("since", "5")]);
    let items = page.unwrap().items;
    let body: Value = serde_json::from_str(&items[0].body).unwrap();
    assert_eq!(body["asked"], json!({ "node": "n1", "numbers": [7], "start": 5 }));
    assert_eq!(items.len(), 1);
}

#[test]
fn rubbish_is_a_fault_or_nothing_and_never_a_panic() {
    let rubbish = [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!({}),
        json!({ "items": null }),
        json!({ "items": 7 }),
        json!({ "items": "x" }),
        json!({ "items": [null, 7, "x", [], {}] }),
        json!({ "items": [{ "id": {}, "name": [] }] }),
        json!({ "items": { "a": 1 } }),
        json!({ "data": null }),
        json!({ "data": [1] }),
        json!({ "data": "x" }),
        json!({ "data": {} }),
        json!({ "data": { "name": { "x": { "selected": 1 } }, "note": [[]] } }),
        json!({ "items": [{ "id": "x1", "name": "web" }], "data": 5, "total": "many" }),
    ];
    let (description, changes) = (
        description(),
        [
            update("alias", &json!({ "name": "web", "note": "new" })),
            create("zone", &json!({ "name": "z", "alias": "web" })),
            delete("rule", &json!({ "name": "dns" })),
            update("guest", &json!({ "vmid": 100, "net": { "tag": "1" } })),
            update("card", &json!({ "node": "n1", "slot": "a", "bus": "00:1f.2", "mode": "hba" })),
            update("options", &json!({ "node": "n1", "motd": "x" })),
            create("snapshot", &json!({ "vmid": 100, "snapname": "s" })),
        ],
    );
    let device = Device::new();
    let host = device.host(&description);
    let plans: Vec<ChangePlan> =
        changes.iter().map(|one| Json::plan(&host, std::slice::from_ref(one)).unwrap()).collect();
    for answer in rubbish {
        for path in ["/aliases", "/zones", "/rules", "/guests", "/nodes", "/nodes/n1", "/"] {
            device.rubbish.replace(Some((path.to_owned(), answer.clone())));
            for (one, plan) in changes.iter().zip(&plans) {
                let one = std::slice::from_ref(one);
                drop(Json::plan(&host, one));
                drop(Json::compare(&host, one, &plan.token));
                for stage in [Stage::Apply, Stage::Restore] {
                    drop(Json::ready(&host, stage, one, &plan.token, 0));
                    drop(Json::ready(&host, stage, one, &plan.token, 1));
                }
            }
            for kind in ["net.alias", "net.rule", "host.guest", "host.card", "host.options", "host.snapshot"]
            {
                drop(Json::list_objects(&host, &Listing::of(kind, 10)));
                drop(Json::get_object(&host, kind, None, "n1:a:x"));
            }
        }
    }
    assert!(device.writes.borrow().is_empty());
}

#[test]
fn what_is_no_list_is_not_an_empty_one() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [delete("alias", &json!({ "name": "web" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    for answer in [json!({ "error": "busy" }), json!({ "items": "none" })] {
        device.rubbish.replace(Some(("/aliases".to_owned(), answer)));
        assert!(Json::plan(&host, &changes).is_err(), "would say that there is nothing to delete");
        assert!(Json::compare(&host, &changes, &plan.token).is_err(), "would say that it is deleted");
        assert!(send_stage::<Json>(&host, Stage::Apply, &changes, &plan).is_err());
    }
    device.rubbish.replace(Some(("/aliases/x1".to_owned(), json!({ "data": "broken" }))));
    assert!(Json::compare(&host, &changes, &plan.token).is_err());
}

#[test]
fn a_plan_of_one_object_reads_little() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("alias", &json!({ "name": "web", "note": "new" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    assert_eq!(device.reads.take(), ["/aliases", "/aliases/x1"]);
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert_eq!(device.reads.take(), ["/aliases", "/aliases/x1"], "nothing more is read between the calls");
    Json::compare(&host, &changes, &plan.token).unwrap();
    assert_eq!(device.reads.take(), ["/aliases", "/aliases/x1"]);
    let several: Vec<Change> = (0..3).map(|n| create("alias", &json!({ "name": format!("a{n}") }))).collect();
    let plan = Json::plan(&host, &several).unwrap();
    device.reads.take();
    send_stage::<Json>(&host, Stage::Apply, &several, &plan).unwrap();
    assert_eq!(device.reads.take(), ["/aliases"], "answered ids are not looked up");
}

#[test]
fn long_lists_take_no_time_of_their_square() {
    let (device, description) = (Device::new(), description());
    let row = |n: usize| device::fields(&json!({ "id": format!("i{n}"), "name": format!("n{n}") }));
    device.others("/zones", |rows| rows.extend((0..900).map(row)));
    let host = device.host(&description);
    let changes: Vec<Change> =
        (0..50).map(|n| update("zone", &json!({ "name": format!("n{n}"), "note": "x" }))).collect();
    let plan = Json::plan(&host, &changes).unwrap();
    device.others("/zones", |rows| rows.extend((1000..9000).map(row)));
    let begin = std::time::Instant::now();
    let found = Json::compare(&host, &changes, &plan.token).unwrap();
    assert_eq!(found.foreign.len(), 100);
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

#[test]
fn a_token_too_large_leaves_out_the_ids_that_only_tell_what_others_add() {
    let (device, description) = (Device::new(), description());
    let row = |n: usize| device::fields(&json!({ "id": format!("i{n}"), "name": format!("n{n}") }));
    device.others("/profiles", |rows| rows.extend((0..900).map(row)));
    let large = json!({ "name": "n1", "raw": "x".repeat(60_000) });
    let changes = [update("profile", &large)];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert!(plan.token.len() < 64 * 1024);
    device.others("/profiles", |rows| rows.push(row(1000)));
    assert!(Json::compare(&host, &changes, &plan.token).unwrap().foreign.is_empty());
    restored::<Json>(&device, &description, (&host, &plan), &changes);
}

#[test]
fn an_empty_list_may_be_nothing_at_all() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    for (kind, answer, is_empty) in [
        ("net.zone", json!({ "items": [] }), true),
        ("net.zone", json!({ "items": null }), true),
        ("net.zone", json!([]), true),
        ("net.zone", json!(null), true),
        ("net.zone", json!({}), false),
        ("net.zone", json!({ "items": 7 }), false),
        ("log.numbered", json!({}), true),
        ("log.numbered", json!({ "items": "x" }), false),
    ] {
        device.rubbish.replace(Some(("/".to_owned(), answer.clone())));
        let found = Json::list_objects(&host, &Listing::of(kind, 9)).map(|page| page.items.len());
        assert_eq!(found.ok(), is_empty.then_some(0), "{kind} {answer}");
    }
}
