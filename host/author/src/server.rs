//! The API of a development server on this machine.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body};
use url::{Host, Url};

/// The longest that an answer may take: a server compiles a component before it answers.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// A server, and the rights of a user there.
pub(crate) struct Server {
    agent: Agent,
    base: Url,
    authorization: String,
}

impl Server {
    /// # Errors
    /// The address is none of this machine. The token would cross a network unencrypted, and a command that agrees by
    /// itself belongs to no server of others.
    pub(crate) fn at(url: &str, token: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url).with_context(|| format!("'{url}' is no address"))?;
        let is_here = match base.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        ensure!(
            is_here && base.scheme() == "http",
            "'{url}' is no server of this machine: give http://127.0.0.1:8080, or the near end of an SSH tunnel"
        );
        // A proxy of the environment would see the token.
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .build();
        Ok(Self {
            agent: agent.into(),
            base: base.join("/api/v1/")?,
            authorization: format!("Bearer {token}"),
        })
    }

    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = self.agent.get(self.base.join(path)?.as_str());
        read(path, request.header("authorization", &self.authorization).call())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.agent.post(self.base.join(path)?.as_str());
        read(path, request.header("authorization", &self.authorization).send_json(body))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.agent.put(self.base.join(path)?.as_str());
        read(path, request.header("authorization", &self.authorization).send_json(body))
    }

    /// Sends a package.
    pub(crate) fn install(&self, archive: &[u8]) -> anyhow::Result<Value> {
        let path = "plugins/install";
        let request = self.agent.post(self.base.join(path)?.as_str()).content_type("application/zip");
        read(path, request.header("authorization", &self.authorization).send(archive))
    }
}

/// The body of an answer that is a success, or the server's own words.
fn read(path: &str, answer: Result<Response<Body>, ureq::Error>) -> anyhow::Result<Value> {
    let answer = answer.with_context(|| format!("the server does not answer '{path}'"))?;
    let status = answer.status().as_u16();
    let mut text = Vec::new();
    answer.into_body().into_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut text)?;
    let body: Value = serde_json::from_slice(&text).unwrap_or_default();
    if (200..300).contains(&status) {
        return Ok(body);
    }
    let message = body["error"]["message"].as_str().unwrap_or("it does not say why");
    let details = &body["error"]["details"];
    let details = if details.is_null() { String::new() } else { format!(" {details}") };
    bail!("the server refuses '{path}' ({status}): {message}{details}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_of_this_machine_is_sent_a_token() {
        for url in ["http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:8080"] {
            assert_eq!(Server::at(url, "t").map(|server| server.base.path().to_owned()).unwrap(), "/api/v1/");
        }
        for url in
            ["http://192.0.2.1:8080", "http://heddle.test", "https://127.0.0.1", "file:///tmp", "127.0.0.1"]
        {
            assert!(Server::at(url, "t").is_err(), "{url}");
        }
    }
}
