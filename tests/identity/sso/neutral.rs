//! What an administrator of one organization learns of the network around the service: nothing.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{add, oidc_body};
use crate::support::{Api, Database, Options, PASSWORD, Server};

/// The first failed step of a test, without its times.
async fn failed(api: &Api, id: &str) -> Value {
    let tested =
        api.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200).body;
    assert_eq!(tested["ok"], false, "{tested}");
    let mut steps = tested["steps"].clone();
    for step in steps.as_array_mut().unwrap() {
        step.as_object_mut().unwrap().remove("latency_ms");
    }
    json!({ "steps": steps, "reached": tested["reached"], "failed_step": tested["failed_step"] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_closed_and_silent_destinations_are_one_to_a_tenant_and_told_apart_to_the_operator() {
    // 127.0.0.1 stands for a network that may be reached, 127.0.0.2 for one that the operator has denied.
    let options = Options::default().with("EGRESS_DENIED_NETWORKS", "127.0.0.2");
    let server = Server::start_with(Database::sqlite(), options).await;
    let admin = server.set_up().await;
    let user =
        json!({ "username": "olga", "email": "olga@acme.test", "password": PASSWORD, "role": "org_admin" });
    admin.post("/users", &user).await.expect_status(201);
    let tenant = server.log_in("olga").await;
    // It listens, and says nothing that a directory or a provider would.
    let open = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = open.local_addr().unwrap().port();
    let directory = |host: &str| {
        json!({
            "kind": "ldap", "label": host,
            "ldap": { "url": format!("ldaps://{host}"), "base_dn": "dc=x", "user_filter": "(uid={login})" },
        })
    };
    let closed = add(&admin, &directory("127.0.0.1:1")).await;
    let denied = add(&admin, &directory("127.0.0.2:1")).await;
    let silent = add(&admin, &directory(&format!("127.0.0.1:{open}"))).await;
    let mut told = Vec::new();
    for id in [&closed, &denied, &silent] {
        told.push(failed(&tenant, id).await);
    }
    assert_eq!(told[0], told[1], "closed and denied");
    assert_eq!(told[0], told[2], "closed and open");
    assert!(told[0]["reached"].is_null(), "{}", told[0]);
    assert!(told[0].to_string().contains("was not reached"), "{}", told[0]);
    // The operator learns the reason.
    assert!(failed(&admin, &denied).await.to_string().contains("the operator has denied its network"));
    assert_ne!(failed(&admin, &closed).await, failed(&admin, &denied).await);
    let (closed, denied) =
        (oidc_body("http://127.0.0.1:1", "c", None), oidc_body("http://127.0.0.2:1", "c", None));
    let (closed, denied) = (add(&admin, &closed).await, add(&admin, &denied).await);
    assert_eq!(failed(&tenant, &closed).await, failed(&tenant, &denied).await);
}
