//! What goes over the wire: bodies that are too large, methods, slashes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::json;

use crate::support::{Database, Server, Socket, on_both};

const MIB: usize = 1_048_576;
const TOO_LARGE: &str = r#"{"detail":"request body exceeds 1048576-byte limit"}"#;

/// Sends all of it, and reads only then: one answer for each `HTTP/1.1` that comes, until the server is silent or done.
fn send_then_read(address: SocketAddr, parts: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    for part in parts {
        stream.write_all(part).expect("the server reads to the end");
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the connection is closed and not reset");
    String::from_utf8(answer).expect("answers are text")
}

/// A body in pieces that do not say how many will come.
fn chunked(bytes: usize) -> Vec<u8> {
    let chunk = [format!("{:x}\r\n", 8192).into_bytes(), vec![b'x'; 8192], b"\r\n".to_vec()].concat();
    [chunk.repeat(bytes / 8192), b"0\r\n\r\n".to_vec()].concat()
}

on_both! {
    async fn a_body_that_says_it_is_too_large_is_refused_on_every_path_and_method(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let document = api.get("/openapi.json").await.body;
        let mut paths: Vec<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
        paths.truncate(12);
        paths.extend(["/api/v1/nowhere", "/api/v1/ws", "/api/v1/health/live"].map(str::to_owned));
        let body = vec![b' '; MIB + 1];
        for path in paths {
            let path = path.strip_prefix("/api/v1").unwrap();
            for method in ["POST", "PATCH", "PUT", "DELETE", "GET", "OPTIONS"] {
                let answer = server.nobody().send(method, path, Some(body.clone())).await;
                assert_eq!((answer.status, answer.text.as_str()), (413, TOO_LARGE), "{method} {path}");
                assert_eq!(answer.header("x-frame-options"), "DENY");
            }
        }
        // One byte less is judged by what it says.
        api.send("POST", "/sites", Some(vec![b' '; MIB])).await.expect_status(422);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_everything_before_reading_reads_the_answer() {
    let server = Server::start(Database::sqlite()).await;
    let token = server.set_up().await.token().to_owned();
    let address = server.running().addr;
    let head = move |path: &str, length: &str| {
        format!(
            "POST /api/v1{path} HTTP/1.1\r\nhost: heddle\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
        )
    };
    tokio::task::spawn_blocking(move || {
        for round in 0..20 {
            let bytes = 8 * MIB + round;
            let head_with_length = head("/sites", &format!("content-length: {bytes}"));
            let answer = send_then_read(address, &[head_with_length.as_bytes(), &vec![b'x'; bytes]]);
            assert!(
                answer.starts_with("HTTP/1.1 413 ") && answer.ends_with(TOO_LARGE),
                "round {round}: {answer}"
            );
            let head_without = head("/sites", "transfer-encoding: chunked");
            let answer = send_then_read(address, &[head_without.as_bytes(), &chunked(8 * MIB)]);
            assert!(
                answer.starts_with("HTTP/1.1 413 ") && answer.ends_with(TOO_LARGE),
                "round {round}: {answer}"
            );
            // The server does not look at this body at all.
            let head_nowhere = head("/nowhere", "transfer-encoding: chunked");
            let answer = send_then_read(address, &[head_nowhere.as_bytes(), &chunked(8 * MIB)]);
            assert!(answer.starts_with("HTTP/1.1 404 "), "round {round}: {answer}");
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_serves_on_after_a_body_that_was_too_large() {
    let server = Server::start(Database::sqlite()).await;
    let address = server.running().addr;
    let answer = tokio::task::spawn_blocking(move || {
        let large =
            format!("POST /api/v1/sites HTTP/1.1\r\nhost: heddle\r\ncontent-length: {}\r\n\r\n", 2 * MIB);
        let next = b"GET /health HTTP/1.1\r\nhost: heddle\r\nconnection: close\r\n\r\n";
        send_then_read(address, &[large.as_bytes(), &vec![b'x'; 2 * MIB], next])
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_before_sending_is_told_not_to() {
    let server = Server::start(Database::sqlite()).await;
    let address = server.running().addr;
    let answer = tokio::task::spawn_blocking(move || {
        let head = format!(
            "POST /api/v1/sites HTTP/1.1\r\nhost: heddle\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            2 * MIB
        );
        send_then_read(address, &[head.as_bytes()])
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && !answer.contains("100 Continue"), "{answer}");
}

on_both! {
    async fn a_wrong_method_is_told_which_are_right(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for (method, path, allowed) in [
            ("PUT", "/sites", "GET,HEAD,POST"),
            ("POST", "/health", "GET,HEAD"),
            ("GET", "/auth/login", "POST"),
            ("PUT", "/sites/01900000-0000-7000-8000-000000000000", "GET,HEAD,PATCH,DELETE"),
        ] {
            let answer = api.send(method, path, None).await.expect_status(405);
            assert_eq!(answer.error_type(), "method_not_allowed");
            let mut given: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
            let mut expected: Vec<&str> = allowed.split(',').collect();
            given.sort_unstable();
            expected.sort_unstable();
            assert_eq!(given, expected, "{method} {path}");
        }
    }
}

on_both! {
    async fn head_is_get_without_a_body(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for path in ["/sites", "/auth/me", "/openapi.json", "/health", "/nowhere", "/sites/not-an-id"] {
            let (get, head) = (api.get(path).await, api.send("HEAD", path, None).await);
            assert_eq!(head.status, get.status, "{path}");
            assert_eq!(head.text, "", "{path}");
            assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
            assert_eq!(head.header("x-frame-options"), "DENY", "{path}");
        }
        server.nobody().send("HEAD", "/sites", None).await.expect_status(401);
    }
}

on_both! {
    async fn a_slash_at_the_end_changes_nothing(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for path in ["/sites", "/auth/me", "/ws/stats", "/setup/status", "/health/ready"] {
            let (plain, slashed) = (api.get(path).await, api.get(&format!("{path}/")).await);
            assert_eq!((plain.status, slashed.status), (200, 200), "{path}");
        }
        api.get("/sites/?per_page=1").await.expect_status(200);
        api.post("/sites/", &json!({ "name": "Branch" })).await.expect_status(201);
        let mut socket = Socket::connect_at(&api, "/ws/").await;
        socket.send(&json!({ "type": "auth", "token": api.token() })).await;
        assert_eq!(socket.next().await["type"], "connected");
    }
}
