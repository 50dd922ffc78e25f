//! Timers of plugins: set by these, kept by the host, and called once for each time.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::watcher::{Watch, asked, log, switch, triggers, until};
use crate::support::{Api, on_both};

fn every(name: &str, secs: u32) -> Value {
    json!({ "name": name, "trigger": "nightly", "every-s": secs })
}

impl Watch {
    /// Lets time pass; tokens of before may have expired.
    async fn pass(&mut self, seconds: i64) {
        self.server.running().app.clock.advance(TimeDelta::seconds(seconds));
        self.api = self.server.log_in("ada").await;
    }
}

async fn timers(api: &Api) -> Vec<Value> {
    triggers(api).await["timers"].as_array().unwrap().clone()
}

/// Sets these timers, and waits until the plugin says of them that they are refused for this.
async fn refused(api: &Api, timers: &[Value], expected: &str) {
    switch(api, true, json!({ "timers": timers })).await;
    let mut found = Value::Null;
    for _ in 0..300 {
        found = triggers(api).await["problem"].clone();
        if found.as_str().is_some_and(|problem| problem.contains(expected)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{found} is not '{expected}'")
}

fn lines(log: &[String]) -> Vec<&String> {
    log.iter().filter(|line| line.starts_with("nightly: timer")).collect()
}

on_both! {
    async fn a_timer_comes_at_its_times_and_once_for_those_that_passed(database: Database) {
        // Half a day away, so that it does not come meanwhile.
        let hour = (heddle_core::Clock::default().now() + TimeDelta::hours(12)).with_timezone(&chrono_tz::Europe::Berlin).format("%H").to_string();
        let night = json!({ "name": "night", "trigger": "nightly", "cron": format!("0 {hour} * * *"), "time-zone": "Europe/Berlin" });
        let mut watch = Watch::start(database, json!({ "timers": [every("often", 90), night] })).await;
        let set = timers(&watch.api).await;
        assert_eq!(set.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["night", "often"]);
        let due: DateTime<Utc> = set[0]["next_at"].as_str().unwrap().parse().unwrap();
        let berlin = due.with_timezone(&chrono_tz::Europe::Berlin);
        assert_eq!(berlin.format("%H:%M").to_string(), format!("{hour}:00"));
        assert!(lines(&log(&watch.api).await).is_empty());
        // Four times of the one pass while nothing looks: they come once.
        watch.pass(400).await;
        let found = until(&watch.api, |log| !lines(log).is_empty()).await;
        assert_eq!(lines(&found).len(), 1, "{found:?}");
        let next: DateTime<Utc> = timers(&watch.api).await[1]["next_at"].as_str().unwrap().parse().unwrap();
        let now = watch.server.running().app.clock.now();
        assert!(next > now && next - now <= TimeDelta::seconds(90), "{next} {now}");
        let runs = watch.api.get("/fabric/runs?kind=trigger").await.expect_status(200).body;
        assert!(runs["items"][0]["due_at"].is_string(), "{runs}");
    }
}

on_both! {
    async fn a_timer_that_comes_once_is_gone_then_and_comes_no_sooner_than_agreed(database: Database) {
        let mut watch = Watch::start(database, json!({ "timers": [{ "name": "once", "trigger": "nightly", "at-ms": 0 }] })).await;
        watch.pass(50).await;
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        assert!(lines(&log(&watch.api).await).is_empty(), "a minute is the least");
        watch.pass(20).await;
        until(&watch.api, |log| lines(log).len() == 1).await;
        assert!(timers(&watch.api).await.is_empty());
    }
}

on_both! {
    async fn timers_stay_over_a_restart_and_go_when_the_plugin_is_switched_off(database: Database) {
        let mut watch = Watch::start(database, json!({ "timers": [every("often", 120)] })).await;
        let before = timers(&watch.api).await;
        watch.server.restart().await;
        watch.api = watch.server.log_in("ada").await;
        assert_eq!(timers(&watch.api).await, before);
        // Set again as it was, it keeps its next time.
        switch(&watch.api, true, json!({ "timers": [every("often", 120), every("other", 60)] })).await;
        until(&watch.api, |log| log.iter().filter(|line| line.starts_with("configured")).count() == 2).await;
        let now = timers(&watch.api).await;
        assert_eq!((now.len(), &now[0]), (2, &before[0]));
        switch(&watch.api, false, json!({})).await;
        assert!(timers(&watch.api).await.is_empty());
        watch.pass(300).await;
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        switch(&watch.api, true, json!({ "timers": [every("often", 120)] })).await;
        until(&watch.api, |log| log.iter().filter(|line| line.starts_with("configured")).count() == 3).await;
        assert!(lines(&log(&watch.api).await).is_empty());
    }
}

on_both! {
    async fn what_is_no_timer_is_refused_by_name_and_none_is_set(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        let cron = |text: &str, zone: &str| json!({ "name": "t", "trigger": "nightly", "cron": text, "time-zone": zone });
        for (timer, problem) in [
            (every("t", 59), "'min-interval-s' of the manifest is 60"),
            (cron("* * * *", "UTC"), "five fields"),
            (cron("0 9 * * *", "Mars/Olympus"), "not a time zone"),
            (cron("0 0 30 2 *", "UTC"), "never comes"),
            (json!({ "name": "t", "trigger": "other", "every-s": 60 }), "a trigger that the manifest does not have"),
            (json!({ "name": "T t", "trigger": "nightly", "every-s": 60 }), "a timer's name has"),
            (json!({ "name": "t", "trigger": "nightly", "at-ms": u64::MAX }), "after the year 9999"),
        ] {
            refused(api, &[timer], problem).await;
            assert!(timers(api).await.is_empty());
        }
        let many: Vec<Value> = (0..65).map(|n| every(&format!("t{n}"), 60)).collect();
        refused(api, &many, "at most 64 timers").await;
        switch(api, true, json!({ "timers": many[..64] })).await;
        until(api, |_| true).await;
        for _ in 0..300 {
            if timers(api).await.len() == 64 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!((timers(api).await.len(), &triggers(api).await["problem"]), (64, &Value::Null));
        assert_eq!(asked(api).await["timers"].as_array().unwrap().len(), 64);
    }
}

on_both! {
    async fn a_time_that_fails_is_tried_until_the_next_one_comes(database: Database) {
        let mut watch = Watch::start(database, json!({ "timers": [every("failing", 60)] })).await;
        watch.pass(61).await;
        let mut found = Value::Null;
        for _ in 0..200 {
            found = timers(&watch.api).await[0].clone();
            if found["attempts"].as_i64().unwrap() >= 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert!(found["problem"].as_str().is_some_and(|problem| problem.contains("the timer fails")), "{found}");
        // Each time that is left out is told.
        for _ in 0..6 {
            watch.pass(61).await;
            tokio::time::sleep(std::time::Duration::from_millis(1_300)).await;
        }
        let notices = watch.api.get("/notifications").await.expect_status(200).body;
        assert!(notices.to_string().contains("left out the time"), "{notices}");
        assert_eq!(timers(&watch.api).await.len(), 1, "it comes again");
    }
}
