//! A server of its own for each test, on each database.

mod api;
pub(crate) mod browser;
mod conformance;
mod database;
pub(crate) mod oidc;
pub(crate) mod plugins;
mod process;
mod proxy;
mod random;
mod redis;
mod server;
pub(crate) mod slapd;
pub(crate) mod smtp;
mod socket;
pub(crate) mod trace;

pub(crate) use api::{Answer, Api};
pub(crate) use conformance::{Contract, Operation};
pub(crate) use database::Database;
use std::sync::LazyLock;

use heddle_core::Declared;
use heddle_core::event::EventType;
pub(crate) use process::{Process, free_port};
pub(crate) use proxy::{Proxy, Way};
pub(crate) use random::{Place, Random};
pub(crate) use redis::Redis;
pub(crate) use server::{
    Adapters, ENCRYPTION_KEY, NEXT_ENCRYPTION_KEY, Options, PASSWORD, Server, adapters, compiler,
    environment, heddle_binary, packages, register, target_folder,
};
pub(crate) use socket::Socket;

/// How long what must come by itself is waited for: long enough for a machine with much else to do.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_mins(2);

/// Waits until this holds; fails the test after [`PATIENCE`].
pub(crate) async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let began = std::time::Instant::now();
    while !look().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Runs an async test on `SQLite`, and on `PostgreSQL` when it is there.
macro_rules! on_both {
    ($(#[$meta:meta])* async fn $name:ident($database:ident: Database) $body:block) => {
        mod $name {
            #[allow(unused_imports, clippy::allow_attributes, reason = "a test body may need none of them")]
            use super::*;

            async fn body($database: crate::support::Database) $body

            $(#[$meta])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body(crate::support::Database::sqlite()).await;
            }

            $(#[$meta])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(database) = crate::support::Database::postgres().await {
                    body(database).await;
                }
            }
        }
    };
}
pub(crate) use on_both;

/// The declared type of events with this name.
pub(crate) fn event_type(name: &str) -> EventType {
    declared().events.find(name).expect("a feature declares it")
}

/// What the features of the program declare by name.
pub(crate) fn declared() -> &'static Declared {
    static DECLARED: LazyLock<Declared> = LazyLock::new(|| heddle_server::FEATURES.declared());
    &DECLARED
}

/// A variable that `cargo xtask test` sets.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the test runner's own variables")]
    std::env::var(name).ok()
}

/// A program that `cargo xtask test` installs.
pub(crate) fn tool(name: &str, package: &str) -> std::path::PathBuf {
    let path = variable(name);
    path.unwrap_or_else(|| {
        panic!("{name} is not set: 'cargo xtask test' installs {package} and sets it; by hand, name the program in it")
    })
    .into()
}

/// A field, written with dots or brackets, as errors name it: a JSON pointer.
pub(crate) fn at(field: &str) -> String {
    if field == "body" {
        String::new()
    } else {
        format!("/{}", field.replace(['.', '['], "/").replace(']', ""))
    }
}
