//! A way to a server that can be cut and mended, or that swallows everything.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Connections break, and new ones are closed at once.
    Cut,
    /// Connections stay, and nothing comes through.
    Silent,
}

pub(crate) struct Proxy {
    addr: SocketAddr,
    way: watch::Sender<Way>,
}

impl Proxy {
    /// A way to this address, which ends with the test.
    async fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let addr = listener.local_addr().expect("it is bound");
        let (way, seen) = watch::channel(Way::Open);
        #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target.clone(), seen.clone()));
            }
        });
        Self { addr, way }
    }

    /// A way to a PostgreSQL database, and its address over it.
    pub(crate) async fn to_database(url: &str) -> (Self, String) {
        Self::before(url, 5432).await
    }

    /// A way to a Redis, and its address over it.
    pub(crate) async fn to_redis(url: &str) -> (Self, String) {
        Self::before(url, 6379).await
    }

    async fn before(url: &str, usual_port: u16) -> (Self, String) {
        let mut url: url::Url = url.parse().expect("a URL");
        let port = url.port().unwrap_or(usual_port);
        let target = format!("{}:{port}", url.host_str().expect("a host"));
        let proxy = Self::to(target).await;
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(proxy.addr.port())).expect("a port");
        (proxy, url.to_string())
    }

    pub(crate) fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn carry(mut client: TcpStream, target: String, mut way: watch::Receiver<Way>) {
    if *way.borrow() == Way::Cut {
        return;
    }
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    loop {
        let now = *way.borrow_and_update();
        tokio::select! {
            changed = way.changed() => if changed.is_err() || *way.borrow() == Way::Cut { return },
            _ = tokio::io::copy_bidirectional(&mut client, &mut server), if now == Way::Open => return,
        }
    }
}
