use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use url::Url;

use super::add;
use crate::support::{Server, on_both};

on_both! {
    async fn a_saml_provider_has_a_way_there_and_none_back(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let body = json!({
            "kind": "saml", "label": "Campus",
            "saml": { "entry_point": "https://id.example/sso?a=b", "entity_id": "urn:heddle:acme" },
        });
        let id = add(&admin, &body).await;
        let nobody = server.nobody();
        let answer = nobody.get(&format!("/auth/sso/saml/login?provider_id={id}&relay_state=x")).await.expect_status(200);
        let url = Url::parse(answer.body["redirect_url"].as_str().unwrap()).unwrap();
        assert!(url.as_str().starts_with("https://id.example/sso?a=b&SAMLRequest="), "{url}");
        let request = url.query_pairs().find(|(name, _)| name == "SAMLRequest").unwrap().1.into_owned();
        let mut xml = String::new();
        let deflated = STANDARD.decode(request).unwrap();
        flate2::read::DeflateDecoder::new(deflated.as_slice()).read_to_string(&mut xml).unwrap();
        assert!(xml.contains("<saml:Issuer>urn:heddle:acme</saml:Issuer>"), "{xml}");
        let long = "x".repeat(81);
        nobody.get(&format!("/auth/sso/saml/login?provider_id={id}&relay_state={long}")).await.expect_status(422);
        nobody.get(&format!("/auth/sso/saml/login?provider_id={}", uuid::Uuid::nil())).await.expect_status(404);
        for answer in [
            nobody.get("/auth/sso/saml/callback").await,
            nobody.post("/auth/sso/saml/callback", &json!({ "SAMLResponse": "x" })).await,
            nobody.send("POST", "/auth/sso/saml/callback", None).await,
        ] {
            assert_eq!((answer.status, answer.error_type()), (501, "not_implemented"), "{}", answer.text);
        }
        let tested = admin.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200).body;
        assert_eq!((&tested["ok"], &tested["steps"]), (&json!(true), &json!([])));
    }
}
