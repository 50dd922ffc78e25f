//! Grants of sites: the first one narrows, the last one widens.

use serde_json::{Value, json};

use super::{ABSENT, Member, World, column, if_match, refused, text};
use crate::support::{Answer, Api, Socket, on_both};

fn path(world: &World) -> String {
    format!("/organizations/{}/site-access", world.org)
}

fn grant_body(user: &Member, site: &str, level: &str) -> Value {
    json!({ "user_id": user.id, "site_id": site, "level": level })
}

async fn sites_of(api: &Api) -> Vec<String> {
    column(&api.get("/sites").await.expect_status(200).body, "id")
}

on_both! {
    async fn a_grant_narrows_at_once_and_its_level_can_be_changed(database: Database) {
        let world = World::start(database).await;
        let branch = world.new_site(&world.root, "Branch").await;
        let vic = world.member("vic", "viewer").await;
        assert_eq!(sites_of(&vic.api).await.len(), 2, "without a grant every site");
        let created = world.root.post(&format!("{}/", path(&world)), &grant_body(&vic, &branch, "read")).await.expect_status(201);
        assert_eq!(created.header("location"), format!("/api/v1{}/{}/{branch}", path(&world), vic.id));
        for (field, expected) in [
            ("level", "read"), ("username", "vic"), ("site_name", "Branch"), ("organization_id", world.org.as_str()),
        ] {
            assert_eq!(created.body[field], expected, "{}", created.text);
        }
        assert_eq!(sites_of(&vic.api).await, [branch.as_str()]);
        let updated = world.root.post(&path(&world), &grant_body(&vic, &branch, "write")).await.expect_status(200);
        assert_eq!(updated.body["level"], "write");
        let me = vic.api.get("/auth/me").await.body;
        assert_eq!(me["site_grants"], json!([{ "site_id": branch, "level": "write" }]));
        world.root.post(&path(&world), &grant_body(&vic, &world.site, "admin")).await.expect_status(201);
        assert_eq!(sites_of(&vic.api).await.len(), 2);
        let one = format!("{}/{}/{branch}", path(&world), vic.id);
        assert_eq!(world.root.get(&one).await.expect_status(200).body, updated.body);
        let entry = world.audited("site_access.updated").await.remove(0);
        assert_eq!(entry["detail"], json!({ "site_id": branch, "level": "write", "level_before": "read" }));
        assert_eq!(entry["target_id"], json!(vic.id));
    }
}

on_both! {
    async fn the_last_grant_is_taken_away_only_by_who_means_it(database: Database) {
        let world = World::start(database).await;
        let branch = world.new_site(&world.root, "Branch").await;
        let vic = world.member("vic", "viewer").await;
        for site in [&branch, &world.site] {
            world.root.post(&path(&world), &grant_body(&vic, site, "read")).await.expect_status(201);
        }
        let of = |site: &str| format!("{}/{}/{site}", path(&world), vic.id);
        world.root.delete(&of(&world.site)).await.expect_status(204);
        world.root.delete(&of(&world.site)).await.expect_status(404);
        let refusal = refused(world.root.delete(&of(&branch)).await, 409, "would_widen");
        assert!(refusal.message().contains("widen=true") && refusal.message().contains("vic"), "{}", refusal.message());
        refused(world.root.delete(&format!("{}?widen=false", of(&branch))).await, 409, "would_widen");
        assert_eq!(sites_of(&vic.api).await, [branch.as_str()]);
        let mut socket = Socket::subscribe(&world.root, &["security.*"]).await;
        world.root.delete(&format!("{}?widen=true", of(&branch))).await.expect_status(204);
        assert_eq!(sites_of(&vic.api).await.len(), 2);
        let event = socket.event("security.access_widened").await;
        assert_eq!((&event["payload"]["user_id"], &event["payload"]["site_id"]), (&json!(vic.id), &json!(branch)));
        let entries = world.audited("site_access.revoked").await;
        let widened: Vec<_> = entries.iter().map(|entry| entry["detail"]["widened"].clone()).collect();
        assert_eq!(widened, [json!(true), json!(false)]);
    }
}

on_both! {
    async fn of_two_who_take_the_last_two_grants_away_one_fails(database: Database) {
        let world = World::start(database).await;
        let branch = world.new_site(&world.root, "Branch").await;
        let vic = world.member("vic", "viewer").await;
        for _ in 0..4 {
            for site in [&branch, &world.site] {
                world.root.post(&path(&world), &grant_body(&vic, site, "read")).await;
            }
            let (one, two) = (format!("{}/{}/{branch}", path(&world), vic.id), format!("{}/{}/{}", path(&world), vic.id, world.site));
            let (one, two) = tokio::join!(world.root.delete(&one), world.root.delete(&two));
            let mut statuses = [one.status, two.status];
            statuses.sort_unstable();
            assert_eq!(statuses, [204, 409], "{} {}", one.text, two.text);
            assert_eq!(sites_of(&vic.api).await.len(), 1);
        }
    }
}

