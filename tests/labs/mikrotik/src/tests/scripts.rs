//! Scripts, and the scheduler as the way back.

use super::*;

#[tokio::test]
async fn schedule_takes_a_change_back_at_its_time() {
    let peer = Peer::new().await;
    let rule = peer.add(FILTER, json!({ "chain": "input", "action": "accept", "comment": "risky" })).await;
    let event =
        format!("/ip/firewall/filter/remove {}; /system/scheduler/remove [find name=\"back\"]", id(&rule));
    let job =
        peer.add("system/scheduler", json!({ "name": "back", "interval": "2m", "on-event": event })).await;
    assert_eq!(
        (&job["start-date"], &job["run-count"], &job["next-run"]),
        (&json!("2026-01-01"), &json!("0"), &json!("2026-01-01 00:02:00"))
    );
    peer.lab.advance(Duration::from_secs(110));
    assert_eq!(peer.rows("ip/firewall/filter?comment=risky").await.len(), 1);
    peer.lab.advance(Duration::from_secs(15));
    assert!(peer.rows("ip/firewall/filter?comment=risky").await.is_empty());
    assert!(peer.rows("system/scheduler?name=back").await.is_empty());
}

#[tokio::test]
async fn schedule_that_is_removed_does_nothing() {
    let peer = Peer::new().await;
    let job = json!({ "name": "back", "start-date": "2026-01-01", "start-time": "00:01:00", "on-event": "/system/identity/set name=reverted" });
    let job = peer.add("system/scheduler", job).await;
    peer.delete("system/scheduler", id(&job)).await;
    peer.lab.advance(Duration::from_mins(2));
    assert_eq!(peer.get("system/identity").await["name"], "lab-router");
}

#[tokio::test]
async fn schedule_without_an_interval_runs_once_and_one_that_is_off_does_not() {
    let peer = Peer::new().await;
    let job = |name: &str, disabled: &str| json!({ "name": name, "start-time": "00:00:30", "disabled": disabled, "on-event": format!(":log info \"{name} ran\"") });
    peer.add("system/scheduler", job("once", "no")).await;
    peer.add("system/scheduler", job("never", "yes")).await;
    peer.lab.advance(Duration::from_hours(1));
    let row = peer.row("system/scheduler", "name", "once").await;
    assert_eq!((&row["run-count"], &row["next-run"]), (&json!("1"), &json!("")));
    let lines = peer.rows("log").await;
    let ran: Vec<&str> = lines
        .iter()
        .filter_map(|row| row["message"].as_str())
        .filter(|text| text.ends_with(" ran"))
        .collect();
    assert_eq!(ran, ["once ran"]);
}

#[tokio::test]
async fn script_has_no_more_than_its_policies() {
    let peer = Peer::new().await;
    let event = "/system/identity/set name=changed";
    let job = json!({ "name": "weak", "start-time": "00:00:10", "policy": "read", "on-event": event });
    peer.add("system/scheduler", job).await;
    peer.lab.advance(Duration::from_secs(20));
    assert_eq!(peer.get("system/identity").await["name"], "lab-router");
    let line = peer.row("log", "topics", "script,error").await;
    assert!(line["message"].as_str().unwrap().contains("not enough permissions (9)"));
}

#[tokio::test]
async fn startup_job_runs_after_a_restart() {
    let peer = Peer::new().await;
    let job =
        json!({ "name": "hello", "start-time": "startup", "on-event": "/system/identity/set name=started" });
    peer.add("system/scheduler", job).await;
    peer.lab.boot(Duration::from_secs(5));
    peer.lab.advance(Duration::from_secs(6));
    assert_eq!(peer.get("system/identity").await["name"], "started");
}

