//! Secrets that the service made for itself, sealed as all others.

use heddle_core::Timestamp;

use crate::db::Tx;
use crate::error::Result;
use crate::sealed::Sealed;
use crate::select::affected;

/// Returns the secret of this name, sealed for its id. `None` means that no process has made one yet.
pub async fn find(tx: &mut Tx, name: &str) -> Result<Option<Sealed>> {
    Ok(on!(tx, conn => sqlx::query_as("SELECT id, secret AS bytes FROM service_secret WHERE name = $1")
        .bind(name)
        .fetch_optional(conn)
        .await)?)
}

/// Keeps a secret, unless another process was first.
pub async fn insert(tx: &mut Tx, name: &str, new: &Sealed, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO service_secret (id, name, secret, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO NOTHING"
        )
        .bind(new.id)
        .bind(name)
        .bind(&new.bytes)
        .bind(now)
    );
    Ok(())
}

/// Removes all of them: a backup that is being restored brings its own.
pub async fn clear(tx: &mut Tx) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM service_secret"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both};

    on_both! {
        async fn the_first_secret_of_a_name_stays(db) {
            let world = World::new(&db, "a").await;
            let mut tx = db.write().await.unwrap();
            assert!(find(&mut tx, "x").await.unwrap().is_none());
            let one = Sealed { id: world.clock.new_id(), bytes: vec![1; 12] };
            let two = Sealed { id: world.clock.new_id(), bytes: vec![2; 12] };
            insert(&mut tx, "x", &one, world.clock.now()).await.unwrap();
            insert(&mut tx, "x", &two, world.clock.now()).await.unwrap();
            assert!(find(&mut tx, "x").await.unwrap() == Some(one));
            clear(&mut tx).await.unwrap();
            assert!(find(&mut tx, "x").await.unwrap().is_none());
        }
    }
}