on_both! {
    async fn a_removed_sites_grant_still_counts(database: Database) {
        let world = World::start(database).await;
        let branch = world.new_site(&world.root, "Branch").await;
        let vic = world.member("vic", "viewer").await;
        world.root.post(&path(&world), &grant_body(&vic, &branch, "read")).await.expect_status(201);
        world.root.delete(&format!("/sites/{branch}")).await.expect_status(204);
        assert!(sites_of(&vic.api).await.is_empty(), "losing a site opens no other");
        let listed = world.root.get(&path(&world)).await.expect_status(200).body;
        assert!(listed["items"][0]["site_deleted_at"].is_string(), "{listed}");
        let one = format!("{}/{}/{branch}", path(&world), vic.id);
        refused(world.root.delete(&one).await, 409, "would_widen");
        let again = world.root.post(&path(&world), &grant_body(&vic, &branch, "write")).await.expect_status(422);
        assert_eq!(again.body["error"]["details"][0]["field"], "/site_id");
        world.root.delete(&format!("{one}?widen=true")).await.expect_status(204);
    }
}

on_both! {
    async fn nobody_grants_to_themself_or_to_who_is_not_below(database: Database) {
        let world = World::start(database).await;
        let (bea, peer) = (world.member("bea", "org_admin").await, world.member("peer", "org_admin").await);
        refused(bea.api.post(&path(&world), &grant_body(&bea, &world.site, "full")).await, 403, "own_account");
        refused(bea.api.post(&path(&world), &grant_body(&peer, &world.site, "read")).await, 403, "role_too_high");
        world.root.post(&path(&world), &grant_body(&peer, &world.site, "read")).await.expect_status(201);
        let one = format!("{}/{}/{}?widen=true", path(&world), peer.id, world.site);
        refused(bea.api.delete(&one).await, 403, "role_too_high");
        refused(peer.api.delete(&one).await, 403, "all_sites_required");
        let vic = world.member("vic", "viewer").await;
        refused(vic.api.post(&path(&world), &grant_body(&vic, &world.site, "full")).await, 403, "permission_denied");
        refused(vic.api.get(&path(&world)).await, 403, "permission_denied");
    }
}

on_both! {
    async fn what_belongs_to_another_organization_looks_absent(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let vic = world.member("vic", "viewer").await;
        let foreign_site = world.new_site(&other.admin.api, "Foreign").await;
        let foreign_user = world.member_of(&other.org, "oda", "viewer").await;
        let field = |answer: Answer| {
            let error = answer.expect_status(422).body["error"].clone();
            (text(&error["details"][0]["field"]), text(&error["details"][0]["message"]))
        };
        let absent = Member { id: ABSENT.to_owned(), api: world.root.clone() };
        for user in [&foreign_user, &absent] {
            let answer = world.root.post(&path(&world), &grant_body(user, &world.site, "read")).await;
            assert_eq!(field(answer), ("/user_id".to_owned(), "user not found".to_owned()));
        }
        for site in [foreign_site.as_str(), ABSENT] {
            let answer = world.root.post(&path(&world), &grant_body(&vic, site, "read")).await;
            assert_eq!(field(answer), ("/site_id".to_owned(), "site not found".to_owned()));
        }
        world.root.post(&path(&world), &grant_body(&vic, &world.site, "read")).await.expect_status(201);
        let own = format!("/organizations/{}/site-access", other.org);
        for all in [path(&world), format!("/organizations/{ABSENT}/site-access")] {
            let one = format!("{all}/{}/{}", vic.id, world.site);
            for answer in [
                other.admin.api.get(&all).await,
                other.admin.api.post(&all, &grant_body(&vic, &world.site, "read")).await,
                other.admin.api.post(&format!("{all}/bulk"), &json!({ "grants": [grant_body(&vic, &world.site, "read")] })).await,
                other.admin.api.get(&one).await,
                other.admin.api.delete(&one).await,
            ] {
                assert_eq!(refused(answer, 404, "not_found").message(), "organization not found");
            }
        }
        refused(other.admin.api.get(&format!("{own}/{}/{}", vic.id, world.site)).await, 404, "not_found");
        assert_eq!(other.admin.api.get(&own).await.expect_status(200).body["total"], 0);
    }
}

