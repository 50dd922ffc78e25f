//! Certificates of a TLS server in the test, judged under each policy.

use std::sync::Arc;
use std::time::Duration;

use heddle_core::Clock;
use heddle_core::tls::{TlsMode, TlsPolicy};
use http::Method;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Fault;
use super::connect::Connections;
use super::held::Rooms;
use super::request::Body;
use super::tests::request;
use super::wire::{self, Outgoing};
use crate::api::Target;

/// A server for one connection; answers its address, its fingerprint and its certificate.
async fn server() -> (std::net::SocketAddr, String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let fingerprint = hex::encode(Sha256::digest(made.cert.der()));
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let work = async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 Fine\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
                .await;
            let _ = stream.shutdown().await;
        }
    };
    #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test")]
    tokio::spawn(work);
    (address, fingerprint, made.cert.pem())
}

async fn ask(address: std::net::SocketAddr, tls: TlsPolicy) -> Result<wire::Answer, Fault> {
    let clock = Clock::default();
    let target = Target {
        org_id: clock.new_id(),
        controller_id: clock.new_id(),
        url: format!("https://localhost:{}/", address.port()).parse().unwrap(),
        tls,
        credential_id: clock.new_id(),
        credential_version: 1,
        settings: json!({}),
        site_ref: None,
    };
    let route = Connections::default().route(&target, vec![address], "controller")?;
    let outgoing = Outgoing::of(&request(Method::GET, "/", Body::None));
    let room = Rooms::default().room(clock.new_id(), false);
    wire::exchange(&route, outgoing, Duration::from_secs(5), (1_000, &room), false).await
}

#[tokio::test]
async fn an_untrusted_certificate_is_named_so_that_it_can_be_pinned() {
    let (address, fingerprint, pem) = server().await;
    let fault = ask(address, TlsPolicy::default()).await.err().unwrap();
    assert_eq!(fault.code.as_deref(), Some("tls-untrusted"));
    assert!(fault.message.contains(&fingerprint), "{}", fault.message);

    let pin =
        |fingerprint: String| TlsPolicy { mode: TlsMode::Pin, fingerprint: Some(fingerprint), ca_pem: None };
    let answer = ask(address, pin(fingerprint)).await.unwrap();
    assert_eq!((answer.status, answer.reason.as_deref()), (200, Some("Fine")));
    assert_eq!(ask(address, pin("0".repeat(64))).await.err().unwrap().code.as_deref(), Some("tls-untrusted"));

    let own = TlsPolicy { mode: TlsMode::Verify, fingerprint: None, ca_pem: Some(pem) };
    assert_eq!(ask(address, own).await.unwrap().status, 200);
    let insecure = TlsPolicy { mode: TlsMode::Insecure, fingerprint: None, ca_pem: None };
    assert_eq!(ask(address, insecure).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_policy_that_cannot_be_used_says_so() {
    let (address, ..) = server().await;
    let short = TlsPolicy { mode: TlsMode::Pin, fingerprint: Some("ab".to_owned()), ca_pem: None };
    assert_eq!(ask(address, short).await.err().unwrap().code.as_deref(), Some("tls-policy"));
}
