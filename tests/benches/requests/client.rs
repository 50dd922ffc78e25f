//! An HTTP client that does as little as it can, on a thread of its own:
//! its work takes from the same processors as the server's.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::measure::Samples;

pub(super) const CONNECTIONS: usize = 64;
/// The server has no room for the request now.
const OVERLOADED: u16 = 503;

/// What is asked again and again.
pub(super) struct Request {
    method: &'static str,
    path: String,
    token: String,
    body: Option<String>,
}

impl Request {
    pub(super) fn get(path: &str, token: &str) -> Self {
        Self { method: "GET", path: path.to_owned(), token: token.to_owned(), body: None }
    }

    pub(super) fn post(path: &str, token: &str, body: &Value) -> Self {
        let body = Some(body.to_string());
        Self { method: "POST", path: path.to_owned(), token: token.to_owned(), body }
    }

    /// As it is sent.
    fn to_text(&self, host: SocketAddr) -> String {
        let Self { method, path, token, body } = self;
        let body = body.as_ref().map(|body| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        });
        let rest = body.unwrap_or_else(|| "\r\n".to_owned());
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{rest}")
    }
}

/// Connections that stay open; each asks the same again and again.
pub(super) struct Client {
    runtime: Runtime,
    connections: Vec<Connection>,
    /// The status of what is measured.
    status: u16,
}

/// Requests that were answered.
pub(super) struct Round {
    latencies: Vec<Duration>,
    /// How many more were refused because there was no room.
    refused: usize,
    pub(super) elapsed: Duration,
}

struct Connection {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Client {
    /// Connections that take turns in what they ask for; any answer but this status ends the bench,
    /// except that requests which are refused for want of room are counted.
    pub(super) fn connect(address: SocketAddr, requests: &[Request], status: u16) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a thread can be used");
        let each = requests.iter().cycle().take(CONNECTIONS);
        let open = each.map(|request| Connection::open(address, request.to_text(address)));
        let connections = runtime.block_on(join_all(open));
        Self { runtime, connections, status }
    }

    /// The body of one answer to the first request.
    pub(super) fn fetch(&mut self) -> String {
        let connection = &mut self.connections[0];
        let status = self.runtime.block_on(connection.exchange());
        assert_eq!(status, self.status, "the server answered: {}", connection.text());
        let head = head_length(&connection.buffer).expect("an answer has a head");
        String::from_utf8(connection.buffer[head..].to_vec()).expect("an answer is text")
    }

    /// Sends this many requests, one at a time on each connection.
    pub(super) fn round(&mut self, requests: usize) -> Round {
        let (left, refused) = (Cell::new(requests), Cell::new(0));
        let (left, refused, expected) = (&left, &refused, self.status);
        let started = Instant::now();
        let each = self.connections.iter_mut().map(|connection| async move {
            let mut latencies = Vec::new();
            while let Some(rest) = left.get().checked_sub(1) {
                left.set(rest);
                let started = Instant::now();
                match connection.exchange().await {
                    status if status == expected => latencies.push(started.elapsed()),
                    OVERLOADED => refused.set(refused.get() + 1),
                    _ => panic!("the server answered: {}", connection.text()),
                }
            }
            latencies
        });
        let latencies = self.runtime.block_on(join_all(each)).concat();
        Round { latencies, refused: refused.get(), elapsed: started.elapsed() }
    }
}

impl Round {
    pub(super) fn joined(rounds: Vec<Self>) -> Self {
        let elapsed = rounds.iter().map(|round| round.elapsed).sum();
        let refused = rounds.iter().map(|round| round.refused).sum();
        Self { latencies: rounds.into_iter().flat_map(|round| round.latencies).collect(), refused, elapsed }
    }

    pub(super) fn latencies(&self) -> Samples {
        Samples::of(self.latencies.clone())
    }

    pub(super) fn per_second(&self) -> f64 {
        let requests = u32::try_from(self.latencies.len()).expect("a round is small");
        f64::from(requests) / self.elapsed.as_secs_f64()
    }

    /// Requests per second, and how many were refused.
    pub(super) fn result(&self) -> String {
        let per_second = self.per_second();
        match self.refused {
            0 => format!("{per_second:.0}/s"),
            refused => format!("{per_second:.0}/s, {refused} refused"),
        }
    }
}

impl Connection {
    async fn open(address: SocketAddr, request: String) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("a connection has this option");
        Self { stream, request, buffer: Vec::with_capacity(128 << 10) }
    }

    /// Leaves the whole answer in the buffer and gives its status.
    async fn exchange(&mut self) -> u16 {
        self.stream.write_all(self.request.as_bytes()).await.expect("the server reads");
        self.buffer.clear();
        let mut length = None;
        while length.is_none_or(|length| self.buffer.len() < length) {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("the server answers");
            assert!(read > 0, "the server hung up");
            length = length.or_else(|| answer_length(&self.buffer));
        }
        let status = self.buffer.get(9..12).and_then(|status| std::str::from_utf8(status).ok());
        status.and_then(|status| status.parse().ok()).expect("an answer begins with its status")
    }

    /// The last answer, for a person.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }
}

fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4)
}

/// Length of head and body, once the head is there.
fn answer_length(bytes: &[u8]) -> Option<usize> {
    let head = head_length(bytes)?;
    let text = std::str::from_utf8(&bytes[..head]).expect("a head is text");
    assert!(text.starts_with("HTTP/1.1 "), "the server answered: {text}");
    let body = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some(head + body.expect("an answer has a length").parse::<usize>().expect("a length is a number"))
}