#[tokio::test]
async fn execute_gives_a_job_that_goes_on_behind_its_delays() {
    let peer = Peer::new().await;
    let script = ":delay 70s\n/system identity set name=late";
    let job = peer.post("execute", json!({ "script": script })).await;
    assert!(job["ret"].as_str().unwrap().starts_with('*'));
    assert_eq!(peer.rows("system/script/job").await.len(), 1);
    peer.lab.advance(Duration::from_mins(1));
    assert_eq!(peer.get("system/identity").await["name"], "lab-router");
    peer.lab.advance(Duration::from_secs(11));
    assert_eq!(peer.get("system/identity").await["name"], "late");
    assert!(peer.rows("system/script/job").await.is_empty());
}

#[tokio::test]
async fn execute_as_string_waits_and_a_refusal_is_its_output() {
    let peer = Peer::new().await;
    let run = |script: &str| json!({ "script": script, "as-string": "" });
    assert_eq!(peer.post("execute", run(":put 1")).await, json!({ "ret": "1" }));
    let answer = peer.post("execute", run("/ip/service/set www-ssl certificate=nope")).await;
    assert_eq!(answer["ret"], "input does not match any value of certificate");
    assert_eq!(peer.refused("POST", "execute", run(":delay 61s")).await, "Session closed");
}

#[tokio::test]
async fn language_has_conditions_loops_and_variables() {
    let peer = Peer::new().await;
    let script = r#"
        # names of lists
        :local list "walk"
        /ip firewall address-list
        add list=$list address=10.0.0.1 comment="first; \"one\""
        add list=$list address=10.0.0.2
        :if ([:len [find list=$list]] = 2) do={ :put "two" } else={ :put "other" }
        :foreach row in=[find list=$list] do={ set $row disabled=yes }
        :do { /ip/nothing/set x=1 } on-error={ :put "caught" }
        :put [/system/identity/get name]
        :put [get [find list=$list address=10.0.0.2] disabled]
        /ip/firewall/address-list remove [find list=unknown]
    "#;
    let answer = peer.post("execute", json!({ "script": script, "as-string": "" })).await;
    assert_eq!(answer["ret"], "two\ncaught\nlab-router\ntrue");
    let rows = peer.rows("ip/firewall/address-list?list=walk").await;
    assert_eq!(
        (rows.len(), &rows[0]["comment"], &rows[1]["disabled"]),
        (2, &json!("first; \"one\""), &json!("true"))
    );
}

#[tokio::test]
async fn named_script_counts_its_runs() {
    let peer = Peer::new().await;
    let script = peer.row("system/script", "name", "note").await;
    assert_eq!((&script["owner"], &script["run-count"]), (&json!("admin"), &json!("0")));
    assert!(script.get("last-started").is_none());
    assert_eq!(peer.post("system/script/run", json!({ "number": "note" })).await, json!([]));
    let script = peer.row("system/script", "name", "note").await;
    assert_eq!((&script["run-count"], &script["last-started"]), (&json!("1"), &json!("2026-01-01 00:00:00")));
    peer.row("log", "message", "a script ran").await;
}

#[tokio::test]
async fn schedule_takes_fields_away_and_goes_on_behind_a_refusal() {
    let peer = Peer::new().await;
    let rule =
        peer.add(FILTER, json!({ "chain": "order", "src-address": "10.0.0.1", "comment": "new" })).await;
    let lines = [
        ":do { /ip/firewall/filter remove numbers=*FFFF } on-error={}",
        &format!(
            ":do {{ /ip/firewall/filter set numbers={} comment=\"the old one\" !src-address }} on-error={{}}",
            id(&rule)
        ),
        ":do { /ip/firewall/filter remove numbers=[find comment=\"of nothing\"] } on-error={}",
        "/system/scheduler remove [find name=\"back\"]",
        "",
    ];
    let job = json!({ "name": "back", "interval": 95, "on-event": lines.join("\n"), "policy": "read,write,policy,test" });
    assert_eq!(peer.add("system/scheduler", job).await["interval"], "1m35s");
    peer.lab.advance(Duration::from_secs(96));
    let row = peer.get(&format!("{FILTER}/{}", id(&rule))).await;
    assert_eq!(row["comment"], "the old one");
    assert!(row.get("src-address").is_none());
    assert!(peer.rows("system/scheduler?name=back").await.is_empty());
}
