//! Two organizations with one of everything, and users who may look at the first.

use heddle_core::Role;
use serde_json::json;

use crate::fixtures::{FIXTURES, Ids, Place, created, member, text};
use crate::support::{Api, Database, Server};

/// Well formed, and of nothing.
pub(super) const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

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

/// One of everything in this organization, and one of everything that can be removed, removed.
async fn fill(server: &Server, admin: &Api, organization: &str) -> (Ids, Ids) {
    let mut ids: Ids = [("organization_id", organization.to_owned())].into();
    let mut removed = Ids::new();
    for (name, into) in [("Kept", &mut ids), ("Removed", &mut removed)] {
        let user_name = format!("{}-{}", name.to_lowercase(), &organization[24..]);
        let (user, member) = member(server, organization, Role::Viewer, &user_name).await;
        into.insert("user_id", user);
        let place = Place { server, admin, organization, name, member: &member };
        for fixture in FIXTURES {
            let before = into.clone();
            fixture.one(&place, into).await;
            let taken = before.iter().find(|(id, value)| into[*id] != **value);
            assert!(taken.is_none(), "{} has an id of another feature: {taken:?}", fixture.feature());
        }
    }
    for (path, id) in FIXTURES.iter().rev().flat_map(|fixture| fixture.removable()) {
        admin.delete(&format!("/{path}/{}", removed[id])).await.expect_status(204);
    }
    (ids, removed)
}
