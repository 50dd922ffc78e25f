//! A small HTTP server that keeps what it is sent.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// Method and path with its query, such as `GET /v1/name`.
    pub(crate) line: String,
    /// The header lines, in lower case but for their values.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Sent {
    /// The body, which is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A server of this process, which ends with it.
pub(crate) struct Fake {
    pub(crate) url: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Fake {
    /// Answers each request with this JSON.
    pub(crate) fn start(answer: impl Fn(&Sent) -> Value + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let request = read(&mut connection);
                let body = answer(&request).to_string();
                kept.lock().unwrap().push(request);
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                connection.write_all((head + &body).as_bytes()).unwrap();
            }
        });
        Self { url, sent }
    }

    /// What it was sent since it was asked last.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

fn read(connection: &mut TcpStream) -> Sent {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let (first, rest) = head.split_once("\r\n").unwrap();
    let lower = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}\n", name.to_ascii_lowercase()),
        None => String::new(),
    };
    let headers: String = rest.split("\r\n").map(lower).collect();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |text| text.parse().unwrap())];
    connection.read_exact(&mut body).unwrap();
    Sent { line: first.trim_end_matches(" HTTP/1.1").to_owned(), headers, body }
}
