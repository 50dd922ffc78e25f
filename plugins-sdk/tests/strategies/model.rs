//! Objects of the model, made of several kinds of the vendor's, in parts and by the vendor's last word.

use heddle_sdk::{Completeness, ModelObject, Origin};

use super::*;
use crate::device::{Ids, Table};

/// The description, with a model made of a log in pages, snapshots of guests and the parts of settings.
fn with_model(sources: &Value) -> Value {
    let mut whole = description();
    let gone = json!({ "shape": "rows", "noun": "entry", "list": { "path": "/gone" } });
    whole["kinds"].as_array_mut().unwrap().push(json!({ "id": "gone.rows", "binding": gone }));
    whole["model"] = json!([{ "kind": "thing", "fields": [], "binding": { "sources": sources } }]);
    whole
}

fn read(device: &Device, sources: &Value) -> Vec<ModelObject> {
    let description = with_model(sources);
    let host = device.host(&description);
    let (mut out, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..50 {
        let page = Json::list_model(&host, "thing", None, cursor.as_deref()).unwrap();
        out.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return out;
        }
    }
    panic!("the pages do not end");
}

fn put(device: &Device, path: &str, rows: &[Value]) {
    let rows = rows.iter().map(device::fields).collect();
    device.state.borrow_mut().tables.insert(path.to_owned(), Table { ids: Ids::Field("id"), rows });
}

fn put_profiles(device: &Device) {
    let rows = [("p1", "one"), ("p2", "two"), ("p3", "three")];
    put(device, "/profiles", &rows.map(|(id, name)| json!({ "id": id, "name": name })));
}