on_both! {
    async fn grants_are_listed_within_what_the_reader_accesses(database: Database) {
        let world = World::start(database).await;
        let branch = world.new_site(&world.root, "Branch").await;
        let (vic, wim) = (world.member("vic", "viewer").await, world.member("wim", "viewer").await);
        let bea = world.member("bea", "org_admin").await;
        for (user, site) in [(&vic, &branch), (&vic, &world.site), (&wim, &branch), (&bea, &branch)] {
            world.root.post(&path(&world), &grant_body(user, site, "read")).await.expect_status(201);
        }
        for (query, expected) in [
            (String::new(), 4),
            (format!("user_id={}", vic.id), 2),
            (format!("site_id={branch}"), 3),
            (format!("user_id={}&site_id={branch}", vic.id), 1),
            (format!("user_id={ABSENT}"), 0),
        ] {
            let page = world.root.get(&format!("{}?{query}", path(&world))).await.expect_status(200).body;
            assert_eq!((&page["total"], page["items"].as_array().unwrap().len()), (&json!(expected), expected), "{query}");
        }
        let seen = bea.api.get(&path(&world)).await.expect_status(200).body;
        assert_eq!(seen["total"], 3, "no word of other sites: {seen}");
        let paged = world.root.get(&format!("{}?per_page=3&page=2", path(&world))).await.expect_status(200).body;
        assert_eq!(paged["items"].as_array().unwrap().len(), 1);
    }
}

on_both! {
    async fn a_path_without_ids_is_400_and_a_body_without_them_422(database: Database) {
        let world = World::start(database).await;
        let vic = world.member("vic", "viewer").await;
        let grant = grant_body(&vic, &world.site, "read");
        let all = path(&world);
        for answer in [
            world.root.get("/organizations/acme/site-access").await,
            world.root.post("/organizations/acme/site-access", &grant).await,
            world.root.post("/organizations/acme/site-access/bulk", &json!({ "grants": [grant] })).await,
            world.root.get(&format!("{all}/vic/{}", world.site)).await,
            world.root.delete(&format!("{all}/{}/hq", vic.id)).await,
            world.root.delete(&format!("{all}/%00/{}", world.site)).await,
        ] {
            refused(answer, 400, "invalid_uuid");
        }
        world.server.nobody().get("/organizations/acme/site-access").await.expect_status(401);
        for wrong in [
            json!({ "user_id": "vic", "site_id": world.site, "level": "read" }),
            json!({ "user_id": vic.id, "site_id": world.site, "level": "owner" }),
            json!({ "user_id": vic.id, "site_id": world.site }),
            json!({ "user_id": vic.id, "site_id": world.site, "level": "read", "until": "tomorrow" }),
        ] {
            refused(world.root.post(&all, &wrong).await, 422, "validation_error");
        }
        let one = format!("{all}/{}/{}", vic.id, world.site);
        world.root.delete(&format!("{one}?widen=perhaps")).await.expect_status(422);
    }
}

on_both! {
    async fn a_grant_is_taken_away_only_as_it_was_seen(database: Database) {
        let world = World::start(database).await;
        let vic = world.member("vic", "viewer").await;
        let created = world.root.post(&path(&world), &grant_body(&vic, &world.site, "read")).await.expect_status(201);
        let one = format!("{}/{}/{}?widen=true", path(&world), vic.id, world.site);
        let tag = created.header("etag").to_owned();
        let updated = world.root.post(&path(&world), &grant_body(&vic, &world.site, "full")).await.expect_status(200);
        assert_eq!(if_match(&world.root, "DELETE", &one, &tag, &json!({})).await, 412);
        assert_eq!(if_match(&world.root, "DELETE", &one, updated.header("etag"), &json!({})).await, 204);
    }
}

on_both! {
    async fn a_user_who_comes_back_has_the_grants_of_before(database: Database) {
        let world = World::start(database).await;
        world.new_site(&world.root, "Branch").await;
        let vic = world.member("vic", "viewer").await;
        world.root.post(&path(&world), &grant_body(&vic, &world.site, "read")).await.expect_status(201);
        world.root.delete(&vic.path()).await.expect_status(204);
        assert_eq!(world.root.get(&path(&world)).await.body["total"], 0);
        world.root.post(&format!("{}/restore", vic.path()), &json!({})).await.expect_status(200);
        assert_eq!(sites_of(&world.log_in("vic").await).await, [world.site.as_str()]);
    }
}
