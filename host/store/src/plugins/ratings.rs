//! What organizations think of plugins of a catalogue: one rating each.

use heddle_core::{OrgId, Timestamp};
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected, push_list};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    /// A rating of a plugin by an organization.
    pub PluginRatingId,
}

/// A rating of a plugin by an organization.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct RatingRow {
    pub id: PluginRatingId,
    pub org_id: OrgId,
    /// Id of the plugin in the catalogue.
    pub plugin_id: String,
    /// From 1 to 5.
    pub stars: i64,
    /// Plain text of people.
    pub body: String,
    /// Name of the user.
    pub author: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Sorted for RatingRow {
    const KEYS: &'static [Key] = &[Key::of("updated_at", "r.updated_at"), Key::of("stars", "r.stars")];
    const DEFAULT: &'static str = "-updated_at";
    const LAST: &'static [&'static str] = &["r.id"];
}

/// How many ratings a plugin has, and the sum of their stars.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Tally {
    pub plugin_id: String,
    pub count: i64,
    pub stars: i64,
}

/// A page of the ratings of a plugin, and their number.
pub async fn list(tx: &mut Tx, plugin_id: &str, order: InOrder<RatingRow>) -> Result<(Vec<RatingRow>, i64)> {
    Select::new("SELECT r.*", "FROM plugin_rating r")
        .and_bind("r.plugin_id = ?", Bind::Text(plugin_id.to_owned()))
        .page(tx, order)
        .await
}

/// Writes what an organization thinks of a plugin, in place of what it thought. The row keeps its id.
pub async fn put(tx: &mut Tx, row: &RatingRow) -> Result<RatingRow> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO plugin_rating (id, org_id, plugin_id, stars, body, author, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (plugin_id, org_id) DO UPDATE
        SET stars = excluded.stars, body = excluded.body, author = excluded.author, updated_at = excluded.updated_at
        RETURNING *")
        .bind(row.id).bind(row.org_id).bind(&row.plugin_id).bind(row.stars).bind(&row.body).bind(&row.author)
        .bind(row.created_at).bind(row.updated_at)
        .fetch_one(conn)
        .await)?)
}

/// A rating of a plugin.
pub async fn find(tx: &mut Tx, plugin_id: &str, id: PluginRatingId) -> Result<Option<RatingRow>> {
    Select::new("SELECT r.*", "FROM plugin_rating r")
        .and_bind("r.plugin_id = ?", Bind::Text(plugin_id.to_owned()))
        .and_bind("r.id = ?", Bind::Id(id.0))
        .one(tx)
        .await
}

/// Removes a rating.
pub async fn remove(tx: &mut Tx, id: PluginRatingId) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM plugin_rating WHERE id = $1").bind(id));
    Ok(())
}

/// The numbers of these plugins; one that nobody rated is not among them.
pub async fn tallies(tx: &mut Tx, plugins: &[&str]) -> Result<Vec<Tally>> {
    if plugins.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(tx, conn => {
        let mut select = QueryBuilder::new(
            "SELECT plugin_id, COUNT(*) AS count, CAST(SUM(stars) AS BIGINT) AS stars FROM plugin_rating WHERE plugin_id IN (",
        );
        push_list!(select, plugins);
        select.push(") GROUP BY plugin_id ORDER BY plugin_id");
        select.build_query_as::<Tally>().fetch_all(conn).await
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both};

    on_both! {
        async fn an_organization_rates_a_plugin_once(db) {
            let world = World::new(&db, "one").await;
            let rating = |plugin: &str, stars| RatingRow {
                id: world.clock.new_id(),
                org_id: world.org,
                plugin_id: plugin.to_owned(),
                stars,
                body: "good".to_owned(),
                author: "ada".to_owned(),
                created_at: world.clock.now(),
                updated_at: world.clock.now(),
            };
            let mut tx = db.write().await.unwrap();
            let first = put(&mut tx, &rating("acme", 2)).await.unwrap();
            let second = put(&mut tx, &rating("acme", 5)).await.unwrap();
            assert_eq!((second.id, second.stars), (first.id, 5));
            put(&mut tx, &rating("other", 1)).await.unwrap();
            let tally = Tally { plugin_id: "acme".to_owned(), count: 1, stars: 5 };
            assert_eq!(tallies(&mut tx, &["acme", "nobody"]).await.unwrap(), [tally]);
            assert_eq!(tallies(&mut tx, &[]).await.unwrap(), []);
            assert_eq!(find(&mut tx, "other", first.id).await.unwrap(), None);
            assert_eq!(find(&mut tx, "acme", first.id).await.unwrap(), Some(second));
            remove(&mut tx, first.id).await.unwrap();
            assert_eq!(tallies(&mut tx, &["acme"]).await.unwrap(), []);
        }
    }
}
