//! Which ids an organization has, for what names them before it uses them.

use std::collections::HashSet;

use heddle_core::OrgId;
use uuid::Uuid;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Object};
use crate::select::{Bind, Scope};

/// Those of the ids that are of objects of the organization and not removed, in one statement. A few hundred ids at most.
pub async fn known<T: Object>(tx: &mut Tx, org: OrgId, ids: &[Uuid]) -> Result<HashSet<Uuid>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<(Uuid,)> = object::live_as::<T>(T::TABLE.select_id, &Scope::organization(org))
        .and_in(T::TABLE.id, ids.iter().map(|id| Bind::Id(*id)))
        .all(tx, T::TABLE.id, i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::Channel;
    use crate::testing::{World, on_both};
    use crate::{Controller, Device, Site};

    on_both! {
        async fn ids_of_the_organization_are_known_and_no_others(db) {
            let (one, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
            let mut tx = db.write().await.unwrap();
            let ids = [one.site.0, other.site.0, one.clock.new_id::<Uuid>()];
            assert_eq!(known::<Site>(&mut tx, one.org, &ids).await.unwrap(), HashSet::from([one.site.0]));
            let ids = [one.controller.0, other.controller.0];
            let found = known::<Controller>(&mut tx, other.org, &ids).await.unwrap();
            assert_eq!(found, HashSet::from([other.controller.0]));
            assert!(known::<Device>(&mut tx, one.org, &ids).await.unwrap().is_empty());
            assert!(known::<Channel>(&mut tx, one.org, &ids).await.unwrap().is_empty());
        }
    }
}
