//! The skeleton with a toy controller: a counter behind a session, and tasks that take time.

mod clock;
mod control;
mod faults;
mod outbox;
mod ports;
mod rules;
mod sockets;
mod streams;

use std::collections::BTreeSet;
use std::sync::Once;
use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::*;

/// `POST /count` adds, `POST /task` adds ten seconds later, `GET /count` reads; `POST /login` gives a token.
#[derive(Default)]
struct Toy {
    count: u64,
    tasks: Schedule<u64>,
    sessions: BTreeSet<String>,
    /// The socket that is open, and the count that it told last; it ends when told to.
    socket: Option<u64>,
    is_over: bool,
    /// What it has to send, and the answers that came.
    outgoing: Vec<Outgoing>,
    answers: Vec<Option<u16>>,
}

impl Controller for Toy {
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer {
        match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["login"]) => {
                let token = context.token();
                self.sessions.insert(token.clone());
                Answer::json(200, &json!({ "token": token }))
            }
            ("POST", ["count"]) => {
                self.count += 1;
                Answer::json(200, &json!({ "count": self.count }))
            }
            ("POST", ["task"]) if context.fault("no_task", request).is_some() => {
                Answer::status(500).with_reason("no worker\nis free")
            }
            ("POST", ["task"]) => {
                self.tasks.at(context.now() + Duration::from_secs(10), 1);
                Answer::status(202)
            }
            ("GET", ["socket"]) => {
                self.is_over = false;
                Answer::web_socket(7)
            }
            ("GET", ["stream"]) => {
                self.is_over = false;
                Answer::stream(7, "text/event-stream")
            }
            ("GET", ["count"]) => Answer::json(200, &json!({ "count": self.count })),
            ("GET", ["private"])
                if request.cookie("token").is_some_and(|own| self.sessions.contains(own)) =>
            {
                Answer::text(200, "yes")
            }
            ("GET", ["private"]) => Answer::status(401).with_header("x-why", "no session"),
            _ => Answer::status(404),
        }
    }

    fn socket_texts(&mut self, socket: u64, _context: &mut Context) -> Option<Vec<String>> {
        assert_eq!(socket, 7);
        if self.is_over {
            return None;
        }
        let is_told = self.socket.replace(self.count) == Some(self.count);
        Some(if is_told { Vec::new() } else { vec![self.count.to_string()] })
    }

    fn socket_received(&mut self, _socket: u64, text: &str, _context: &mut Context) {
        match text {
            "end" => self.is_over = true,
            _ => self.count += 1,
        }
    }

    fn socket_closed(&mut self, _socket: u64) {
        self.socket = None;
    }

    fn outgoing(&mut self, _context: &mut Context) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    fn sent(&mut self, _request: &Outgoing, status: Option<u16>, _context: &mut Context) {
        self.answers.push(status);
    }

    fn state(&self, _context: &Context) -> Value {
        json!({ "count": self.count })
    }

    fn advance(&mut self, context: &mut Context) {
        while let Some((_, added)) = self.tasks.pop_due(context.now()) {
            self.count += added;
        }
    }

    fn end_sessions(&mut self, _context: &mut Context) {
        self.sessions.clear();
    }

    fn restart(&mut self, context: &mut Context) {
        self.end_sessions(context);
        self.tasks.clear();
    }

    fn edit(&mut self, edit: &Value, _context: &mut Context) -> Result<Value, String> {
        self.count = edit["count"].as_u64().ok_or("an edit is {\"count\": 1}")?;
        Ok(json!({ "count": self.count }))
    }

    fn vendor_faults(&self) -> &'static [&'static str] {
        &["no_task"]
    }
}

fn http() -> Client {
    client(|builder| builder.tls_danger_accept_invalid_certs(true))
}

fn client(set: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder) -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    set(Client::builder().timeout(Duration::from_secs(5))).build().unwrap()
}

/// A toy that runs, and a client of it.
struct Peer {
    lab: Lab<Toy>,
    http: Client,
}

impl Peer {
    async fn new() -> Self {
        Self { lab: Lab::builder(Toy::default()).start().await, http: http() }
    }

    /// `None` when the connection closed without an answer.
    async fn send(&self, method: &str, path: &str) -> Option<Response> {
        let url = format!("{}{path}", self.lab.url());
        self.http.request(method.parse().unwrap(), url).send().await.ok()
    }

    async fn status(&self, method: &str, path: &str) -> Option<u16> {
        Some(self.send(method, path).await?.status().as_u16())
    }

    fn count(&self) -> u64 {
        self.lab.lock().count
    }

    /// An order at the control port.
    async fn order(&self, method: &str, path: &str, body: Value) -> Response {
        let url = format!("{}{path}", self.lab.control_url());
        self.http.request(method.parse().unwrap(), url).json(&body).send().await.unwrap()
    }

    async fn ask(&self, path: &str) -> Value {
        self.order("GET", path, json!(null)).await.json().await.unwrap()
    }
}
