//! How an audit log is treated that was altered in the database.

use serde_json::json;

use super::{Site, options, run};
use crate::support::{Database, ENCRYPTION_KEY, Options, Process, Server, on_both};

async fn sql(server: &Server, database: &Database, text: &'static str) {
    use sqlx::Connection as _;
    match database {
        Database::Sqlite => {
            let file = format!("sqlite://{}", server.folder().join("data/heddle.db").display());
            let mut connection = sqlx::SqliteConnection::connect(&file).await.unwrap();
            sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
        }
        Database::Postgres(url) => {
            let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
        }
    }
}

fn same(database: &Database) -> Database {
    match database {
        Database::Sqlite => Database::Sqlite,
        Database::Postgres(url) => Database::Postgres(url.clone()),
    }
}

on_both! {
    async fn a_tail_that_was_cut_with_its_old_head_put_back_is_found(database: Database) {
        let mut server = Server::start(same(&database)).await;
        let api = server.set_up().await;
        api.post("/sites", &json!({ "name": "One" })).await.expect_status(201);
        sql(&server, &database, "CREATE TABLE old_head AS SELECT * FROM audit_head").await;
        api.post("/sites", &json!({ "name": "Two" })).await.expect_status(201);
        let head = api.get("/audit/head").await.expect_status(200).body;
        // A stop keeps the heads outside of the database.
        server.restart().await;
        let fine = api_again(&server).await.get("/audit/validate").await.expect_status(200).body;
        assert_eq!((&fine["valid"], &fine["kept_head_matches"]), (&json!(true), &json!(true)), "{fine}");
        assert!(fine["entries"].as_i64() >= head["seq"].as_i64(), "{fine} {head}");
        server.stop().await;
        sql(&server, &database, "DELETE FROM audit WHERE seq > (SELECT MIN(seq) FROM old_head)").await;
        sql(&server, &database, "DELETE FROM audit_head").await;
        sql(&server, &database, "INSERT INTO audit_head SELECT * FROM old_head").await;
        server.restart().await;
        let api = api_again(&server).await;
        let found = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!((&found["valid"], &found["kept_head_matches"]), (&json!(false), &json!(false)), "{found}");
    }
}

async fn api_again(server: &Server) -> crate::support::Api {
    server.log_in("ada").await
}

on_both! {
    async fn a_head_that_was_moved_back_is_found_without_what_is_kept(database: Database) {
        let server = Server::start(same(&database)).await;
        let api = server.set_up().await;
        api.post("/sites", &json!({ "name": "One" })).await.expect_status(201);
        sql(&server, &database, "DELETE FROM audit WHERE seq = (SELECT MAX(seq) FROM audit)").await;
        sql(&server, &database, "UPDATE audit_head SET seq = seq - 1, hash = (SELECT hash FROM audit ORDER BY seq DESC LIMIT 1)").await;
        let found = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!((&found["valid"], &found["head_matches"]), (&json!(false), &json!(false)), "{found}");
    }
}

on_both! {
    async fn a_stop_writes_the_end_of_the_log_into_the_log_of_the_process(database: Database) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default().with("ADAPTER_PACKAGES", "").with("LOG_FILTER", "info");
        let (mut process, _) = Process::start(folder.path(), &database, &options).await.set_up().await;
        process.api.post("/sites", &json!({ "name": "One" })).await.expect_status(201);
        let head = process.api.get("/audit/head").await.expect_status(200).body;
        process.terminate().await;
        let line = format!(
            "audit log of organization {} ends with entry {}, hash {}",
            head["organization_id"].as_str().unwrap(), head["seq"], head["hash"].as_str().unwrap()
        );
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(log.contains(&line), "'{line}' is in {log}");
    }
}

on_both! {
    async fn heads_can_be_printed_and_survive_a_rotation_and_are_refused_to_another_key(database: Database) {
        let mut site = Site::start(database, options()).await;
        let head = site.process.api.get("/audit/head").await.expect_status(200).body;
        let line = format!("{} {} {}", head["organization_id"].as_str().unwrap(), head["seq"], head["hash"].as_str().unwrap());
        let printed = site.run(&["audit", "heads"]).expect_ok().out;
        assert!(printed.lines().any(|printed| printed == line), "{line} in {printed}");
        site.process.terminate().await;
        // Another encryption key: nothing starts with it, and the reason is said.
        let new = "it-rotated-7f3b29c1d8e4a605-encrypt-QrS";
        let wrong = site.options.clone().with("ENCRYPTION_KEY", new);
        run(site.path(), &site.database, &wrong, &["serve"])
            .expect_failure(&["ENCRYPTION_KEY is not the key that this database is sealed with", "ENCRYPTION_KEY_PREVIOUS"]);
        let both = wrong.clone().with("ENCRYPTION_KEY_PREVIOUS", ENCRYPTION_KEY);
        run(site.path(), &site.database, &both, &["keys", "rotate"]).expect_ok();
        site.options = wrong;
        site.restart().await;
        let found = site.process.api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(found["valid"], true, "{found}");
    }
}
