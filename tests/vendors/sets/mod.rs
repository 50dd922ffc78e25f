//! Sets of changes over the controllers of several vendors, with what the devices hold.

mod kill;

use std::time::Duration;

use serde_json::{Value, json};

use super::practice::{Practice, Vendor, of};
use crate::support::{Adapters, Answer, Api, Database, Options, Server, on_both};

/// Three vendors that take a change back in three ways: with a timer of their own, by a savepoint, and by writing.
const THREE: [&str; 3] = ["openwrt", "opnsense", "omada"];

/// A vendor's practice device, its controller, and what it held at first.
struct Place {
    vendor: &'static dyn Vendor,
    device: Box<dyn Practice>,
    controller: String,
    before: Value,
}

impl Place {
    async fn register(api: &Api, vendor: &'static dyn Vendor) -> Self {
        let device = vendor.start().await;
        let controller = super::register(api, vendor.id(), &*device).await;
        let before = device.configuration();
        Self { vendor, device, controller, before }
    }

    /// Stages the vendor's change of the scenario.
    async fn stage(&self, api: &Api) -> Value {
        let (vendor, case) = (self.vendor.id(), self.vendor.case());
        let (area, feature) = (case.area, case.feature);
        let path = format!("/gateway-{vendor}-{area}/{}/changes/{feature}?operation=create", self.controller);
        let change = api.post(&path, &json!({ "payload": case.payload })).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        change
    }

    fn is_before(&self) -> bool {
        self.device.configuration() == self.before
    }
}

/// The vendors with these ids.
fn vendors(ids: &[&str]) -> Vec<&'static dyn Vendor> {
    ids.iter().map(|id| of(id)).collect()
}

fn serving(vendors: &[&'static dyn Vendor]) -> Options {
    let ids = vendors.iter().map(|vendor| vendor.id().to_owned()).collect();
    Options::default().serving(Adapters::Of(ids)).with("APPLY_SETTLE_MS", "50")
}

/// A set of one change at each place.
async fn set(api: &Api, places: &[Place]) -> Value {
    let mut ids = Vec::new();
    for place in places {
        ids.push(place.stage(api).await["id"].clone());
    }
    let body = json!({ "change_ids": ids });
    let set = api.post("/gateway-vpn/changes/sets", &body).await.expect_status(201).body;
    assert!(set["plan"]["hash"].is_string(), "{set}");
    set
}

fn path(set: &Value, verb: &str) -> String {
    let id = set["id"].as_str().expect("a set has an id");
    let path = format!("/gateway-vpn/changes/sets/{id}");
    if verb.is_empty() { path } else { format!("{path}/{verb}") }
}

/// The path of a change that belongs to no set.
fn at(change: &Value, verb: &str) -> String {
    let id = change["id"].as_str().expect("a change has an id");
    format!("/gateway-vpn/changes/{id}/{verb}")
}

async fn act(api: &Api, set: &Value, verb: &str, body: &Value) -> Answer {
    api.post(&path(set, verb), body).await
}

/// Where the part at a place stands.
fn standing<'s>(set: &'s Value, place: &Place) -> &'s str {
    let parts = set["parts"].as_array().expect("a set has parts");
    let part = parts.iter().find(|part| part["controller_id"] == place.controller);
    part.and_then(|part| part["standing"].as_str()).expect("the set has a part at each place")
}

/// Checks that each device holds what the set says of it, and that the set says what its parts say.
fn check_truth(places: &[Place], set: &Value, told: &str) {
    let mut standings = Vec::new();
    for place in places {
        let standing = standing(set, place);
        let id = place.vendor.id();
        match standing {
            "waiting" | "unchanged" => assert!(place.is_before(), "{id} is {standing}, {told}: {set}"),
            "held" | "in_effect" => assert!(!place.is_before(), "{id} is {standing}, {told}: {set}"),
            "in_doubt" | "silent" => {}
            other => panic!("{id} is {other}, {told}: {set}"),
        }
        standings.push(standing);
    }
    let all = |wanted: &[&str]| standings.iter().all(|standing| wanted.contains(standing));
    match set["outcome"]["state"].as_str().unwrap_or_default() {
        "committed" => assert!(all(&["in_effect"]), "{told}: {set}"),
        "compensated" | "none" => assert!(all(&["waiting", "unchanged"]), "{told}: {set}"),
        "awaiting_confirm" => assert!(all(&["held"]), "{told}: {set}"),
        "stuck" => assert!(!all(&["in_effect"]) && !all(&["waiting", "unchanged"]), "{told}: {set}"),
        other => panic!("the set is {other}, {told}: {set}"),
    }
}

/// A server with three vendors.
struct Lab {
    _server: Server,
    api: Api,
    places: Vec<Place>,
}

