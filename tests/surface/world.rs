//! Two organizations with one of everything, and users who may look at the first.

use heddle_core::Role;
use serde_json::json;

use crate::fixtures::{Ids, created, fill, member, text};
use crate::support::{Api, Database, Server};

/// Well formed, and of nothing.
pub(crate) const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

pub(super) struct World {
    pub(super) server: Server,
    /// The first `super_admin`, of the own organization.
    pub(super) admin: Api,
    pub(super) own: Ids,
    pub(super) foreign: Ids,
    /// Removed objects of the other organization.
    pub(super) removed: Ids,
}

impl World {
    pub(super) async fn start(database: Database) -> Self {
        let server = Server::start_with(database, super::unlimited()).await;
        let admin = server.set_up().await;
        let me = admin.get("/auth/me").await.expect_status(200).body;
        let first = text(&me["organization_id"]);
        let second = created(&admin, "/organizations", &json!({ "name": "Umbrella" })).await;
        let gone = created(&admin, "/organizations", &json!({ "name": "Gone" })).await;
        let (own, _) = fill(&server, &admin, &first).await;
        let (foreign, mut removed) = fill(&server, &admin, &second).await;
        admin.delete(&format!("/organizations/{gone}")).await.expect_status(204);
        removed.insert("organization_id", gone);
        Self { server, admin, own, foreign, removed }
    }

    /// A member of the own organization with this role.
    pub(super) async fn member(&self, role: Role) -> Api {
        member(&self.server, &self.own["organization_id"], role, &role.to_string()).await.1
    }
}
