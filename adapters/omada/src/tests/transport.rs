//! The envelope in odd places, pages that are smaller than asked for, and what is asked at all.

use heddle_sdk::crud::{Purpose, Vendor, Written};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Header, Listing, Request, Response};
use serde_json::{Value, json};

use super::device::{description, package};
use crate::{Omada as Adapter, Vendor as Omada};

const SITE: &str = "66a000000000000000000001";

fn page(status: u16) -> Response {
    Response { body: b"<!doctype html>".to_vec(), ..json_response(status, &Value::Null) }
}

#[test]
fn envelope_with_a_refusing_status_is_opened() {
    let answer =
        |status, code: i64| json_response(status, &json!({ "errorCode": code, "msg": "What it says." }));
    // Without a token.
    assert!(matches!(Omada.content(&answer(401, -44116)).unwrap_err(), Fault::Authentication(_)));
    assert!(matches!(Omada.content(&answer(403, -1005)).unwrap_err(), Fault::Denied(_)));
    assert!(matches!(Omada.content(&answer(429, -7132)).unwrap_err(), Fault::RateLimit(_)));
    assert!(matches!(Omada.content(&answer(500, -33004)).unwrap_err(), Fault::Busy(_)));
    // An unknown controller is answered without any header.
    let bare = answer(200, -7131);
    assert!(bare.headers.is_empty());
    assert!(matches!(Omada.content(&bare).unwrap_err(), Fault::Conflict(_)));
}

#[test]
fn what_has_no_whole_code_is_no_envelope() {
    for body in [
        json!({ "errorCode": "0", "result": {} }),
        json!({ "errorCode": 0.5, "result": {} }),
        json!({ "errorCode": null, "result": {} }),
        json!({ "result": { "errorCode": 0 } }),
        json!([{ "errorCode": 0 }]),
        json!({}),
    ] {
        let answer = json_response(200, &body);
        assert!(matches!(Omada.content(&answer).unwrap_err(), Fault::NotReady(_)), "{body}");
        let fault = Omada.written(Purpose::Create, &answer).unwrap_err();
        assert!(matches!(fault.info().effect, Effect::Possible), "{body}");
    }
}

#[test]
fn page_redirect_and_size_are_told_apart() {
    assert!(matches!(Omada.content(&page(200)).unwrap_err(), Fault::NotReady(_)), "the page of a login");
    let away = Header { name: "location".to_owned(), value: b"/login".to_vec() };
    let redirect = Response { headers: vec![away], ..page(302) };
    assert!(matches!(Omada.content(&redirect).unwrap_err(), Fault::NotReady(_)));
    assert!(matches!(Omada.written(Purpose::Update, &redirect).unwrap_err().info().effect, Effect::Possible));
    for status in [413, 417] {
        let fault = Omada.written(Purpose::Update, &page(status)).unwrap_err();
        assert!(
            matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)),
            "{status}: {fault:?}"
        );
    }
}

/// Some creates answer an object, some the id alone, and some nothing.
#[test]
fn new_object_is_found_whatever_its_create_answers() {
    for result in
        [json!({ "id": "1" }), json!({ "ssidId": "1" }), json!("66a0"), json!(""), json!({}), Value::Null]
    {
        let answer = json_response(200, &json!({ "errorCode": 0, "msg": "Success.", "result": result }));
        assert!(matches!(Omada.written(Purpose::Create, &answer), Ok(Written::Done)), "{result}");
    }
    for feature in description()["features"].as_array().unwrap() {
        let id = &feature["binding"]["create"]["id"];
        let is_known = id == "found" || id["field"].is_string();
        let is_answered = id["answer"].as_str().is_some_and(|at| at.starts_with("/result/"));
        assert!(id.is_null() || is_known || is_answered, "{}: {id}", feature["id"]);
    }
}

/// The number of a page that a request asks for.
fn number(request: &Request) -> usize {
    let pairs = request.path.split(['?', '&']);
    pairs.filter_map(|pair| pair.strip_prefix("page=")).find_map(|page| page.parse().ok()).unwrap()
}

/// A controller whose pages have three rows, whatever is asked for.
fn with_small_pages(request: &Request) -> Response {
    if request.path == "/api/info" {
        let info = json!({ "omadacId": "c0ffee", "controllerVer": "6.2.0.1", "configured": true });
        return json_response(200, &json!({ "errorCode": 0, "result": info }));
    }
    let (first, total) = ((number(request) - 1) * 3, 8);
    let row = |at| json!({ "id": format!("{at}"), "siteId": format!("{at}"), "name": format!("row {at}") });
    let rows: Vec<Value> = (first..total.min(first + 3)).map(row).collect();
    let result =
        json!({ "totalRows": total, "currentPage": number(request), "currentSize": 3, "data": rows });
    json_response(200, &json!({ "errorCode": 0, "result": result }))
}

#[test]
fn pages_that_are_smaller_than_asked_are_read_to_the_end() {
    let mut host = FakeHost::new(|request, _| Ok(with_small_pages(request))).with_package(package());
    assert_eq!(Adapter::list_sites(&host, None).unwrap().items.len(), 8);
    host.settings = json!({ "site": SITE });
    let (mut keys, mut cursor): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let listing = Listing { cursor: cursor.as_deref(), ..Listing::of("routing.port-forward", 1000) };
        let page = Adapter::list_objects(&host, &listing).unwrap();
        keys.extend(page.items.into_iter().map(|item| item.reference.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let wanted: Vec<String> = (0..8).map(|at| format!("row {at}")).collect();
    assert_eq!(keys, wanted);
}

/// Every path of a description.
fn paths<'d>(value: &'d Value, found: &mut Vec<&'d str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().filter(|_| name == "path") {
                    Some(path) => found.push(path),
                    None => paths(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, found)),
        _ => {}
    }
}

/// The surface of the web interface has lists without pages, and documents that a partial write spoils.
#[test]
fn only_the_open_api_is_asked() {
    let mut found = Vec::new();
    for section in ["kinds", "features"] {
        for entry in description()[section].as_array().unwrap() {
            paths(&entry["binding"], &mut found);
        }
    }
    assert!(found.len() > 1_000, "{}", found.len());
    for path in found {
        assert!(path.starts_with("/openapi/v") && path.contains("/{omadacId}/"), "{path}");
    }
}

#[test]
fn logs_ask_for_their_time() {
    let kind =
        |id: &str| description()["kinds"].as_array().unwrap().iter().find(|kind| kind["id"] == id).unwrap();
    for id in ["insights.event", "insights.alert"] {
        let list = &kind(id)["binding"]["list"];
        for (name, param) in [("timeStart", "filters.timeStart"), ("timeEnd", "filters.timeEnd")] {
            assert_eq!(list["filters"][name], json!({ "param": param, "required": true }), "{id}");
        }
        assert!(list["page"].is_object(), "{id} is refused without a page");
    }
}
