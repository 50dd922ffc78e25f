//! VLANs that a site is to have, as its brain last said.

use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Object, Table, revised, table};
use crate::select::{Bind, Scope, push_list};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub CanonicalVlanId,
}

/// Rows of one statement.
const ROWS_PER_STATEMENT: usize = 500;
/// Numbers that a VLAN can have.
const VLANS_MAX: i64 = 4_094;

/// A VLAN that a site is to have.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct CanonicalVlan {
    pub id: CanonicalVlanId,
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub site_id: SiteId,
    /// The brain that it was read from.
    pub controller_id: ControllerId,
    /// Number in tags.
    #[schemars(range(min = 1, max = 4094))]
    pub vlan_id: i64,
    /// Null where the brain does not say.
    pub name: Option<String>,
    /// Prefixes of its addresses, as far as the brain says.
    #[sqlx(json)]
    pub subnets: Vec<String>,
    /// Address of its gateway; null where the brain does not say.
    pub gateway: Option<String>,
    /// Which device gives addresses in it, in the word of the model; null where the brain does not say.
    pub dhcp: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for CanonicalVlan {
    const KEYS: &'static [Key] = &[
        Key::of("vlan_id", "canonical_vlan.vlan_id"),
        Key::nullable("name", "LOWER(canonical_vlan.name)"),
        Key::of("updated_at", "canonical_vlan.updated_at"),
    ];
    const DEFAULT: &'static str = "vlan_id";
    const LAST: &'static [&'static str] = &["canonical_vlan.id"];
}

revised!(CanonicalVlan);

impl Object for CanonicalVlan {
    type Id = CanonicalVlanId;
    const TABLE: Table = table!(
        "canonical_vlan",
        "canonical_vlan.id, canonical_vlan.revision, canonical_vlan.org_id, canonical_vlan.site_id,
        canonical_vlan.controller_id, canonical_vlan.vlan_id, canonical_vlan.name, canonical_vlan.subnets,
        canonical_vlan.gateway, canonical_vlan.dhcp, canonical_vlan.created_at, canonical_vlan.updated_at,
        canonical_vlan.deleted_at",
        org: "org_id",
        site: "site_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// What a brain says of a VLAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidVlan {
    pub vlan_id: i64,
    pub name: Option<String>,
    pub subnets: Vec<String>,
    pub gateway: Option<String>,
    pub dhcp: Option<String>,
}

impl SaidVlan {
    /// Whether the stored VLAN is as the brain says.
    pub fn is_as(&self, stored: &CanonicalVlan) -> bool {
        (self.vlan_id, &self.name, &self.subnets, &self.gateway, &self.dhcp)
            == (stored.vlan_id, &stored.name, &stored.subnets, &stored.gateway, &stored.dhcp)
    }
}

/// Where VLANs are written.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub controller_id: ControllerId,
    pub now: Timestamp,
}

/// Returns a page of the VLANs that sites are to have, and how many there are on all pages.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    (site, vlan_id): (Option<SiteId>, Option<i64>),
    search: Option<&str>,
    page: impl Into<InOrder<CanonicalVlan>>,
) -> Result<(Vec<CanonicalVlan>, i64)> {
    object::live::<CanonicalVlan>(scope)
        .and_some("canonical_vlan.site_id = ?", site.map(|id| Bind::Id(id.0)))
        .and_some("canonical_vlan.vlan_id = ?", vlan_id.map(Bind::Number))
        .search(&["canonical_vlan.name"], search)
        .page(tx, page)
        .await
}

/// All VLANs that a site is to have, by their numbers.
pub async fn of_site(tx: &mut Tx, site: SiteId) -> Result<Vec<CanonicalVlan>> {
    object::live::<CanonicalVlan>(&Scope::everything())
        .and_bind("canonical_vlan.site_id = ?", Bind::Id(site.0))
        .all(tx, "canonical_vlan.vlan_id", VLANS_MAX)
        .await
}

/// Stores VLANs that the site had not; their numbers differ.
pub async fn insert(tx: &mut Tx, place: &Place, new: &[(CanonicalVlanId, &SaidVlan)]) -> Result<()> {
    for rows in new.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO canonical_vlan (id, org_id, site_id, controller_id, vlan_id, name, subnets, gateway, dhcp,
                    created_at, updated_at) ",
            );
            insert.push_values(rows, |mut row, (id, said)| {
                row.push_bind(*id)
                    .push_bind(place.org_id)
                    .push_bind(place.site_id)
                    .push_bind(place.controller_id)
                    .push_bind(said.vlan_id)
                    .push_bind(said.name.as_ref())
                    .push_bind(subnets(said))
                    .push_bind(said.gateway.as_ref())
                    .push_bind(said.dhcp.as_ref())
                    .push_bind(place.now)
                    .push_bind(place.now);
            });
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

fn subnets(said: &SaidVlan) -> Value {
    json!(said.subnets)
}

/// Stores VLANs as the brain says them now.
pub async fn update(tx: &mut Tx, place: &Place, changed: &[(CanonicalVlanId, &SaidVlan)]) -> Result<()> {
    for rows in changed.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut update = QueryBuilder::new("WITH said (id, name, subnets, gateway, dhcp) AS (");
            update.push_values(rows, |mut row, (id, said)| {
                row.push_bind(*id)
                    .push_bind(said.name.as_ref())
                    .push_bind(subnets(said))
                    .push_bind(said.gateway.as_ref())
                    .push_bind(said.dhcp.as_ref());
            });
            update.push(") UPDATE canonical_vlan SET revision = revision + 1, controller_id = ").push_bind(place.controller_id);
            update.push(", updated_at = ").push_bind(place.now);
            update.push(
                ", name = said.name, subnets = said.subnets, gateway = said.gateway, dhcp = said.dhcp
                FROM said WHERE canonical_vlan.id = said.id AND canonical_vlan.deleted_at IS NULL",
            );
            update.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Hides VLANs that the brain has no more.
pub async fn remove(tx: &mut Tx, ids: &[CanonicalVlanId], now: Timestamp) -> Result<()> {
    for ids in ids.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut update = QueryBuilder::new("UPDATE canonical_vlan SET revision = revision + 1, deleted_at = ");
            update.push_bind(now).push(", updated_at = ").push_bind(now);
            update.push(" WHERE deleted_at IS NULL AND id IN (");
            push_list!(update, ids);
            update.push(")");
            update.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