impl Lab {
    async fn start(database: Database) -> Self {
        let vendors = vendors(&THREE);
        let server = Server::start_with(database, serving(&vendors)).await;
        let api = server.set_up().await;
        let mut places = Vec::new();
        for vendor in vendors {
            places.push(Place::register(&api, vendor).await);
        }
        Self { _server: server, api, places }
    }

    async fn get(&self, set: &Value) -> Value {
        self.api.get(&path(set, "")).await.expect_status(200).body
    }

    async fn ended(&self, set: &Value) -> Value {
        for _ in 0..900 {
            let seen = self.get(set).await;
            if seen["outcome"]["step"] == "idle" {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the work on the set does not end: {}", self.get(set).await);
    }
}

on_both! {
    async fn a_reviewed_set_reaches_the_devices_of_three_vendors_and_is_taken_back(database: Database) {
        let lab = Lab::start(database).await;
        let (api, places) = (&lab.api, &lab.places);
        let set = set(api, places).await;
        assert!(places.iter().all(Place::is_before), "planning writes nothing");
        let native: usize = set["parts"].as_array().unwrap().iter()
            .map(|part| part["plan"]["native"].as_array().unwrap().iter().filter(|call| call["stage"] == "apply").count())
            .sum();
        assert!(native >= places.len(), "the review shows the calls of all: {set}");
        let body = json!({ "force": true, "plan_hash": set["plan"]["hash"], "confirm_within_secs": 120 });
        let held = act(api, &set, "apply", &body).await.expect_status(200).body;
        assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
        check_truth(places, &held, "held");
        let done = act(api, &set, "confirm", &json!({})).await.expect_status(200).body;
        assert_eq!(done["outcome"]["state"], "committed", "{done}");
        check_truth(places, &done, "confirmed");

        let inverse = act(api, &set, "revert", &json!({})).await.expect_status(201).body;
        assert_eq!((&inverse["reverts"], inverse["parts"].as_array().unwrap().len()), (&set["id"], 3), "{inverse}");
        let body = json!({ "force": true, "plan_hash": inverse["plan"]["hash"] });
        let back = act(api, &inverse, "apply", &body).await.expect_status(200).body;
        assert_eq!(back["outcome"]["state"], "committed", "{back}");
        for place in places {
            assert_eq!(place.device.configuration(), place.before, "{}: as it was", place.vendor.id());
        }
        let seen = lab.get(&set).await;
        assert_eq!(seen["reverted_by"], inverse["id"], "{seen}");
        let again = act(api, &set, "revert", &json!({})).await.expect_status(409);
        assert_eq!(again.error_type(), "not_applied", "{}", again.text);
        let valid = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(valid["valid"], true, "{valid}");
    }
}

on_both! {
    async fn where_one_vendor_refuses_the_others_read_as_before(database: Database) {
        let lab = Lab::start(database).await;
        let (api, places) = (&lab.api, &lab.places);
        for (round, body) in [json!({ "force": true }), json!({ "force": true, "confirm_within_secs": 120 })].iter().enumerate() {
            let set = set(api, places).await;
            // A person makes the same object at the last controller that is applied: nothing is written over it.
            let last = set["parts"][2]["controller_id"].clone();
            let place = places.iter().find(|place| place.controller == last).expect("it is one of them");
            let theirs = place.stage(api).await;
            api.post(&at(&theirs, "apply"), &json!({ "force": true })).await.expect_status(200);
            let held = place.device.configuration();
            let refused = act(api, &set, "apply", body).await;
            assert_eq!(refused.status, 502, "{}", refused.text);
            let seen = lab.ended(&set).await;
            assert_eq!(seen["outcome"]["state"], "compensated", "{round}: {seen}");
            assert_eq!(place.device.configuration(), held, "nothing of theirs was touched");
            for other in places.iter().filter(|other| other.controller != last) {
                assert_eq!(other.device.configuration(), other.before, "{}: as it was", other.vendor.id());
            }
            act(api, &set, "discard", &json!({})).await.expect_status(200);
            let inverse = api.post(&at(&theirs, "revert"), &json!({})).await.expect_status(201).body;
            api.post(&at(&inverse, "apply"), &json!({ "force": true })).await.expect_status(200);
        }
    }
}

on_both! {
    async fn a_device_that_is_away_is_taken_back_when_it_answers_again(database: Database) {
        let lab = Lab::start(database).await;
        let (api, places) = (&lab.api, &lab.places);
        let set = set(api, places).await;
        let body = json!({ "force": true, "confirm_within_secs": 120 });
        act(api, &set, "apply", &body).await.expect_status(200);
        places[1].device.cut();
        let nothing = json!({});
        let taking_back = act(api, &set, "revert", &nothing);
        let mending = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            places[1].device.mend();
        };
        tokio::join!(taking_back, mending);
        let seen = lab.ended(&set).await;
        assert_eq!(seen["outcome"]["state"], "compensated", "{seen}");
        check_truth(places, &seen, "taken back");
    }
}
