//! Which ids an organization has, for what names them before it uses them.

use std::collections::HashSet;

use heddle_core::OrgId;
use uuid::Uuid;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select};

/// The kind of object that an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Noun {
    Site,
    Controller,
    Device,
    Channel,
}

/// Those of the ids that are of the organization and not removed, in one statement. A few hundred ids at most.
pub async fn known(tx: &mut Tx, org: OrgId, noun: Noun, ids: &[Uuid]) -> Result<HashSet<Uuid>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let from = match noun {
        Noun::Site => "FROM site t",
        Noun::Controller => "FROM controller t",
        Noun::Device => "FROM device t",
        Noun::Channel => "FROM channel t",
    };
    let found: Vec<(Uuid,)> = Select::new("SELECT t.id", from)
        .and_bind("t.org_id = ?", Bind::Id(org.0))
        .and("t.deleted_at IS NULL")
        .and_in("t.id", ids.iter().map(|id| Bind::Id(*id)))
        .all(tx, "t.id", i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both};

    on_both! {
        async fn ids_of_the_organization_are_known_and_no_others(db) {
            let (one, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
            let mut tx = db.write().await.unwrap();
            let ids = [one.site.0, other.site.0, one.clock.new_id::<Uuid>()];
            assert_eq!(known(&mut tx, one.org, Noun::Site, &ids).await.unwrap(), HashSet::from([one.site.0]));
            let ids = [one.controller.0, other.controller.0];
            let found = known(&mut tx, other.org, Noun::Controller, &ids).await.unwrap();
            assert_eq!(found, HashSet::from([other.controller.0]));
            for noun in [Noun::Device, Noun::Channel] {
                assert!(known(&mut tx, one.org, noun, &ids).await.unwrap().is_empty());
            }
        }
    }
}
