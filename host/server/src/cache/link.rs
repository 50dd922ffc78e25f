//! One connection to a Redis, shared by all requests and made again when it was lost.
//!
//! A failure is told at once to who asked; no request waits for a new connection. So a cache that is down or frozen
//! costs one request its time limit and the others nothing.

use std::future::Future;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, RedisResult};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Cache, CacheError};

/// How long a new connection may take, with its greeting.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// How often a connection that nobody complains of is looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// How long after a failed attempt the next one begins.
const RETRY_PERIOD: Duration = Duration::from_millis(500);
/// The least time between two attempts, whatever fails.
const ATTEMPT_GAP: Duration = Duration::from_millis(100);
/// Commands that can wait for their turn on the connection.
const QUEUE: usize = 1024;

/// Where the Redis is, and the connection to it while there is one.
pub struct Link {
    client: Client,
    /// Host and port, without the password.
    address: String,
    slot: RwLock<Slot>,
    /// Somebody found the connection broken.
    lost: Notify,
}

#[derive(Default)]
struct Slot {
    /// Counts connections, so that a late failure of an old one does not end the new one.
    generation: u64,
    connection: Option<MultiplexedConnection>,
    /// The last attempt failed, and the log says so.
    is_told: bool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn new(info: ConnectionInfo) -> anyhow::Result<Self> {
        let address = info.addr().to_string();
        Ok(Self { client: Client::open(info)?, address, slot: RwLock::default(), lost: Notify::new() })
    }

    /// Runs a command. Without an answer in time, or with an error, the connection is taken for lost.
    pub(crate) async fn ask<T, F>(
        &self,
        limit: Duration,
        command: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, CacheError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (generation, connection) = self.connection()?;
        let error = match tokio::time::timeout(limit, command(connection)).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(source)) => CacheError::Failed { address: self.address.clone(), source },
            Err(_) => CacheError::Timeout { address: self.address.clone(), millis: limit.as_millis() },
        };
        self.lose(generation, &error);
        Err(error)
    }

    fn connection(&self) -> Result<(u64, MultiplexedConnection), CacheError> {
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        let connection = slot.connection.clone();
        let connection = connection.ok_or_else(|| CacheError::NotConnected(self.address.clone()))?;
        Ok((slot.generation, connection))
    }

    fn is_connected(&self) -> bool {
        self.slot.read().unwrap_or_else(PoisonError::into_inner).connection.is_some()
    }

    fn lose(&self, generation: u64, error: &CacheError) {
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        if slot.generation != generation || slot.connection.take().is_none() {
            return;
        }
        drop(slot);
        tracing::warn!(cache.address = %self.address, error = %error, "lost the cache; connecting again");
        self.lost.notify_one();
    }

    /// One attempt; says in the log what changed.
    pub(super) async fn connect(&self) {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_LIMIT))
            .set_response_timeout(Some(CONNECT_LIMIT))
            .set_pipeline_buffer_size(QUEUE);
        let attempt = self.client.get_multiplexed_async_connection_with_config(&config);
        // The library's limit leaves the look-up of the name out.
        let outcome = tokio::time::timeout(CONNECT_LIMIT, attempt).await;
        let address = &self.address;
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        let error = match outcome {
            Ok(Ok(connection)) => {
                slot.generation += 1;
                slot.connection = Some(connection);
                slot.is_told = false;
                tracing::info!(cache.address = %address, "connected to the cache at {address}");
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} ms", CONNECT_LIMIT.as_millis()),
        };
        if !std::mem::replace(&mut slot.is_told, true) {
            tracing::warn!(cache.address = %address, error = %error, "cannot reach the cache at {address}; trying on");
        }
    }

    pub(super) async fn keep_connected(self: &std::sync::Arc<Self>, stop: CancellationToken) {
        loop {
            let pause = if self.is_connected() { LOOK_PERIOD } else { RETRY_PERIOD };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.lost.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            if self.is_connected() {
                // Notices a connection that died while nobody used it. A failure is told where it is found.
                Cache::Redis(self.clone()).ping().await.ok();
            } else {
                self.connect().await;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ATTEMPT_GAP) => {}
            }
        }
    }
}
