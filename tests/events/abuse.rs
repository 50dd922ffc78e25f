//! Peers that do not keep to RFC 6455, byte by byte: each is answered in the protocol's terms, and none takes the
//! stream down.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Api, Database, Server};

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];
const SUBSCRIBE: &str = r#"{"type":"subscribe","subscriptions":["device.*"]}"#;

/// A connection whose frames are made by hand.
struct Raw {
    stream: TcpStream,
}

fn header(first: u8, length: usize, mask: u8) -> Vec<u8> {
    match length {
        0..=125 => vec![first, mask | u8::try_from(length).unwrap()],
        126..=65_535 => {
            let [high, low] = u16::try_from(length).unwrap().to_be_bytes();
            vec![first, mask | 0x7E, high, low]
        }
        _ => [&[first, mask | 0x7F][..], &(length as u64).to_be_bytes()].concat(),
    }
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    let mut bytes = header(first, payload.len(), 0x80);
    bytes.extend(MASK);
    bytes.extend(masked);
    bytes
}

fn unmasked(first: u8, payload: &[u8]) -> Vec<u8> {
    [header(first, payload.len(), 0), payload.to_vec()].concat()
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(FIN | CLOSE, &[&code.to_be_bytes(), reason].concat())
}

impl Raw {
    /// Upgrades with a token and reads `connected`.
    async fn connect(api: &Api) -> Self {
        let host = api.base().trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(&host).await.expect("the server listens");
        let request = format!(
            "GET /api/v1/ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Cookie: svc_access={}\r\n\r\n",
            api.token()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("the server answers"));
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // RFC 6455 section 1.3.
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        let mut raw = Self { stream };
        assert_eq!(raw.text().await["type"], "connected");
        raw
    }

    async fn send(&mut self, bytes: &[u8]) {
        // A peer that has closed does not take the rest.
        let _ = self.stream.write_all(bytes).await;
    }

    /// The next frame that is no ping of the server: its first byte and its payload; `None` at the end.
    async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            let first = self.stream.read_u8().await.ok()?;
            let length = match self.stream.read_u8().await.ok()? {
                126 => usize::from(self.stream.read_u16().await.ok()?),
                127 => usize::try_from(self.stream.read_u64().await.ok()?).unwrap(),
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await.ok()?;
            if first != FIN | PING {
                return Some((first, payload));
            }
        }
    }

    async fn text(&mut self) -> Value {
        let (first, payload) = self.next().await.expect("the connection is open");
        assert_eq!(first, FIN | TEXT, "{payload:?}");
        serde_json::from_slice(&payload).expect("frames are JSON")
    }

    /// The code of the close that comes, 0 for one without; nothing else comes before or after it.
    async fn close_code(&mut self) -> u16 {
        let answered =
            tokio::time::timeout(Duration::from_secs(10), self.next()).await.expect("an answer in time");
        let (first, payload) = answered.expect("a close before the end");
        assert_eq!(first, FIN | CLOSE, "{}", String::from_utf8_lossy(&payload));
        let ended = tokio::time::timeout(Duration::from_secs(10), self.next()).await.expect("an end in time");
        assert!(ended.is_none(), "nothing comes behind a close");
        payload.first_chunk().map_or(0, |code| u16::from_be_bytes(*code))
    }
}

