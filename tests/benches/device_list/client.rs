//! An HTTP client that does as little as it can, on a thread of its own:
//! its work takes from the same processors as the server's.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::measure::Samples;

const CONNECTIONS: usize = 64;

/// Connections that stay open and ask for one path.
pub(super) struct Client {
    runtime: Runtime,
    connections: Vec<Connection>,
    request: String,
}

/// Requests that were answered.
pub(super) struct Round {
    latencies: Vec<Duration>,
    pub(super) elapsed: Duration,
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(super) fn connect(address: SocketAddr, path: &str, token: Option<&str>) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a thread can be used");
        let connections = runtime.block_on(join_all((0..CONNECTIONS).map(|_| Connection::open(address))));
        let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let authorization = authorization.unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{authorization}\r\n");
        Self { runtime, connections, request }
    }

    /// The body of one answer.
    pub(super) fn fetch(&mut self) -> String {
        let connection = &mut self.connections[0];
        self.runtime.block_on(connection.exchange(self.request.as_bytes()));
        let head = head_length(&connection.buffer).expect("an answer has a head");
        String::from_utf8(connection.buffer[head..].to_vec()).expect("an answer is text")
    }

    /// Sends this many requests, one at a time on each connection.
    pub(super) fn round(&mut self, requests: usize) -> Round {
        let left = Cell::new(requests);
        let (left, request) = (&left, self.request.as_bytes());
        let started = Instant::now();
        let each = self.connections.iter_mut().map(|connection| async move {
            let mut latencies = Vec::new();
            while let Some(rest) = left.get().checked_sub(1) {
                left.set(rest);
                let started = Instant::now();
                connection.exchange(request).await;
                latencies.push(started.elapsed());
            }
            latencies
        });
        let latencies = self.runtime.block_on(join_all(each)).concat();
        Round { latencies, elapsed: started.elapsed() }
    }
}

impl Round {
    pub(super) fn joined(rounds: Vec<Self>) -> Self {
        let elapsed = rounds.iter().map(|round| round.elapsed).sum();
        Self { latencies: rounds.into_iter().flat_map(|round| round.latencies).collect(), elapsed }
    }

    pub(super) fn latencies(&self) -> Samples {
        Samples::of(self.latencies.clone())
    }

    pub(super) fn per_second(&self) -> f64 {
        let requests = u32::try_from(self.latencies.len()).expect("a round is small");
        f64::from(requests) / self.elapsed.as_secs_f64()
    }
}

impl Connection {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("a connection has this option");
        Self { stream, buffer: Vec::with_capacity(128 << 10) }
    }

    /// Leaves the whole answer in the buffer.
    async fn exchange(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.expect("the server reads");
        self.buffer.clear();
        let mut length = None;
        while length.is_none_or(|length| self.buffer.len() < length) {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("the server answers");
            assert!(read > 0, "the server hung up");
            length = length.or_else(|| answer_length(&self.buffer));
        }
    }
}

fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4)
}

/// Length of head and body, once the head is there.
fn answer_length(bytes: &[u8]) -> Option<usize> {
    let head = head_length(bytes)?;
    let text = std::str::from_utf8(&bytes[..head]).expect("a head is text");
    assert!(text.starts_with("HTTP/1.1 200 "), "the server answered: {text}");
    let body = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some(head + body.expect("an answer has a length").parse::<usize>().expect("a length is a number"))
}
