//! What the log of a new server tells its operator.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::support::{Options, PASSWORD, Process, on_both};

/// Lines of the log that speak of the setup, once the server has said that it listens `times` times.
async fn invitations(folder: &Path, times: usize) -> Vec<String> {
    let started = Instant::now();
    loop {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        // The line of the setup comes right after: a later one proves that it would be there.
        let listens = log.lines().filter(|line| line.contains("listening on")).count();
        let invitations: Vec<String> =
            log.lines().filter(|line| line.contains("setup is open")).map(str::to_owned).collect();
        if listens >= times && (!invitations.is_empty() || started.elapsed() > Duration::from_secs(5)) {
            return invitations;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "the server says that it listens: {log}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

on_both! {
    async fn the_log_shows_the_call_that_completes_the_setup_until_it_is_done(database: Database) {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(folder.path(), &database, &Options::default()).await;
        let lines = invitations(folder.path(), 1).await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        let (_, call) = lines[0].split_once("curl ").expect("the line has a command");
        let call = format!("curl --silent --show-error --fail-with-body {call}").replace("YOUR-PASSWORD", PASSWORD);
        let output = Command::new("bash").args(["-c", &call]).output().await.expect("bash and curl are there");
        assert!(output.status.success(), "{call}: {output:?}");
        let status = process.api.get("/setup/status").await.expect_status(200);
        assert_eq!(status.body["completed"], true);

        process.terminate().await;
        let _again = Process::start(folder.path(), &database, &Options::default()).await;
        assert_eq!(invitations(folder.path(), 2).await, lines, "a server that is set up invites nobody");
    }
}
