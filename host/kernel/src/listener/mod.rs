//! Accepts connections and serves HTTP on them, within bounds.
//!
//! Connections are bounded in number, in total and per address, and in the time that they may take without a request.
//! The service behind decides which requests are answered, and how.

mod activity;
mod connection;
mod connection_slots;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use activity::{Limits, Wire};
use connection_slots::{ConnectionSlots, Full};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metrics::{ConnectionRefusal, Metrics};
use crate::process::limits;
use crate::surface::Surface;
use crate::task::Tasks;

/// Most bytes of a request head of HTTP/1, and of what is read ahead.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most header fields of a request of HTTP/1.
const HEADERS_MAX: usize = 100;
/// Most requests in flight on one HTTP/2 connection.
const STREAMS_MAX: u32 = 100;
/// Time between two pings of an HTTP/2 connection, and time that the peer has to answer one.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Bytes of an answer that wait in memory for a slow reader, for each request of HTTP/2.
const SEND_BYTES_MAX: usize = 128 * 1024;

/// Pauses between attempts to accept after an error of the machine, such as too many open files.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Least time between two equal log lines.
const SAY_INTERVAL: Duration = Duration::from_secs(10);

/// The answer to a connection that finds no slot. It is sent only as far as the socket takes it at once.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// State that all connections share.
struct Shared {
    service: Surface,
    builder: Builder<TokioExecutor>,
    limits: Limits,
    slots: Arc<ConnectionSlots>,
    metrics: Arc<Metrics>,
}

/// A socket that listens, and its connections.
pub(crate) struct Listener {
    socket: TcpListener,
    shared: Arc<Shared>,
    /// The tasks of the connections.
    tasks: Tasks,
    /// Fires when connections must end although requests are in flight.
    abandon: CancellationToken,
}

impl Listener {
    /// Listens on the configured address. The connections run in `tasks`.
    pub(crate) async fn bind(
        config: &Config,
        service: Surface,
        metrics: &Arc<Metrics>,
        tasks: &Tasks,
        abandon: &CancellationToken,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(config.bind_addr).await?;
        let capacity = limits::connections(config, limits::raise_files());
        let per_address = config.http_connections_per_address as usize;
        let slots =
            ConnectionSlots::new(capacity, per_address, config.trusted_proxies.clone(), metrics.clone());
        tracing::debug!(
            connections.max = capacity,
            connections.per_address = per_address,
            "bounds of connections"
        );
        let shared = Shared {
            service,
            builder: builder(),
            limits: Limits::of(config),
            slots: Arc::new(slots),
            metrics: metrics.clone(),
        };
        Ok(Self { socket, shared: Arc::new(shared), tasks: tasks.clone(), abandon: abandon.clone() })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts until the tasks are asked to stop. After an error of the machine, accepting is tried again.
    pub(crate) async fn accept(self) {
        let stop = self.tasks.stopping();
        let (mut pause, mut complaint) = (PAUSE_FIRST, Complaint::default());
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    pause = PAUSE_FIRST;
                    self.admit(stream, peer, &mut complaint);
                }
                // The peer gave up before it was accepted.
                Err(error) if is_of_peer(&error) => {}
                Err(error) => {
                    self.shared.metrics.connection_refused(ConnectionRefusal::Machine);
                    complaint.say(|| {
                        tracing::error!(error = %error, "connections cannot be accepted; tried again");
                    });
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr, complaint: &mut Complaint) {
        let slot = match self.shared.slots.take(peer.ip()) {
            Ok(slot) => slot,
            Err(full) => {
                // The rest is not sent when it does not fit into the socket's buffer.
                stream.try_write(FULL).ok();
                let reason = match full {
                    Full::Total => ConnectionRefusal::Total,
                    Full::Address => ConnectionRefusal::Address,
                };
                self.shared.metrics.connection_refused(reason);
                complaint.say(|| refused(full, peer));
                return;
            }
        };
        let wire = Wire::new(stream, slot);
        let serving =
            connection::serve(self.shared.clone(), wire, peer, self.tasks.stopping(), self.abandon.clone());
        self.tasks.spawn_bare(serving);
    }
}

fn refused(full: Full, peer: SocketAddr) {
    match full {
        Full::Total => {
            tracing::warn!("connections are refused: as many are open as HTTP_CONNECTIONS_MAX allows");
        }
        Full::Address => tracing::warn!(
            client.ip = %peer.ip(),
            "connections of {} are refused: it has as many as HTTP_CONNECTIONS_PER_ADDRESS allows; if it is a proxy of \
             the service, name it in TRUSTED_PROXIES",
            peer.ip()
        ),
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // The time limit of a head is enforced in this module, so that it also bounds the first bytes of a connection.
    builder.http1().max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        // Event streams over HTTP/2 begin with it.
        .enable_connect_protocol();
    builder
}

fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Limits log lines of an event that may happen thousands of times.
#[derive(Default)]
struct Complaint {
    last: Option<Instant>,
}

impl Complaint {
    fn say(&mut self, line: impl FnOnce()) {
        let now = Instant::now();
        if self.last.is_none_or(|last| now.duration_since(last) >= SAY_INTERVAL) {
            self.last = Some(now);
            line();
        }
    }
}
