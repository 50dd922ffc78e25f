//! What differs between releases of the package.

use super::*;

#[tokio::test]
async fn older_release_ignores_dry_run_and_writes() {
    let peer = Peer::of_release(Release::V2_7).await;
    let mut body = rule("really written");
    body["dry_run"] = json!(true);
    peer.post("/firewall/rule", body).await;
    assert_eq!(peer.get("/firewall/rules").await.as_array().unwrap().len(), 5);
    // Only the shutdown had a switch of that name.
    peer.post("/diagnostics/reboot", json!({ "dry_run": true })).await;
    assert_eq!(peer.lab.state()["jobs"], json!([]));
}

#[tokio::test]
async fn routes_come_with_their_releases() {
    for (path, method, from) in [
        ("/system/enum", "POST", Release::V2_8),
        ("/system/update", "POST", Release::V2_8),
        ("/services/freeradius/eap", "GET", Release::V2_8),
        ("/system/hasync", "GET", Release::V2_10),
        ("/status/wireguard/tunnels", "GET", Release::V2_10),
    ] {
        for release in [Release::V2_7, Release::V2_8, Release::V2_10] {
            let peer = Peer::of_release(release).await;
            let status = peer.send(method, path, &Value::Null).await.status();
            assert_eq!(status == 404, release < from, "{path} {release:?}");
        }
    }
}

#[tokio::test]
async fn fields_come_with_their_releases() {
    for (release, has_dscp, has_name, version) in [
        (Release::V2_7, false, false, "v2.7.1"),
        (Release::V2_8, true, true, "v2.8.4"),
        (Release::V2_10, true, true, "v2.10"),
    ] {
        let peer = Peer::of_release(release).await;
        assert_eq!(peer.get("/firewall/rule?id=0").await.get("dscp").is_some(), has_dscp, "{release:?}");
        assert_eq!(peer.get("/diagnostics/table?id=bogons").await.get("name").is_some(), has_name);
        assert_eq!(peer.get("/system/restapi/version").await["current_version"], version);
    }
}

#[tokio::test]
async fn services_of_packages_look_off_in_the_oldest_release() {
    for (release, runs) in [(Release::V2_7, false), (Release::V2_8, true)] {
        let peer = Peer::of_release(release).await;
        let found = peer.get("/status/services?name=haproxy").await;
        assert_eq!((&found[0]["enabled"], &found[0]["status"]), (&json!(runs), &json!(runs)));
    }
}

#[tokio::test]
async fn known_defects_of_the_oldest_release() {
    let peer = Peer::of_release(Release::V2_7).await;
    let resolver = json!({ "name": "own", "server": "192.0.2.53" });
    assert_eq!(
        peer.refusal("POST", "/services/haproxy/settings/dns_resolver", resolver.clone()).await.0,
        500
    );
    let queue = json!({ "parent_id": 0, "id": 0, "name": "x" });
    assert_eq!(peer.refusal("PATCH", "/firewall/traffic_shaper/limiter/queue", queue).await.0, 500);
    let peer = Peer::new().await;
    peer.post("/services/haproxy/settings/dns_resolver", resolver).await;
}

#[tokio::test]
async fn other_version_of_the_api_can_be_installed() {
    let peer = Peer::new().await;
    peer.patch("/system/restapi/version", json!({ "install_version": "v2.7.1" })).await;
    assert_eq!(peer.get("/system/restapi/version").await["current_version"], "v2.7.1");
}
