//! The stream of events.

use futures::StreamExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::*;
use heddle_lab::Fault;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn open(peer: &Peer, header: (&'static str, &str)) -> Result<Socket, Error> {
    let prefix = if peer.kind == Kind::Classic { "" } else { "/proxy/network" };
    let url = format!("ws://{}{prefix}/wss/s/default/events?clients=v2", peer.lab.address());
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert(header.0, header.1.parse().unwrap());
    connect_async(request).await.map(|(socket, _)| socket)
}

/// The next message with this name; `None` when the socket is closed.
async fn next(socket: &mut Socket, name: &str) -> Option<Value> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["meta"]["message"] == name {
                    return Some(value);
                }
            }
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn a_write_is_told_on_the_stream() {
    let peer = Peer::new().await;
    let mut socket = open(&peer, ("x-api-key", KEY)).await.unwrap();
    let made = peer.add("usergroup", json!({ "name": "told" })).await;
    let message = next(&mut socket, "usergroup:add").await.unwrap();
    assert_eq!((message["meta"]["rc"].as_str(), &message["data"][0]["_id"]), (Some("ok"), &made["_id"]));
    let wlan = peer.row("~/rest/wlanconf", "name", "Guests").await;
    peer.change("wlanconf", &wlan["_id"], json!({ "enabled": false })).await;
    assert_eq!(next(&mut socket, "wlanconf:sync").await.unwrap()["data"][0]["enabled"], false);
    assert_eq!(next(&mut socket, "device:sync").await.unwrap()["data"][0]["state"], 5);
}

#[tokio::test]
async fn what_a_person_or_a_device_does_is_told_too() {
    let peer = Peer::new().await;
    let mut socket = open(&peer, ("x-api-key", KEY)).await.unwrap();
    peer.lab
        .edit(
            &json!({ "do": "update", "table": "networkconf", "which": "Office", "body": { "name": "Desk" } }),
        )
        .unwrap();
    assert_eq!(next(&mut socket, "networkconf:sync").await.unwrap()["data"][0]["name"], "Desk");
    peer.lab.edit(&json!({ "do": "device", "mac": CORE, "online": false })).unwrap();
    loop {
        let message = next(&mut socket, "device:sync").await.unwrap();
        if message["data"][0]["mac"] == CORE && message["data"][0]["state"] == 0 {
            break;
        }
    }
}

#[tokio::test]
async fn devices_tell_their_state_again_and_again() {
    let peer = Peer::new().await;
    let mut socket = open(&peer, ("x-api-key", KEY)).await.unwrap();
    peer.lab.advance(Duration::from_secs(6));
    assert!(next(&mut socket, "device:sync").await.is_some());
}

#[tokio::test]
async fn a_session_that_ends_takes_its_stream_along() {
    let mut peer = Peer::new().await;
    peer.sign_in("admin", "heddle-lab").await;
    let (cookie, _) = peer.session.clone().unwrap();
    let mut socket = open(&peer, ("cookie", &cookie)).await.unwrap();
    peer.lab.end_sessions();
    assert!(next(&mut socket, "none").await.is_none());
    let refused = open(&peer, ("cookie", &cookie)).await.err().unwrap();
    assert!(matches!(refused, Error::Http(response) if response.status() == 401));
}

#[tokio::test]
async fn a_key_alone_may_not_be_enough() {
    let peer = Peer::of(Settings { key_opens_events: false, ..Settings::default() }).await;
    assert!(open(&peer, ("x-api-key", KEY)).await.is_err());
}

#[tokio::test]
async fn the_self_hosted_application_has_the_stream_without_prefix() {
    let peer =
        Peer::of(Settings { kind: Kind::Classic, release: Release::V9_5, ..Settings::default() }).await;
    let (cookie, _) = peer.session.clone().unwrap();
    let mut socket = open(&peer, ("cookie", &cookie)).await.unwrap();
    peer.lab.edit(&json!({ "do": "log", "message": "hello" })).unwrap();
    assert_eq!(next(&mut socket, "events").await.unwrap()["data"][0]["msg"], "hello");
}

#[tokio::test]
async fn a_silent_stream_loses_what_happens() {
    let peer = Peer::new().await;
    let mut socket = open(&peer, ("x-api-key", KEY)).await.unwrap();
    peer.lab.fault(Fault::vendor("events_silent", Value::Null));
    peer.add("usergroup", json!({ "name": "lost" })).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    peer.lab.clear_faults();
    peer.add("usergroup", json!({ "name": "heard" })).await;
    assert_eq!(next(&mut socket, "usergroup:add").await.unwrap()["data"][0]["name"], "heard");
}
