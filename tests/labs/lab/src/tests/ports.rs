//! Ports, certificates, limits and what leaves on the wire.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[tokio::test]
async fn certificates_are_those_that_are_named() {
    let lab = Lab::builder(Toy::default()).tls().name("toy").start().await;
    let url = format!("{}/count", lab.url());
    assert_eq!(lab.certificate_sha256().unwrap().len(), 64);
    assert_ne!(lab.certificate_sha256(), lab.certificate_sha256_of(Certificate::Other));
    // Each client trusts one certificate, whatever is wrong with it.
    let trusting = |which| {
        let pem = reqwest::Certificate::from_pem(lab.certificate_pem(which).unwrap().as_bytes()).unwrap();
        client(|builder| builder.tls_certs_only([pem]))
    };
    let good = trusting(Certificate::Good);
    assert_eq!(good.get(&url).send().await.unwrap().status(), 200);
    for (which, reason) in [
        (Certificate::Expired, Some("expired")),
        (Certificate::WrongName, Some("name")),
        (Certificate::Other, None),
    ] {
        lab.fault(FaultKind::Certificate { which });
        assert!(good.get(&url).send().await.is_err(), "old connections are closed");
        let refused = trusting(which).get(&url).send().await.err().map(|error| format!("{error:?}"));
        match (&refused, reason) {
            (Some(error), Some(reason)) => assert!(error.to_lowercase().contains(reason), "{error}"),
            (refused, reason) => assert!(refused.is_none() && reason.is_none(), "{which:?}: {refused:?}"),
        }
    }
    lab.clear_faults();
    assert_eq!(good.get(&url).send().await.unwrap().status(), 200);
}

/// All that the controller sends for one request, until the connection closes.
async fn raw(lab: &Lab<Toy>, request: &str) -> String {
    let mut stream = TcpStream::connect(lab.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_reason_phrase_is_sent_as_the_vendor_words_it() {
    let peer = Peer::new().await;
    peer.lab.fault(Fault::vendor("no_task", json!(null)));
    let request = "POST /task HTTP/1.1\r\nhost: toy\r\nconnection: close\r\n\r\n";
    let answer = raw(&peer.lab, request).await;
    assert!(answer.starts_with("HTTP/1.1 500 no worker is free\r\n"), "{answer}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let peer = Peer { lab: Lab::builder(Toy::default()).body_bytes_max(100).start().await, http: http() };
    let send = |bytes: usize| {
        let request = peer.http.post(format!("{}/count", peer.lab.url())).body("x".repeat(bytes));
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!((send(100).await, send(101).await, send(6_000).await), (200, 413, 413));
    let executed: Vec<bool> = peer.lab.record().iter().map(|exchange| exchange.is_executed).collect();
    assert_eq!((executed.as_slice(), peer.count()), ([true, false, false].as_slice(), 1));
}

#[tokio::test]
async fn a_boot_closes_open_connections() {
    let peer = Peer::new().await;
    let mut idle = TcpStream::connect(peer.lab.address()).await.unwrap();
    idle.write_all(b"GET /count HTTP/1.1\r\nhost: toy\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    peer.lab.boot(Duration::from_millis(100));
    let closed = tokio::time::timeout(Duration::from_secs(20), idle.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "the idle connection closes");
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert_eq!(peer.status("GET", "/count").await, Some(200));
}

#[tokio::test]
async fn shutdown_frees_the_port() {
    let peer = Peer::new().await;
    let address = peer.lab.address();
    peer.lab.shutdown().await;
    assert_eq!(Lab::builder(Toy::default()).listen(address).start().await.address(), address);
}
