//! Where a plugin's requests and secrets go: to what the organization gave the secret for, and never into a network that the
//! operator did not open.

use serde_json::{Value, json};

use super::{Keys, Lab, SECRET, agree, fails, send, works};
use crate::sandbox::device::Device;
use crate::support::{Options, Server, on_both};

const ORGANIZATION: &str = "/plugins/scripted/organization";
const KEY: &str = "/plugins/scripted/secrets/key";

fn request() -> Value {
    json!({ "do": "http", "target": "api", "path": "/v1/x", "secrets": { "header:X-Key": "key" } })
}

/// The package, with a target whose address is a setting of the organization.
fn with_setting(manifest: &mut Value) {
    manifest["capabilities"]["http"][0]["origin"] = json!({ "setting": "server" });
    manifest["config-schema"] = json!({
        "type": "object", "properties": { "server": { "type": "string", "format": "uri" } },
        "additionalProperties": false,
    });
}

fn keys_seen(device: &Device) -> usize {
    let has_key = |headers: &[(String, String)]| headers.contains(&("x-key".to_owned(), SECRET.to_owned()));
    device.seen().iter().filter(|request| has_key(&request.headers)).count()
}

on_both! {
    async fn a_secret_is_sent_only_to_the_address_that_it_was_given_for(database: Database) {
        let (lab, elsewhere) = (Lab::start(database).await, Device::start().await);
        send(&lab.api, &lab.archive(with_setting)).await.expect_status(201);
        agree(&lab.api).await;
        let at = async |url: &str| {
            let body = json!({ "enabled": true, "settings": { "server": url } });
            lab.api.put(ORGANIZATION, &body).await.expect_status(200).body["secrets_set"].clone()
        };
        // Before the organization says where, there is nowhere to send it.
        lab.api.put(ORGANIZATION, &json!({ "enabled": true })).await.expect_status(200);
        let early = lab.api.put(KEY, &json!({ "value": SECRET })).await.expect_status(409);
        assert!(early.message().contains("PUT /plugins/scripted/organization"), "{}", early.text);

        at(&lab.device.url()).await;
        lab.api.put(KEY, &json!({ "value": SECRET })).await.expect_status(204);
        works(&lab.api, "look", request()).await;
        assert_eq!(keys_seen(&lab.device), 1);

        // A change of the address does not send the secret to the new one.
        assert_eq!(at(&elsewhere.url()).await, json!([]), "it is shown as missing");
        fails(&lab.api, "look", request()).await;
        assert!(elsewhere.seen().is_empty(), "{:?}", elsewhere.seen());
        assert_eq!(at(&lab.device.url()).await, json!(["key"]), "it is still there for the first address");
        works(&lab.api, "look", request()).await;

        at(&elsewhere.url()).await;
        lab.api.put(KEY, &json!({ "value": SECRET })).await.expect_status(204);
        works(&lab.api, "look", request()).await;
        assert_eq!((keys_seen(&lab.device), keys_seen(&elsewhere)), (2, 1));
    }
}

on_both! {
    async fn an_update_that_sends_a_secret_elsewhere_does_not_get_it(database: Database) {
        let (lab, elsewhere) = (Lab::in_use(database).await, Device::start().await);
        lab.api.put(KEY, &json!({ "value": SECRET })).await.expect_status(204);
        let moved = lab.archive(|manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["capabilities"]["http"][0]["origin"] = json!(elsewhere.url());
        });
        assert_eq!(send(&lab.api, &moved).await.expect_status(201).body["state"], "awaiting_consent");
        agree(&lab.api).await;
        fails(&lab.api, "look", request()).await;
        assert!(elsewhere.seen().is_empty(), "{:?}", elsewhere.seen());
        let shown = lab.api.get(ORGANIZATION).await.expect_status(200).body;
        assert_eq!(shown["secrets_missing"], json!(["key"]));
    }
}

on_both! {
    async fn a_private_network_is_reached_only_where_the_operator_lists_it(database: Database) {
        let (keys, device) = (Keys::new(), Device::start().await);
        let options = Options::default().with("ADAPTER_TRUSTED_KEYS", keys.file().display().to_string());
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let lab = Lab { server, api, device, keys };
        send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        agree(&lab.api).await;
        lab.switch_on(&lab.api).await;
        let (_, message) = fails(&lab.api, "look", json!({ "do": "http", "target": "api", "path": "/v1/x" })).await;
        assert!(message.contains("PLUGIN_PRIVATE_NETWORKS"), "{message}");
        assert!(lab.device.seen().is_empty(), "{:?}", lab.device.seen());
    }
}
