//! The signatures of `fabric.webhook`, checked by a receiver that knows the secret of one organization.

use chrono::TimeDelta;
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::{filled, id_of};
use crate::support::{Api, PASSWORD, Server, on_both};
use crate::webhooks::receiver::{Got, Receiver};

const SIGNATURE: &str = "x-heddle-signature";

/// Whether one of a request's signatures was made with this secret, for this URL.
fn is_signed(got: &Got, url: &str, secret: &str) -> bool {
    let (time, signatures) = got.headers[SIGNATURE].strip_prefix("t=").unwrap().split_once(',').unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{time}\nPOST\n{url}\n").as_bytes());
    mac.update(&got.body);
    let expected = format!("v1={}", hex::encode(mac.finalize().into_bytes()));
    signatures.split(',').any(|signature| signature == expected)
}

/// Runs one step with the rights of this caller; returns the request that arrived at the path.
async fn sent(api: &Api, receiver: &Receiver, path: &str) -> Got {
    let steps =
        json!({ "steps": [{ "operation_id": "fabric.webhook", "params": { "url": receiver.url(path) } }] });
    let made = api.post("/fabric/connections", &filled(steps)).await.expect_status(201).body;
    let test = format!("/fabric/connections/{}/test", id_of(&made));
    let run = api.post(&test, &json!({ "payload": { "name": "edge" } })).await.expect_status(200).body;
    assert_eq!(run["steps"][0]["success"], true, "{run}");
    receiver.got(path).pop().expect("the request arrived")
}

async fn rotated(api: &Api) -> String {
    let made = api.post("/fabric/signing-secret/rotate", &json!({})).await.expect_status(200).body;
    made["secret"].as_str().expect("it is shown once").to_owned()
}

/// An administrator of another organization.
async fn another_tenant(server: &Server, api: &Api) -> Api {
    let made = api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
    let user = json!({
        "username": "olga", "email": "olga@umbrella.test", "password": PASSWORD, "role": "org_admin",
        "organization_id": made["id"],
    });
    api.post("/users", &user).await.expect_status(201);
    server.log_in("olga").await
}

on_both! {
    async fn a_request_is_signed_with_the_secret_of_its_own_organization_alone(database: Database) {
        let (server, api, receiver) = crate::webhooks::start(database).await;
        let other = another_tenant(&server, &api).await;
        let unsigned = sent(&api, &receiver, "/unsigned").await;
        assert!(!unsigned.headers.contains_key(SIGNATURE), "{unsigned:?}");
        let (own, foreign) = (rotated(&api).await, rotated(&other).await);
        let url = |path: &str| receiver.url(path);
        let got = sent(&api, &receiver, "/own").await;
        assert!(is_signed(&got, &url("/own"), &own), "{got:?}");
        assert!(!is_signed(&got, &url("/own"), &foreign), "{got:?}");
        assert!(!is_signed(&got, &url("/elsewhere"), &own), "it is for one URL: {got:?}");
        let got = sent(&other, &receiver, "/foreign").await;
        assert!(is_signed(&got, &url("/foreign"), &foreign), "{got:?}");
        assert!(!is_signed(&got, &url("/foreign"), &own), "{got:?}");
    }
}

on_both! {
    async fn after_a_rotation_the_secret_before_is_good_for_a_day(database: Database) {
        let (server, api, receiver) = crate::webhooks::start(database).await;
        let (before, new) = (rotated(&api).await, rotated(&api).await);
        assert_ne!(before, new);
        let got = sent(&api, &receiver, "/both").await;
        for secret in [&new, &before] {
            assert!(is_signed(&got, &receiver.url("/both"), secret), "{got:?}");
        }
        server.running().app.clock.advance(TimeDelta::hours(25));
        let api = server.log_in("ada").await;
        let got = sent(&api, &receiver, "/new").await;
        assert!(is_signed(&got, &receiver.url("/new"), &new), "{got:?}");
        assert!(!is_signed(&got, &receiver.url("/new"), &before), "{got:?}");
        let shown = api.get("/fabric/signing-secret").await.expect_status(200);
        assert_eq!(shown.body["generation"], 2, "{}", shown.text);
        assert!(!shown.text.contains(&new) && !shown.text.contains(&before), "{}", shown.text);
    }
}
