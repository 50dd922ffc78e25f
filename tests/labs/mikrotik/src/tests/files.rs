//! Files, exports and backups.

use super::*;

#[tokio::test]
async fn export_is_read_chunk_by_chunk() {
    let peer = Peer::of(Settings { export_bytes_min: 70_000, ..Settings::default() }).await;
    peer.post("export", json!({ "file": "bk" })).await;
    let mut text = String::new();
    loop {
        let chunk = json!({ "file": "bk.rsc", "chunk-size": "32768", "offset": text.len().to_string() });
        let rows = peer.post("file/read", chunk).await;
        let data = rows[0]["data"].as_str().unwrap();
        if data.is_empty() {
            break;
        }
        text.push_str(data);
    }
    assert!(text.len() >= 70_000 && text.contains("/ip firewall filter\n"), "{}", text.len());
    assert!(!text.contains("household secret"));
    let file = peer.row("file", "name", "bk.rsc").await;
    assert_eq!((&file["type"], &file["size"]), (&json!("script"), &json!(text.len().to_string())));
    assert_eq!(peer.delete("file", id(&file)).await, 204);
    peer.refused("POST", "file/read", json!({ "file": "bk.rsc" })).await;
    let over = json!({ "file": "x", "chunk-size": "40000" });
    peer.refused("POST", "file/read", over).await;
}

#[tokio::test]
async fn export_shows_secrets_only_when_asked_by_who_may() {
    let mut peer = Peer::new().await;
    let shown = peer.post("export", json!({ "show-sensitive": "" })).await;
    assert!(shown["ret"].as_str().unwrap().contains("household secret"));
    peer.user = Settings::default().reader;
    let hidden = peer.post("export", json!({ "show-sensitive": "" })).await;
    assert!(!hidden["ret"].as_str().unwrap().contains("household secret"));
}

#[tokio::test]
async fn exported_rows_can_be_imported() {
    let peer = Peer::new().await;
    let text = peer.post("export", json!({})).await["ret"].as_str().unwrap().to_owned();
    let lines = text.split("/ip firewall nat\n").nth(1).unwrap().split("\n/").next().unwrap();
    let before = peer.lab.lock().configured("ip/firewall/nat");
    for row in peer.rows("ip/firewall/nat").await {
        peer.delete("ip/firewall/nat", id(&row)).await;
    }
    let contents = format!("/ip firewall nat\n{lines}\n");
    peer.add("file", json!({ "name": "nat.rsc", "contents": contents })).await;
    peer.post("import", json!({ "file-name": "nat.rsc", "verbose": "yes" })).await;
    assert_eq!(peer.lab.lock().configured("ip/firewall/nat"), before);
}

#[tokio::test]
async fn import_stops_at_the_first_error_and_keeps_what_was_done() {
    let peer = Peer::new().await;
    let contents = "/system identity set name=half\n/ip address add address=bad interface=bridge\n/system identity set name=whole\n";
    peer.add("file", json!({ "name": "x.rsc", "contents": contents })).await;
    assert!(
        peer.refused("POST", "import", json!({ "file-name": "x.rsc" })).await.starts_with("Script Error:")
    );
    assert_eq!(peer.get("system/identity").await["name"], "half");
    assert_eq!(
        peer.refused("POST", "import", json!({ "file-name": "none.rsc" })).await,
        "input does not match any value of file-name"
    );
}

#[tokio::test]
async fn backup_restarts_into_what_it_holds() {
    let peer = Peer::new().await;
    peer.post("system/backup/save", json!({ "name": "bk", "password": "secret" })).await;
    assert_eq!(peer.row("file", "name", "bk.backup").await["type"], "backup");
    peer.post("system/identity/set", json!({ "name": "later" })).await;
    let row = peer.add("ip/firewall/address-list", json!({ "list": "later", "address": "10.0.0.1" })).await;
    let wrong = json!({ "name": "bk.backup", "password": "wrong" });
    assert_eq!(peer.refused("POST", "system/backup/load", wrong).await, "failure: wrong password");
    peer.post("system/backup/load", json!({ "name": "bk.backup", "password": "secret" })).await;
    peer.lab.advance(Duration::from_secs(2));
    assert!(peer.request("GET", "system/resource").send().await.is_err());
    peer.lab.advance(Duration::from_secs(21));
    assert_eq!(peer.get("system/identity").await["name"], "lab-router");
    assert!(peer.rows("ip/firewall/address-list?list=later").await.is_empty());
    assert_eq!(peer.rows("file").await.len(), 1);
    let next = peer.add("ip/firewall/address-list", json!({ "list": "later", "address": "10.0.0.1" })).await;
    assert_ne!(next[".id"], row[".id"]);
}

#[tokio::test]
async fn file_is_written_and_named_once() {
    let peer = Peer::new().await;
    let file = peer.add("file", json!({ "name": "a.txt", "contents": "one" })).await;
    assert_eq!((&file["size"], &file["contents"]), (&json!("3"), &json!("one")));
    let file = peer.change("file", id(&file), json!({ "contents": "three" })).await;
    assert_eq!(file["size"], "5");
    peer.refused("PUT", "file", json!({ "name": "a.txt" })).await;
}
