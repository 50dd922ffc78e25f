//! A connection of a pool, in a transaction or for one statement.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{Database, Transaction};

/// What statements run on.
#[derive(Debug)]
pub enum Held<DB: Database> {
    Transaction(Transaction<'static, DB>),
    Single { connection: PoolConnection<DB>, is_used: bool },
}

impl<DB: Database> From<Transaction<'static, DB>> for Held<DB> {
    fn from(transaction: Transaction<'static, DB>) -> Self {
        Held::Transaction(transaction)
    }
}

impl<DB: Database> From<PoolConnection<DB>> for Held<DB> {
    fn from(connection: PoolConnection<DB>) -> Self {
        Held::Single { connection, is_used: false }
    }
}

impl<DB: Database> Deref for Held<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        match self {
            Held::Transaction(transaction) => transaction,
            Held::Single { connection, .. } => connection,
        }
    }
}

impl<DB: Database> DerefMut for Held<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        match self {
            Held::Transaction(transaction) => transaction,
            Held::Single { connection, is_used } => {
                debug_assert!(!*is_used, "two statements need a transaction, so that both see one state");
                *is_used = true;
                connection
            }
        }
    }
}

impl<DB: Database> Held<DB> {
    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self {
            Held::Transaction(transaction) => transaction.commit().await,
            // A statement without a transaction is committed by itself.
            Held::Single { .. } => Ok(()),
        }
    }

    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        match self {
            Held::Transaction(transaction) => transaction.rollback().await,
            Held::Single { .. } => Ok(()),
        }
    }
}