async fn until_nobody_is_left(api: &Api) {
    for _ in 0..600 {
        if api.get("/ws/stats").await.body["active_connections"] == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("a place is not given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_the_protocol_ends_with_the_code_that_says_how() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    let large = "x".repeat(40_000);
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("a frame that says it is too long", [&header(FIN | TEXT, 65_537, 0x80)[..], &MASK].concat(), 1009),
        ("a frame that says it is endless", [&header(FIN | BINARY, 1 << 40, 0x80)[..], &MASK].concat(), 1009),
        (
            "parts that are too long together",
            [frame(TEXT, large.as_bytes()), frame(FIN | CONTINUATION, large.as_bytes())].concat(),
            1009,
        ),
        ("an unmasked frame", unmasked(FIN | TEXT, SUBSCRIBE.as_bytes()), 1002),
        ("an unmasked ping", unmasked(FIN | PING, b""), 1002),
        ("a reserved bit", frame(FIN | RSV1 | TEXT, SUBSCRIBE.as_bytes()), 1002),
        ("a reserved bit of a ping", frame(FIN | 0x10 | PING, b""), 1002),
        ("a reserved opcode", frame(FIN | 0x3, b""), 1002),
        ("a reserved opcode of control", frame(FIN | 0xB, b""), 1002),
        ("a ping in parts", frame(PING, b"part"), 1002),
        ("a close in parts", frame(CLOSE, &1000_u16.to_be_bytes()), 1002),
        ("a ping of 126 bytes", frame(FIN | PING, &[0; 126]), 1002),
        ("a continuation of nothing", frame(FIN | CONTINUATION, b"x"), 1002),
        ("a text within a text", [frame(TEXT, b"{"), frame(FIN | TEXT, b"}")].concat(), 1002),
        ("a text that is not UTF-8", frame(FIN | TEXT, b"\xCE\xBA\xE1\xBD\xB9\xED\xA0\x80edited"), 1007),
        (
            "a text that is not UTF-8 in parts",
            [frame(TEXT, b"\xCE"), frame(FIN | CONTINUATION, b"\xCE")].concat(),
            1007,
        ),
        ("a close of one byte", frame(FIN | CLOSE, &[3]), 1002),
        ("a close with a reason that is not UTF-8", close(1000, b"\xFF\xFE"), 1007),
    ];
    for (what, bytes, code) in cases {
        let mut raw = Raw::connect(&api).await;
        raw.send(&bytes).await;
        assert_eq!(raw.close_code().await, code, "{what}");
    }
    until_nobody_is_left(&api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_is_answered_with_its_code_when_that_may_be_sent() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        let mut raw = Raw::connect(&api).await;
        raw.send(&close(code, "bye".as_bytes())).await;
        assert_eq!(raw.close_code().await, code);
    }
    for code in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535] {
        let mut raw = Raw::connect(&api).await;
        raw.send(&close(code, b"")).await;
        assert_eq!(raw.close_code().await, 1002, "{code} may not be sent");
    }
    let mut raw = Raw::connect(&api).await;
    raw.send(&frame(FIN | CLOSE, b"")).await;
    assert_eq!(raw.close_code().await, 0, "a close without a code is answered by one");
    until_nobody_is_left(&api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_pings_between_them_and_slow_bytes_are_fine() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    let mut raw = Raw::connect(&api).await;
    let (head, tail) = SUBSCRIBE.split_at(20);
    for bytes in [
        frame(TEXT, head.as_bytes()),
        frame(FIN | PING, b"between"),
        frame(CONTINUATION, b""),
        frame(FIN | CONTINUATION, tail.as_bytes()),
    ] {
        for byte in bytes {
            raw.send(&[byte]).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(raw.next().await.unwrap(), (FIN | PONG, b"between".to_vec()));
    assert_eq!(raw.text().await, json!({ "type": "subscribed", "subscriptions": ["device.*"] }));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    // A pong that was not asked for, a text in two languages, and the largest frame that there may be.
    raw.send(&frame(FIN | PONG, b"unasked")).await;
    raw.send(&frame(FIN | TEXT, r#"{"type":"subscribe","subscriptions":["device.κόσμε"]}"#.as_bytes())).await;
    assert_eq!(raw.text().await["type"], "subscribed");
    let mut largest = r#"{"type":"ping"}"#.to_owned();
    largest.push_str(&" ".repeat(65_536 - largest.len()));
    raw.send(&frame(FIN | TEXT, largest.as_bytes())).await;
    assert_eq!(raw.text().await["type"], "pong");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_and_pongs_have_a_limit_too() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    for kind in [PING, PONG] {
        let mut raw = Raw::connect(&api).await;
        raw.send(&frame(FIN | kind, b"x").repeat(50)).await;
        raw.send(&frame(FIN | TEXT, SUBSCRIBE.as_bytes())).await;
        let mut answers = 0;
        let said = loop {
            match raw.next().await.expect("fifty are fine") {
                (first, payload) if first == FIN | PONG => {
                    assert_eq!(payload, b"x");
                    answers += 1;
                }
                other => break other,
            }
        };
        assert_eq!(said.0, FIN | TEXT, "{said:?}");
        // Of many pings the last has to be answered (RFC 6455 section 5.5.3).
        assert!(if kind == PING { (1..=50).contains(&answers) } else { answers == 0 }, "{answers}");
        raw.send(&frame(FIN | kind, b"x").repeat(51)).await;
        let (first, payload) = loop {
            match raw.next().await.expect("a close before the end") {
                (first, _) if first == FIN | PONG => {}
                other => break other,
            }
        };
        assert_eq!(first, FIN | CLOSE);
        let reason = b"more than 50 pings and pongs per second";
        assert_eq!(payload, [&1008_u16.to_be_bytes()[..], reason].concat());
    }
    until_nobody_is_left(&api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_endless_parts_is_ended_and_what_came_before_is_answered() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    let (head, tail) = SUBSCRIBE.split_at(20);
    let empty = frame(CONTINUATION, b"");
    let mut raw = Raw::connect(&api).await;
    let whole = [frame(TEXT, head.as_bytes()), empty.repeat(150), frame(FIN | CONTINUATION, tail.as_bytes())];
    raw.send(&[&whole.concat()[..], &frame(TEXT, b""), &empty.repeat(1000)].concat()).await;
    assert_eq!(raw.text().await["type"], "subscribed", "it came before there were too many");
    let (first, payload) = raw.next().await.expect("a close before the end");
    assert_eq!(first, FIN | CLOSE);
    let reason = b"more than 200 parts of messages per second";
    assert_eq!(payload, [&1008_u16.to_be_bytes()[..], reason].concat());
    until_nobody_is_left(&api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_away_without_a_word_gives_their_place_back() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    let mut half = Raw::connect(&api).await;
    half.stream.shutdown().await.unwrap();
    while half.next().await.is_some() {}
    let cut = Raw::connect(&api).await;
    cut.stream.set_zero_linger().unwrap();
    drop(cut);
    let mut in_a_frame = Raw::connect(&api).await;
    in_a_frame.send(&frame(FIN | TEXT, SUBSCRIBE.as_bytes())[..9]).await;
    drop(in_a_frame);
    until_nobody_is_left(&api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_no_ping_is_gone_after_a_minute() {
    let server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    let mut silent = Raw::connect(&api).await;
    let ended = tokio::time::timeout(Duration::from_secs(75), silent.next()).await.expect("within 75 s");
    let (first, payload) = ended.expect("a close before the end");
    assert_eq!(first, FIN | CLOSE);
    assert_eq!(payload, [&1008_u16.to_be_bytes()[..], b"nothing came for 60 s"].concat());
}
