//! The cache that processes share: within this process, or a Redis.
//!
//! Knows how the cache is reached and whether it answers. The code that uses it decides what is kept in it, and what
//! happens to a request when it does not answer.

mod link;

use std::sync::Arc;
use std::time::Duration;

use heddle_core::secret::Secret;
pub(crate) use link::Link;
use redis::{ConnectionInfo, IntoConnectionInfo as _};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError};

/// How long the cache may take to say that it lives.
const PING_LIMIT: Duration = Duration::from_secs(1);
/// What `CACHE_URL` may be.
const ACCEPTED: &str = "redis://user:password@host:port/database, of which only the host must be given, with \
                        characters such as '/' and '@' in the password as %2F and %40";

/// Why the cache could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cache at {0} is not connected")]
    NotConnected(String),
    #[error("cache at {address} gave no answer within {millis} ms")]
    Timeout { address: String, millis: u128 },
    #[error("cache at {address} failed: {source}")]
    Failed {
        address: String,
        #[source]
        source: redis::RedisError,
    },
}

/// Cloning shares the connection.
#[derive(Debug, Clone)]
pub enum Cache {
    /// There is one process, so there is nothing to reach.
    Process,
    Redis(Arc<Link>),
}

impl Cache {
    /// Refuses a malformed address; a cache that gives no answer yet is only reported.
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        let Some(url) = &config.cache_url else { return Ok(Self::Process) };
        let link = Link::new(address(url)?)?;
        link.connect().await;
        Ok(Self::Redis(Arc::new(link)))
    }

    /// `in_process` or `redis`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Process => "in_process",
            Self::Redis(_) => "redis",
        }
    }

    /// Whether the cache answers, within a second.
    pub async fn ping(&self) -> Result<(), CacheError> {
        match self {
            Self::Process => Ok(()),
            Self::Redis(link) => {
                let ping = |mut connection| async move {
                    redis::cmd("PING").query_async::<String>(&mut connection).await
                };
                link.ask(PING_LIMIT, ping).await.map(|_| ())
            }
        }
    }

    /// Connects again whenever the connection was lost, until the process stops.
    pub(crate) async fn keep_connected(&self, stop: CancellationToken) {
        if let Self::Redis(link) = self {
            link.keep_connected(stop).await;
        }
    }
}

/// The address in `CACHE_URL`. The error does not show it, for it may hold a password.
fn address(url: &Secret) -> Result<ConnectionInfo, ConfigError> {
    let refused = || ConfigError::Value {
        name: "CACHE_URL",
        value: "(hidden)".to_owned(),
        accepted: ACCEPTED.to_owned(),
    };
    let parsed: url::Url = url.expose().parse().map_err(|_| refused())?;
    if parsed.scheme() != "redis" || parsed.fragment().is_some() {
        return Err(refused());
    }
    let info = parsed.into_connection_info().map_err(|_| refused())?;
    let settings = info.tcp_settings().clone().set_nodelay(true);
    Ok(info.set_tcp_settings(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Option<&str>) {
        match (address(&Secret::new(url)), expected) {
            (Ok(info), Some(expected)) => {
                let database = info.redis_settings().db();
                assert_eq!(format!("{}/{database}", info.addr()), expected, "{url}");
            }
            (Err(error), None) => {
                let message = error.to_string();
                assert!(message.contains("CACHE_URL") && message.contains("redis://"), "{message}");
                assert!(!message.contains("hunter2"), "{message}");
            }
            (outcome, _) => panic!("{url}: {}", outcome.is_ok()),
        }
    }

    #[test]
    fn an_address_is_accepted_or_refused_by_its_name_without_its_password() {
        check("redis://cache.example", Some("cache.example:6379/0"));
        check("redis://cache.example:7000/3", Some("cache.example:7000/3"));
        check("redis://default:hunter2@cache.example", Some("cache.example:6379/0"));
        check("redis://:hunter2%2F%40@[::1]:7000", Some("::1:7000/0"));
        for url in [
            "cache.example:6379",
            "redis:",
            "redis://",
            "redis://user:hunter2@",
            "redis://user:hunter2@host:port",
            "redis://user:hunter2@host:70000",
            "redis://user:hunter2@host/three",
            "redis://0.0.0.0",
            "rediss://user:hunter2@host",
            "http://user:hunter2@host",
            "unix:///run/redis.sock",
        ] {
            check(url, None);
        }
    }

    #[test]
    fn a_password_is_read_as_it_was_meant_and_not_shown() {
        let info = address(&Secret::new("redis://heddle:hunter2%2F%40@host")).unwrap();
        assert_eq!(info.redis_settings().password(), Some("hunter2/@"));
        assert!(!format!("{info:?}").contains("hunter2"));
    }
}
