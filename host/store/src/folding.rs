//! Users of before names were folded: what of them does not fit is refused before anything is changed, the rest is
//! filled in after the migration.
//!
//! A crash between the two leaves rows without folded names, which the next start fills in.

use std::collections::HashMap;

use heddle_core::UserId;
use heddle_core::name::fold;

use crate::db::{Db, Tx};
use crate::error::{Error, Result};
use crate::users::{self, Names};

/// The migration that adds the columns.
pub(crate) const VERSION: i64 = 21;
/// Rows of one statement.
const BATCH: i64 = 500;
/// Pairs of users that a refusal names.
const NAMED_MAX: usize = 20;

/// Refuses users whose names are the same when folded: of two, only one could log in, and only the operator knows
/// which.
pub(crate) async fn refuse_same_names(tx: &mut Tx) -> Result<()> {
    let (mut usernames, mut emails) = (HashMap::new(), HashMap::new());
    let (mut same, mut after) = (Vec::new(), None);
    loop {
        let batch = users::names(tx, after, BATCH).await?;
        for Names { id, username, email } in &batch {
            clash(&mut usernames, &mut same, "user name", *id, username);
            clash(&mut emails, &mut same, "email", *id, email);
        }
        match batch.last() {
            Some(last) if same.len() < NAMED_MAX => after = Some(last.id),
            _ => break,
        }
    }
    if same.is_empty() { Ok(()) } else { Err(Error::SameNames(same.join("; "))) }
}

fn clash(
    known: &mut HashMap<String, (UserId, String)>,
    same: &mut Vec<String>,
    kind: &str,
    id: UserId,
    name: &str,
) {
    let first = known.entry(fold(name)).or_insert_with(|| (id, name.to_owned()));
    if first.0 != id {
        same.push(format!("{kind} '{name}' of user {id} and '{}' of user {}", first.1, first.0));
    }
}

/// Makes the folded names that are still missing.
pub(crate) async fn fill_in(db: &Db) -> Result<()> {
    let mut tx = db.read().await?;
    if users::unfolded(&mut tx, 1).await?.is_empty() {
        return Ok(());
    }
    drop(tx);
    loop {
        let mut tx = db.write().await?;
        let batch = users::unfolded(&mut tx, BATCH).await?;
        for names in &batch {
            users::keep_folded(&mut tx, names).await.map_err(|error| named(error, names))?;
        }
        tx.commit().await?;
        if i64::try_from(batch.len()).is_ok_and(|rows| rows < BATCH) {
            return Ok(());
        }
    }
}

/// An earlier version of the program added the user while the tables were being changed.
fn named(error: Error, names: &Names) -> Error {
    match error {
        Error::Unique(_) => Error::SameNames(format!(
            "user name '{}' or email '{}' of user {} and that of another user",
            names.username, names.email, names.id
        )),
        other => other,
    }
}

#[cfg(test)]
mod tests;
