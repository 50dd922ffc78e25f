//! One connection to a Redis, shared by all requests and opened again when it was lost.
//!
//! The caller gets an error at once; no request waits for a new connection. So a cache that is down or frozen costs one
//! request its time limit and delays no other request.

use std::future::Future;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Cache, CacheError};

/// How long a new connection may take, with its greeting.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// How often an idle connection is checked.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// How long after a failed attempt the next one begins.
const RETRY_PERIOD: Duration = Duration::from_millis(500);
/// The least time between two attempts, whatever fails.
const ATTEMPT_GAP: Duration = Duration::from_millis(100);
/// The least time between two log lines about a lost cache, while it comes and goes.
const COMPLAINT_PERIOD: Duration = Duration::from_mins(1);
/// Commands that can wait for their turn on the connection.
const QUEUE: usize = 1024;

/// The address of the Redis, and the connection to it while there is one.
pub struct Link {
    client: Client,
    /// Host and port, without the password.
    address: String,
    slot: RwLock<Slot>,
    /// A command found the connection broken.
    lost: Notify,
}

#[derive(Default)]
struct Slot {
    /// Counts connections, so that a late failure of an old connection does not end the new one.
    generation: u64,
    connection: Option<MultiplexedConnection>,
    /// When the log last said that the cache is lost.
    complained: Option<Instant>,
    /// The last log line said that the cache is lost.
    is_said_lost: bool,
}

impl Slot {
    fn complain(&mut self, address: &str, error: &str) {
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAINT_PERIOD) {
            tracing::warn!(
                cache.address = %address,
                error = %error,
                "the cache at {address} cannot be used; connecting again until it can"
            );
            self.complained = Some(Instant::now());
            self.is_said_lost = true;
        }
    }
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

    /// Runs a command. Without an answer in time the connection is regarded as lost.
    pub(crate) async fn ask<T, F>(
        &self,
        limit: Duration,
        command: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, CacheError>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let (generation, connection) = self.connection()?;
        let (is_lost, error) = match tokio::time::timeout(limit, command(connection)).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(source)) => {
                (ends_connection(&source), CacheError::Failed { address: self.address.clone(), source })
            }
            Err(_) => {
                (true, CacheError::Timeout { address: self.address.clone(), millis: limit.as_millis() })
            }
        };
        if is_lost {
            self.lose(generation, &error);
        }
        Err(error)
    }

    /// Opens a separate connection that receives a channel's messages.
    pub(crate) async fn subscribe(&self, channel: &str) -> Result<(PubSubSink, PubSubStream), CacheError> {
        let subscribing = async {
            let (mut sink, messages) = self.client.get_async_pubsub().await?.split();
            sink.subscribe(channel).await?;
            Ok((sink, messages))
        };
        match tokio::time::timeout(CONNECT_LIMIT, subscribing).await {
            Ok(outcome) => {
                outcome.map_err(|source| CacheError::Failed { address: self.address.clone(), source })
            }
            Err(_) => {
                Err(CacheError::Timeout { address: self.address.clone(), millis: CONNECT_LIMIT.as_millis() })
            }
        }
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
        if slot.generation == generation && slot.connection.take().is_some() {
            slot.complain(&self.address, &error.to_string());
            self.lost.notify_one();
        }
    }

    /// Makes one attempt to connect; logs a change of the state.
    pub(super) async fn connect(&self) {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_LIMIT))
            .set_response_timeout(Some(CONNECT_LIMIT))
            .set_pipeline_buffer_size(QUEUE);
        let attempt = self.client.get_multiplexed_async_connection_with_config(&config);
        // The library's limit does not include name resolution.
        let outcome = tokio::time::timeout(CONNECT_LIMIT, attempt).await;
        let address = &self.address;
        let mut slot = self.slot.write().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(Ok(connection)) => {
                slot.generation += 1;
                slot.connection = Some(connection);
                if slot.generation == 1 || std::mem::take(&mut slot.is_said_lost) {
                    tracing::info!(cache.address = %address, "connected to the cache at {address}");
                }
            }
            Ok(Err(error)) => slot.complain(address, &error.to_string()),
            Err(_) => slot.complain(address, &format!("no answer within {} ms", CONNECT_LIMIT.as_millis())),
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
                // Detects an idle connection that has died. The failure is logged where it is detected.
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

/// Whether a new connection may help: most errors of a Redis would come again on every connection.
fn ends_connection(error: &RedisError) -> bool {
    let is_now_a_replica = error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly);
    error.is_io_error() || error.is_unrecoverable_error() || is_now_a_replica
}
