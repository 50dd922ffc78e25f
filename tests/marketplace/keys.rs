//! Keys of publishers that a `super_admin` trusts over the API.

use heddle_marketplace::PublisherKey;
use serde_json::{Value, json};

use crate::plugins::{Keys, archive_of, entry, guest, manifest, send};
use crate::support::{Server, on_both};

fn entered(key: &PublisherKey) -> Value {
    let key = key.trusted();
    json!({ "publisher": key.publisher, "public_key": hex::encode(key.key), "fingerprint": key.key_id(), "ids": ["scripted"] })
}

on_both! {
    async fn a_key_is_trusted_by_its_fingerprint(database: Database) {
        let keys = Keys::new();
        let mut server = Server::start_with(database, keys.options()).await;
        let mut api = server.set_up().await;
        let globex = PublisherKey::generate("globex").unwrap();
        let archive = archive_of(&manifest("http://127.0.0.1:9"), guest(), &globex);
        send(&api, &archive).await.expect_status(400);
        let mut wrong = entered(&globex);
        wrong["fingerprint"] = json!("ab".repeat(32));
        let refused = api.post("/plugins/trusted-keys", &wrong).await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["field"], "/fingerprint", "{}", refused.text);
        for (field, value) in [("public_key", json!("00")), ("publisher", json!("Not A Name")), ("ids", json!(["a b"]))] {
            let mut wrong = entered(&globex);
            wrong[field] = value;
            api.post("/plugins/trusted-keys", &wrong).await.expect_status(422);
        }
        let added = api.post("/plugins/trusted-keys", &entered(&globex)).await.expect_status(201);
        let id = globex.trusted().key_id();
        assert_eq!((&added.body["key_id"], &added.body["is_in_file"]), (&json!(id), &json!(false)));
        assert_eq!(entry(&api, "trusted_key.added").await["detail"]["publisher"], "globex");
        let again = api.post("/plugins/trusted-keys", &entered(&globex)).await.expect_status(409);
        assert_eq!(again.error_type(), "key_trusted", "{}", again.text);
        let listed = api.get("/plugins/trusted-keys").await.expect_status(200).body;
        let own = listed["items"].as_array().unwrap().iter().find(|key| key["key_id"] == id.as_str()).unwrap();
        assert_eq!((&own["ids"], &own["added_by"]), (&json!(["scripted"]), &json!("ada")));

        server.restart().await;
        api = server.log_in("ada").await;
        send(&api, &archive).await.expect_status(201);
        api.delete(&format!("/plugins/trusted-keys/{id}")).await.expect_status(204);
        api.delete(&format!("/plugins/trusted-keys/{id}")).await.expect_status(404);
        let mut next = manifest("http://127.0.0.1:9");
        next["version"] = json!("1.1.0");
        send(&api, &archive_of(&next, guest(), &globex)).await.expect_status(400);
        let in_file = keys.acme.trusted().key_id();
        let refused = api.delete(&format!("/plugins/trusted-keys/{in_file}")).await.expect_status(409);
        assert!(refused.text.contains("ADAPTER_TRUSTED_KEYS"), "{}", refused.text);
    }
}
