use chrono::TimeDelta;
use heddle_core::Clock;
use heddle_core::page::{Cursor, Place};
use serde_json::json;

use super::*;
use crate::db::Db;
use crate::testing::{POOL, drop_postgres, postgres, postgres_address, sqlite_logs};

/// As `on_both`, with the tables of the log lines.
macro_rules! on_both_logs {
    ($(async fn $name:ident($db:ident) $body:block)+) => {$(
        async fn $name($db: Db) $body

        mod $name {
            #[tokio::test]
            async fn sqlite() {
                let folder = tempfile::tempdir().unwrap();
                let db = super::sqlite_logs(folder.path()).await;
                super::$name(db.clone()).await;
                db.close().await;
            }

            #[tokio::test]
            async fn postgres() {
                // Beside the service's own tables: one database can hold both.
                if let Some((service, name)) = super::postgres().await {
                    let db = super::Db::open_logs(&super::postgres_address(&name), &super::POOL).await.unwrap();
                    super::$name(db.clone()).await;
                    db.close().await;
                    service.close().await;
                    super::drop_postgres(&name).await;
                }
            }
        }
    )+};
}

fn line(clock: &Clock, level: LogLevel, message: &str) -> LogLine {
    LogLine {
        id: clock.new_id(),
        at: clock.now(),
        level,
        target: "heddle_inventory::sync".to_owned(),
        message: message.to_owned(),
        fields: json!({ "controller.id": "c-17", "n": 1 }),
        request_id: None,
        span: None,
        org_id: None,
    }
}

async fn write(db: &Db, lines: &[LogLine]) {
    let mut tx = db.write().await.unwrap();
    insert(&mut tx, lines).await.unwrap();
    tx.commit().await.unwrap();
}

async fn messages(db: &Db, filter: LogFilter) -> Vec<String> {
    let request = WalkRequest { per_page: 50, place: Place::Page(1), is_ascending: false };
    let found = walk(&mut db.read().await.unwrap(), &filter, request).await.unwrap().items;
    found.into_iter().map(|line| line.message).collect()
}

on_both_logs! {
    async fn what_is_written_is_read(db) {
        let clock = Clock::default();
        let mut written = line(&clock, LogLevel::Warn, "sync of 'wan' failed: ü\n");
        written.request_id = Some("r-1".to_owned());
        written.span = Some("request".to_owned());
        write(&db, std::slice::from_ref(&written)).await;
        write(&db, std::slice::from_ref(&written)).await;
        let request = WalkRequest { per_page: 10, place: Place::Page(1), is_ascending: false };
        let read = walk(&mut db.read().await.unwrap(), &LogFilter::default(), request).await.unwrap().items;
        assert_eq!(read, [written]);
    }

    async fn filters_narrow(db) {
        let clock = Clock::default();
        let mut lines = vec![
            line(&clock, LogLevel::Info, "a 100% start"),
            line(&clock, LogLevel::Warn, "slow"),
            line(&clock, LogLevel::Error, "broken"),
        ];
        for (at, line) in lines.iter_mut().enumerate() {
            line.at += TimeDelta::seconds(i64::try_from(at).unwrap());
        }
        lines[1].request_id = Some("r-1".to_owned());
        lines[2].target = "heddle_store".to_owned();
        lines[2].fields = json!({ "cause": "Disk" });
        write(&db, &lines).await;
        let all = LogFilter::default;
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(messages(&db, all()).await, ["broken", "slow", "a 100% start"]);
        assert_eq!(messages(&db, LogFilter { level: Some(LogLevel::Info), ..all() }).await.len(), 3);
        assert_eq!(messages(&db, LogFilter { level: Some(LogLevel::Warn), ..all() }).await, ["broken", "slow"]);
        assert_eq!(messages(&db, LogFilter { level: Some(LogLevel::Error), ..all() }).await, ["broken"]);
        assert_eq!(messages(&db, LogFilter { target: text("heddle_Inventory"), ..all() }).await.len(), 2);
        assert!(messages(&db, LogFilter { target: text("inventory"), ..all() }).await.is_empty());
        assert!(messages(&db, LogFilter { target: text("heddle%sync"), ..all() }).await.is_empty());
        assert_eq!(messages(&db, LogFilter { search: text("100%"), ..all() }).await, ["a 100% start"]);
        assert_eq!(messages(&db, LogFilter { search: text("disk"), ..all() }).await, ["broken"]);
        assert_eq!(messages(&db, LogFilter { request_ids: vec!["r-1".to_owned(), "r-2".to_owned()], ..all() }).await, ["slow"]);
        assert_eq!(messages(&db, LogFilter { since: Some(lines[1].at), ..all() }).await, ["broken", "slow"]);
        assert_eq!(messages(&db, LogFilter { until: Some(lines[1].at), ..all() }).await, ["a 100% start"]);
    }

    async fn places_visit_every_line_once(db) {
        let clock = Clock::default();
        let now = clock.now();
        // Many at one instant, so that the id must decide.
        let lines: Vec<LogLine> = (0..1203)
            .map(|n| LogLine { at: now - TimeDelta::milliseconds(n / 100), ..line(&clock, LogLevel::Info, "x") })
            .collect();
        write(&db, &lines).await;
        let mut seen = std::collections::BTreeSet::new();
        let mut place = Place::Page(1);
        loop {
            let request = WalkRequest { per_page: 100, place, is_ascending: false };
            let page = walk(&mut db.read().await.unwrap(), &LogFilter::default(), request).await.unwrap();
            assert_eq!(page.total, 1203, "all are counted, wherever one is");
            let Some(last) = page.items.last() else { break };
            place = Place::Behind(Cursor { occurred_at: last.at, seq: 0, id: last.id });
            for line in page.items {
                assert!(seen.insert(line.id), "no line comes twice");
            }
        }
        assert_eq!(seen.len(), lines.len());
    }

    async fn the_oldest_go_in_steps(db) {
        let clock = Clock::default();
        let now = clock.now();
        let lines: Vec<LogLine> = (0..10)
            .map(|n| LogLine { at: now - TimeDelta::days(n), ..line(&clock, LogLevel::Info, &n.to_string()) })
            .collect();
        write(&db, &lines).await;
        let retention = Retention { oldest: now - TimeDelta::days(6), lines_max: 4 };
        let mut gone = Vec::new();
        loop {
            let mut tx = db.write().await.unwrap();
            let removed = trim(&mut tx, retention, 2).await.unwrap();
            tx.commit().await.unwrap();
            gone.push(removed);
            if removed == 0 {
                break;
            }
        }
        assert_eq!(gone, [2, 1, 2, 1, 0], "three are too old, then three too many");
        assert_eq!(messages(&db, LogFilter::default()).await, ["0", "1", "2", "3"]);
    }
}
