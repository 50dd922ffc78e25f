//! What organizations think of plugins.

use heddle_core::Role;
use serde_json::{Value, json};

use super::{Lab, syncs};
use crate::fixtures::member;
use crate::support::on_both;

const RATINGS: &str = "/marketplace/plugins/scripted/ratings";

on_both! {
    async fn an_organization_has_one_rating_and_a_super_admin_moderates(database: Database) {
        let lab = Lab::start(database).await;
        let rate = |stars: i64, text: &str| json!({ "stars": stars, "text": text });
        lab.api.post(RATINGS, &rate(5, "")).await.expect_status(409);
        syncs(&lab.api, "updated").await;
        lab.api.post("/marketplace/plugins/nobody/ratings", &rate(5, "")).await.expect_status(404);
        for (stars, text) in [(0, ""), (6, ""), (3, "a\0b"), (3, "a".repeat(2_001).as_str())] {
            lab.api.post(RATINGS, &rate(stars, text)).await.expect_status(422);
        }
        let other = lab.api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let (_, uma) = member(&lab.server, other["id"].as_str().unwrap(), Role::OrgAdmin, "uma").await;
        let (_, vic) = member(&lab.server, other["id"].as_str().unwrap(), Role::Viewer, "vic").await;
        lab.api.post(RATINGS, &rate(4, "good")).await.expect_status(201);
        let first = uma.post(RATINGS, &rate(1, "bad")).await.expect_status(201).body;
        let second = uma.post(RATINGS, &rate(2, "less bad")).await.expect_status(200).body;
        assert_eq!((&second["id"], &second["is_own"], &second["author"]), (&first["id"], &json!(true), &json!("uma")));
        vic.post(RATINGS, &rate(1, "")).await.expect_status(403);

        let seen = vic.get(&format!("{RATINGS}?sort=stars")).await.expect_status(200).body;
        assert_eq!(seen["total"], 2);
        let (own, foreign) = (&seen["items"][0], &seen["items"][1]);
        assert_eq!((&own["text"], &own["is_own"]), (&json!("less bad"), &json!(true)));
        assert_eq!((&foreign["text"], &foreign["author"], &foreign["is_own"]), (&json!("good"), &Value::Null, &json!(false)));
        let shown = vic.get("/marketplace/plugins/scripted").await.expect_status(200).body;
        assert_eq!((&shown["rating"], &shown["ratings"]), (&json!(3.0), &json!(2)));

        let foreign = format!("{RATINGS}/{}", foreign["id"].as_str().unwrap());
        uma.delete(&foreign).await.expect_status(404);
        let own = format!("{RATINGS}/{}", own["id"].as_str().unwrap());
        lab.api.delete(&own).await.expect_status(204);
        lab.api.delete(&own).await.expect_status(404);
        let left = uma.get(RATINGS).await.expect_status(200).body;
        assert_eq!((&left["total"], &left["items"][0]["text"]), (&json!(1), &json!("good")));
    }
}