#[test]
fn sources_follow_one_another_page_by_page() {
    let device = Device::new();
    let rows: Vec<Value> = (0..25).map(|n| json!({ "id": format!("e{n:02}"), "size": n })).collect();
    put(&device, "/log", &rows);
    device.page_max.set(4);
    let source = |kind: &str, key: &str| {
        json!({ "from": kind, "key": [key], "label": ["absent", "id"],
                "fields": { "inner.size_bytes": { "at": "size", "as": "integer", "times": 1024 }, "name": "absent" } })
    };
    let found = read(&device, &json!([source("log.numbered", "id"), source("log.offset", "size")]));
    let keys: Vec<&str> = found.iter().map(|object| object.key.as_str()).collect();
    assert_eq!((keys.len(), keys[24], keys[25], keys[49]), (50, "e24", "0", "24"));
    assert_eq!(
        (found[3].label.as_str(), found[3].fields.as_str()),
        ("e03", r#"{"inner":{"size_bytes":3072}}"#)
    );
    let native = found[3].native.as_ref().unwrap();
    assert_eq!(native.kind, "log.numbered");
}

#[test]
fn rows_are_chosen_and_parts_become_objects_that_know_their_row() {
    let device = Device::new();
    put(
        &device,
        "/log",
        &[
            json!({ "id": "a", "type": "x", "mac": "AA-BB-CC-00-00-01", "ports": [{ "n": 1 }, { "n": 2, "up": "Yes" }, 7] }),
            json!({ "id": "b", "type": "y", "ports": { "0": { "n": 3 } } }),
            json!({ "id": "c", "type": "x", "hidden": true, "ports": [{ "n": 4 }] }),
            json!({ "id": "d", "type": "z", "ports": [{ "n": 5 }] }),
            json!({ "id": "e", "type": "x", "ports": "none" }),
        ],
    );
    let source = json!({
        "from": "log.numbered", "only": { "type": ["x", "y"] }, "except": { "hidden": true }, "each": "ports",
        "key": ["^.id", "n"], "device": { "at": "^.mac", "as": "mac" },
        "origin": { "at": "up", "values": { "yes": "vendor" }, "else": "derived" },
        "fields": { "number": { "at": "n", "as": "integer" }, "link": { "at": "up", "as": "flag" } },
    });
    let found = read(&device, &json!([source]));
    let shown: Vec<(&str, &str)> = found.iter().map(|one| (one.key.as_str(), one.fields.as_str())).collect();
    assert_eq!(
        shown,
        [("a:1", r#"{"number":1}"#), ("a:2", r#"{"link":true,"number":2}"#), ("b:3", r#"{"number":3}"#)]
    );
    assert_eq!(found[0].device.as_deref(), Some("aa:bb:cc:00:00:01"));
    assert_eq!(found[2].device, None);
    assert!(matches!((found[0].origin, found[1].origin), (Origin::Own, Origin::Vendor)));
}

#[test]
fn objects_within_others_have_their_natural_key_and_the_parameters_of_their_paths() {
    let device = Device::new();
    let source = json!({ "from": "host.snapshot", "fields": { "of.key": "$.vmid", "name": "name" } });
    let found = read(&device, &json!([source]));
    assert!(!found.is_empty());
    for object in found {
        let fields: Value = serde_json::from_str(&object.fields).unwrap();
        let of = fields["of"]["key"].as_str().unwrap();
        assert_eq!(object.key, object.native.unwrap().key);
        assert!(object.key.starts_with(&format!("{of}:")), "{}", object.key);
    }
}

#[test]
fn parts_of_another_kind_and_all_of_it_tell_more_of_a_row() {
    let device = Device::new();
    put(
        &device,
        "/log",
        &[
            json!({ "id": "a", "of": "b", "parts": { "x": { "n": 1 }, "y": { "n": 2 } } }),
            json!({ "id": "b", "of": "b", "part": "y" }),
            json!({ "id": "c", "of": "" }),
        ],
    );
    let source = json!({
        "from": "log.numbered", "key": ["id"],
        "join": {
            "first": { "from": "log.offset", "at": "of", "by": "id" },
            "part": { "from": "log.offset", "each": "parts", "at": "part", "by": "@" },
            "whole": { "from": "log.offset", "each": "parts" },
        },
        "fields": {
            "first": "&.first.id", "part": "&.part.n",
            "whole": { "at": "&.whole", "as": "list", "items": { "": "n" } },
        },
    });
    let found = read(&device, &json!([source]));
    let fields: Vec<&str> = found.iter().map(|one| one.fields.as_str()).collect();
    assert_eq!(
        fields,
        [
            r#"{"first":"b","whole":["1","2"]}"#,
            r#"{"first":"b","part":"2","whole":["1","2"]}"#,
            r#"{"whole":["1","2"]}"#,
        ]
    );
}

#[test]
fn whole_objects_are_read_where_the_list_does_not_tell_enough() {
    let device = Device::new();
    put_profiles(&device);
    let source =
        |whole: bool| json!([{ "from": "net.profile", "whole": whole, "fields": { "name": "name" } }]);
    let reads = |whole: bool| {
        device.reads.borrow_mut().clear();
        let found = read(&device, &source(whole)).len();
        (found, device.reads.borrow().len())
    };
    let (found, asked) = reads(false);
    assert_eq!(found, 3);
    assert_eq!(reads(true), (found, asked + found));
}

#[test]
fn rows_of_other_kinds_that_belong_to_a_row_are_joined_to_it() {
    let device = Device::new();
    put(
        &device,
        "/log",
        &[
            json!({ "id": "bridge", "ports": "eno1 eno2", "side": "x" }),
            json!({ "id": "eno1", "side": "x", "names": ["bridge", "gone", "eno2"] }),
            json!({ "id": "eno2", "side": "y", "names": [] }),
        ],
    );
    device.page_max.set(2);
    let source = json!({
        "from": "log.numbered", "key": ["id"],
        "join": {
            "master": { "from": "log.offset", "at": "id", "by": "ports", "separator": " " },
            "named": { "from": "log.offset", "at": "names", "by": "id" },
            "side": { "from": "log.offset", "at": ["side", "absent"], "by": ["side", "id"], "many": true },
            "beside": { "from": "log.offset", "at": "side", "by": "side", "many": true },
            "gone": { "from": "gone.rows", "at": "side", "by": "side", "many": true },
        },
        "fields": {
            "master": "&.master.id",
            "named": { "at": "&.named", "as": "list", "items": { "": "id" } },
            "side": { "at": "&.side", "as": "list", "items": { "": "id" } },
            "beside": { "at": "&.beside", "as": "list", "items": { "": "id" } },
            "gone": { "at": "&.gone", "as": "list", "items": { "": "id" } },
        },
    });
    let shown: Vec<Value> = read(&device, &json!([source]))
        .iter()
        .map(|object| serde_json::from_str(&object.fields).unwrap())
        .collect();
    assert_eq!(
        shown,
        [
            json!({ "side": [], "beside": ["bridge", "eno1"] }),
            json!({ "master": "bridge", "named": ["bridge", "eno2"], "side": [], "beside": ["bridge", "eno1"] }),
            json!({ "master": "bridge", "named": [], "side": [], "beside": ["eno2"] }),
        ]
    );
}

#[test]
fn parts_know_their_names_and_a_row_may_be_its_parts() {
    let device = Device::new();
    let row = json!({ "id": "a", "wide": { "n": 1 }, "narrow": { "n": 2 }, "texts": ["x", 7, { "n": 3 }] });
    put(&device, "/log", &[row]);
    let source = |each: &str| {
        json!([{ "from": "log.numbered", "each": each, "key": ["@"],
                 "fields": { "of": "^.id", "n": "n", "other": "^.wide.n" } }])
    };
    let shown = |each: &str| -> Vec<(String, String)> {
        let found = read(&device, &source(each)).into_iter();
        let mut shown: Vec<(String, String)> = found.map(|object| (object.key, object.fields)).collect();
        shown.sort();
        shown
    };
    let pair = |key: &str, fields: &str| (key.to_owned(), fields.to_owned());
    assert_eq!(shown(""), [pair("narrow", r#"{"n":"2","of":"a"}"#), pair("wide", r#"{"n":"1","of":"a"}"#)]);
    assert_eq!(shown("wide"), [pair("n", r#"{"of":"a"}"#)]);
    assert_eq!(
        shown("texts"),
        [pair("7", r#"{"of":"a","other":"1"}"#), pair("x", r#"{"of":"a","other":"1"}"#)]
    );
}

#[test]
fn source_that_takes_the_place_of_another_is_asked_only_where_that_one_is_not_offered() {
    let device = Device::new();
    put(&device, "/log", &[json!({ "id": "a" })]);
    let source = |kind: &str, instead: bool| json!({ "from": kind, "instead": instead, "key": ["id"] });
    let sources =
        json!([source("log.numbered", false), source("log.offset", true), source("log.offset", true)]);
    assert_eq!(read(&device, &sources).len(), 1);
    let sources = json!([source("gone.rows", false), source("log.offset", true), source("log.offset", true)]);
    assert_eq!(read(&device, &sources).len(), 1);
    let sources =
        json!([source("gone.rows", true), source("log.offset", false), source("log.offset", false)]);
    assert_eq!(read(&device, &sources).len(), 2);
}

#[test]
fn what_sources_before_tell_is_left_out_of_a_longer_list() {
    let device = Device::new();
    put_profiles(&device);
    let log: Vec<Value> = (0..95).map(|n| json!({ "id": format!("p{n}") })).collect();
    put(&device, "/log", &log);
    let rest = json!({ "from": "log.offset", "key": ["id"], "except-told": true });
    let of = |sources: &Value| {
        device.reads.borrow_mut().clear();
        let found = read(&device, sources);
        let keys: Vec<String> = found.into_iter().map(|object| object.key).collect();
        let reads = device.reads.borrow().clone();
        let asked = move |of: &str| reads.iter().filter(|read| read.starts_with(of)).count();
        (keys, asked)
    };
    let profiles = json!({ "from": "net.profile", "key": ["id"] });
    let (keys, asked) = of(&json!([profiles, rest]));
    assert_eq!((keys.len(), &keys[..4].join(" "), keys[94].as_str()), (95, &"p1 p2 p3 p0".to_owned(), "p94"));
    assert_eq!((asked("/profiles"), asked("/log")), (2, 10), "the keys are read once for all pages");
    // What an earlier source leaves out is not told by it; one whose place another takes tells nothing.
    let only = json!({ "from": "net.profile", "key": ["id"], "only": { "name": "one" } });
    assert_eq!(
        of(&json!([only, { "from": "net.profile", "key": ["name"], "instead": true }, rest])).0.len(),
        95
    );
    let (keys, _) = of(
        &json!([{ "from": "gone.rows" }, { "from": "net.profile", "key": ["id"], "instead": true }, rest]),
    );
    assert_eq!((keys.len(), keys[0].as_str()), (95, "p1"));
    // Without its answer nobody knows what it told: the rest is not read, and the list says that it is not whole.
    device.failing.replace(vec![("/profiles", 504)]);
    assert!(matches!(pages(&device, &json!([profiles, rest])), Err(Fault::Timeout(_))));
    device.failing.replace(vec![("/profiles", 403)]);
    let (keys, complete) = pages(&device, &json!([profiles, rest])).unwrap();
    assert_eq!(keys.len(), 95);
    assert!(matches!(complete[0], Completeness::RightsLimited), "{complete:?}");
}

#[test]
fn parts_do_not_carry_the_other_parts_along() {
    let device = Device::new();
    let parts: Vec<Value> = (0..5_000).map(|n| json!({ "n": n })).collect();
    put(&device, "/log", &[json!({ "id": "a", "inner": { "parts": parts, "name": "kept" } })]);
    let found = read(
        &device,
        &json!([{ "from": "log.numbered", "each": "inner.parts", "key": ["n"],
                  "fields": { "name": "^.inner.name", "others": { "at": "^.inner.parts", "as": "json" } } }]),
    );
    assert_eq!((found.len(), found[4_999].fields.as_str()), (5_000, r#"{"name":"kept"}"#));
}

#[test]
fn whole_object_keeps_what_the_list_told_and_of_one_that_cannot_be_read_the_list_tells() {
    let device = Device::new();
    put_profiles(&device);
    device.failing.replace(vec![("/profiles/p2", 504)]);
    let with = |more: &Value| {
        let mut source = json!({ "from": "net.profile", "whole": true,
            "fields": { "name": "name", "listed": "^.name", "unread": { "at": "!", "as": "flag" } } });
        source.as_object_mut().unwrap().extend(device::fields(more));
        with_model(&json!([source]))
    };
    let description = with(&json!({}));
    let read =
        |description: &Value| Json::list_model(&device.host(description), "thing", None, None).unwrap();
    let page = read(&description);
    let shown: Vec<&str> = page.items.iter().map(|object| object.fields.as_str()).collect();
    assert_eq!(
        shown,
        [
            r#"{"listed":"one","name":"one"}"#,
            r#"{"listed":"two","name":"two","unread":true}"#,
            r#"{"listed":"three","name":"three"}"#
        ]
    );
    assert!(matches!(page.complete, Completeness::Partial));
    assert_eq!(page.items[1].key, "two", "it is the same object");
    // Whether it is one that is left out stands in what was not read.
    assert_eq!(read(&with(&json!({ "except": { "mode": "hidden" } }))).items.len(), 2);
    for (status, is_right) in [(403, true), (504, false)] {
        device.failing.replace(vec![("/profiles/", status)]);
        let page = read(&description);
        assert_eq!(page.items.len(), 3);
        assert_eq!(matches!(page.complete, Completeness::RightsLimited), is_right);
        assert_eq!(matches!(page.complete, Completeness::Partial), !is_right);
    }
}

/// The objects of all pages, and how much of the list that is.
fn pages(device: &Device, sources: &Value) -> Result<(Vec<String>, Vec<Completeness>), Fault> {
    let description = with_model(sources);
    let host = device.host(&description);
    let (mut keys, mut complete, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    for _ in 0..50 {
        let page = Json::list_model(&host, "thing", None, cursor.as_deref())?;
        keys.extend(page.items.into_iter().map(|object| object.key));
        complete.push(page.complete);
        cursor = page.next;
        if cursor.is_none() {
            return Ok((keys, complete));
        }
    }
    panic!("the pages do not end");
}

#[test]
fn source_that_fails_hides_no_other_one() {
    let device = Device::new();
    put_profiles(&device);
    put(&device, "/log", &[json!({ "id": "a" }), json!({ "id": "b" }), json!({ "id": "c" })]);
    let log = json!({ "from": "log.offset", "key": ["id"] });
    let profiles = json!({ "from": "net.profile", "key": ["id"] });
    let both = json!([log, profiles]);
    let read = |sources: &Value, failing: &[(&'static str, u16)]| {
        device.failing.replace(failing.to_vec());
        pages(&device, sources)
    };
    for (status, is_right) in [(403, true), (504, false)] {
        for (failing, known) in [("/log", "p1 p2 p3"), ("/profiles", "a b c")] {
            let (keys, complete) = read(&both, &[(failing, status)]).unwrap();
            assert_eq!(keys.join(" "), known, "{failing} {status}");
            let is_told = |one: &Completeness| match one {
                Completeness::RightsLimited => is_right,
                Completeness::Partial => !is_right,
                _ => false,
            };
            assert!(complete.iter().any(is_told), "{failing} {status}: {complete:?}");
        }
    }
    assert!(matches!(read(&both, &[("/log", 403), ("/profiles", 504)]), Err(Fault::Timeout(_))));
    assert!(matches!(read(&both, &[("/log", 501), ("/profiles", 504)]), Err(Fault::Timeout(_))));
    assert!(matches!(read(&both, &[("/log", 401)]), Err(Fault::Authentication(_))), "all are refused");
    assert!(matches!(read(&json!([profiles]), &[("/profiles", 403)]), Err(Fault::Denied(_))));
    let instead = json!([log, { "from": "net.profile", "key": ["id"], "instead": true }]);
    assert!(matches!(read(&instead, &[("/log", 504)]), Err(Fault::Timeout(_))), "the device has the first");
    // A page behind the first one.
    device.page_max.set(2);
    let (keys, complete) = read(&both, &[("/log?from=2", 501)]).unwrap();
    assert_eq!(keys.join(" "), "a b p1 p2");
    assert!(complete.iter().any(|one| matches!(one, Completeness::Partial)), "{complete:?}");
}

#[test]
fn only_source_that_is_not_offered_fills_nothing() {
    let (keys, complete) = pages(&Device::new(), &json!([{ "from": "gone.rows" }])).unwrap();
    assert!(keys.is_empty() && matches!(complete[..], [Completeness::Complete]), "{complete:?}");
}

#[test]
fn source_that_only_later_parents_have_is_offered() {
    let device = Device::new();
    put(&device, "/log", &[json!({ "id": "old" })]);
    let nodes = (0..64).map(|at| json!({ "name": format!("x{at:02}"), "number": at, "role": "host" }));
    let nodes: Vec<Value> = nodes.chain([json!({ "name": "n1", "number": 64, "role": "host" })]).collect();
    put(&device, "/nodes", &nodes);
    let sources = json!([
        { "from": "host.slot" }, { "from": "log.offset", "key": ["id"], "instead": true },
        { "from": "host.options" },
    ]);
    let (keys, complete) = pages(&device, &sources).unwrap();
    assert_eq!(keys.join(" "), "n1:a n1:a:b n1");
    assert!(complete.iter().all(|one| matches!(one, Completeness::Complete)), "{complete:?}");
    device.others("/nodes", |rows| drop(rows.pop()));
    assert_eq!(pages(&device, &sources).unwrap().0, ["old"]);
}

#[test]
fn vendor_has_the_last_word() {
    let device = Device::new();
    put(&device, "/log", &[json!({ "id": "kept" }), json!({ "id": "left-out" })]);
    let found = read(&device, &json!([{ "from": "log.numbered", "key": ["id"] }]));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].key.as_str(), found[0].fields.as_str()), ("kept", r#"{"said":"kept"}"#));
}

#[test]
fn a_kind_that_is_not_filled_and_a_strange_cursor_are_refused() {
    let device = Device::new();
    let description = with_model(&json!([{ "from": "log.numbered" }]));
    let host = device.host(&description);
    let refused =
        |kind, cursor| Json::list_model(&host, kind, None, cursor).map(|page| page.next).unwrap_err();
    assert!(matches!(refused("vlan", None), Fault::Unsupported(_)));
    assert!(matches!(refused("thing", Some("x")), Fault::Invalid(_)));
    assert!(matches!(refused("thing", Some("0|x.y")), Fault::Invalid(_)));
    let end = Json::list_model(&host, "thing", None, Some("7|")).unwrap();
    assert!(end.items.is_empty() && end.next.is_none());
}
