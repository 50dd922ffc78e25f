//! A connection of a pool, in a transaction or for one statement.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use sqlx::pool::PoolConnection;
use sqlx::{Database, Transaction};

/// Rings when a transaction that appended an event was committed.
#[derive(Clone, Default)]
pub(super) struct Bell(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl Bell {
    pub(super) fn set(&self, wake: Box<dyn Fn() + Send + Sync>) {
        // The first one stays.
        let _ = self.0.set(wake);
    }

    fn ring(&self) {
        if let Some(wake) = self.0.get() {
            wake();
        }
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").field("is_set", &self.0.get().is_some()).finish()
    }
}

/// What statements run on.
#[derive(Debug)]
pub struct Held<DB: Database> {
    on: On<DB>,
    bell: Bell,
    has_events: bool,
}

#[derive(Debug)]
enum On<DB: Database> {
    Transaction(Transaction<'static, DB>),
    Single { connection: PoolConnection<DB>, is_used: bool },
}

impl<DB: Database> From<Transaction<'static, DB>> for Held<DB> {
    fn from(transaction: Transaction<'static, DB>) -> Self {
        Self::ringing(transaction, &Bell::default())
    }
}

impl<DB: Database> From<PoolConnection<DB>> for Held<DB> {
    fn from(connection: PoolConnection<DB>) -> Self {
        Self { on: On::Single { connection, is_used: false }, bell: Bell::default(), has_events: false }
    }
}

impl<DB: Database> Deref for Held<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        match &self.on {
            On::Transaction(transaction) => transaction,
            On::Single { connection, .. } => connection,
        }
    }
}

impl<DB: Database> DerefMut for Held<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        match &mut self.on {
            On::Transaction(transaction) => transaction,
            On::Single { connection, is_used } => {
                debug_assert!(!*is_used, "two statements need a transaction, so that both see one state");
                *is_used = true;
                connection
            }
        }
    }
}

impl<DB: Database> Held<DB> {
    /// A transaction whose commit rings when it has events.
    pub(super) fn ringing(transaction: Transaction<'static, DB>, bell: &Bell) -> Self {
        Self { on: On::Transaction(transaction), bell: bell.clone(), has_events: false }
    }

    pub(super) fn note_events(&mut self) {
        self.has_events = true;
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self.on {
            On::Transaction(transaction) => transaction.commit().await?,
            // A statement without a transaction is committed by itself.
            On::Single { .. } => {}
        }
        if self.has_events {
            self.bell.ring();
        }
        Ok(())
    }

    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        match self.on {
            On::Transaction(transaction) => transaction.rollback().await,
            On::Single { .. } => Ok(()),
        }
    }
}
