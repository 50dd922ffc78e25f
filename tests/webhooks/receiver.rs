//! A receiver that keeps what it got, and behaves as the path says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) path: String,
    /// By names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The stable id of the delivery.
    pub(crate) fn delivery(&self) -> &str {
        &self.headers["x-heddle-delivery"]
    }

    /// The name in the event.
    pub(crate) fn name(&self) -> String {
        self.json()["payload"]["name"].as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Debug, Default)]
struct Kept {
    got: Vec<Got>,
    /// What is stuck goes through.
    is_mended: bool,
    /// Requests that a slow answer keeps waiting.
    under_way: usize,
}

pub(crate) struct Receiver {
    kept: Arc<Mutex<Kept>>,
    base: String,
    serving: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Kept::default()));
        let shared = Arc::clone(&kept);
        let work = async move {
            while let Ok((socket, _)) = listener.accept().await {
                let kept = Arc::clone(&shared);
                #[expect(clippy::disallowed_methods, reason = "a receiver ends with its test")]
                tokio::spawn(serve(socket, kept));
            }
        };
        #[expect(clippy::disallowed_methods, reason = "a receiver ends with its test")]
        let serving = tokio::spawn(work);
        Self { kept, base, serving }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn got(&self, path: &str) -> Vec<Got> {
        self.kept.lock().unwrap().got.iter().filter(|got| got.path == path).cloned().collect()
    }

    /// Requests that came and are not answered yet.
    pub(crate) fn under_way(&self) -> usize {
        self.kept.lock().unwrap().under_way
    }

    pub(crate) fn mend(&self) {
        self.kept.lock().unwrap().is_mended = true;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut socket: TcpStream, kept: Arc<Mutex<Kept>>) {
    let Some(got) = read(&mut socket).await else { return };
    let path = got.path.clone();
    let echoed = format!("{} {}", got.path, serde_json::to_string(&got.headers).unwrap());
    let is_stuck = String::from_utf8_lossy(&got.body).contains("stuck");
    let is_mended = {
        let mut kept = kept.lock().unwrap();
        kept.got.push(got);
        kept.is_mended
    };
    let answer = match path.as_str() {
        "/fail" => with("500 Internal Server Error", "", b"not today"),
        "/gone" => with("410 Gone", "", b""),
        "/large" => with("200 OK", "", &vec![b'x'; 1_000_000]),
        "/redirect" => with("302 Found", "location: /target\r\n", b""),
        // With a query in its path.
        _ if path.starts_with("/echo") => with("200 OK", "", echoed.as_bytes()),
        "/json" => with(
            "200 OK",
            "content-type: application/vnd.ticket+json; charset=utf-8\r\n",
            br#"{"ticket":{"id":4711}}"#,
        ),
        "/broken-json" => with("200 OK", "content-type: application/json\r\n", br#"{"ticket":"#),
        "/close" => return,
        "/hang" => {
            tokio::time::sleep(Duration::from_mins(2)).await;
            return;
        }
        "/slow" => {
            kept.lock().unwrap().under_way += 1;
            tokio::time::sleep(Duration::from_millis(150)).await;
            kept.lock().unwrap().under_way -= 1;
            with("200 OK", "", b"at last")
        }
        "/stuck" if is_stuck && !is_mended => with("503 Service Unavailable", "", b"stuck"),
        _ => with("200 OK", "", b"fine\0"),
    };
    let _ = socket.write_all(&answer).await;
    let _ = socket.shutdown().await;
}

async fn read(socket: &mut TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(at) = head {
            let text = String::from_utf8(bytes[..at].to_vec()).ok()?;
            let mut lines = text.split("\r\n");
            let path = lines.next()?.split(' ').nth(1)?.to_owned();
            let headers: HashMap<String, String> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let length: usize = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if bytes.len() >= at + 4 + length {
                return Some(Got { path, headers, body: bytes[at + 4..at + 4 + length].to_vec() });
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn with(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
