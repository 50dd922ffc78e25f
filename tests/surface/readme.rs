//! The guide of the README does what it says: its commands are run in their order, against a server and simulated routers.
//!
//! A block that cannot run here follows a comment `<!-- not run: why -->`; [`NOT_RUN`] lists them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use heddle_lab_openwrt::Router;
use tokio::process::Command;

use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Database, Options, Process, environment, heddle_binary, register};

const README: &str = include_str!("../../README.md");

/// Most words of a paragraph: more are not read.
const PARAGRAPH_WORDS_MAX: usize = 60;

/// The first lines of the blocks that no test runs.
const NOT_RUN: &[&str] = &[
    "cargo xtask run --demo",
    "git clone https://github.com/heddle-project/heddle && cd heddle",
    "cargo build --release --bin heddle",
    "heddle keys rotate",
    "zip='content-type: application/zip'",
    "plugin=\"$api/plugins/acme-tickets\"",
    "market=\"$api/marketplace/plugins\"",
];

#[derive(Debug)]
struct Block {
    /// Heading of the second level that it stands below.
    chapter: String,
    text: String,
    /// Why it cannot be run by a test.
    not_run: Option<String>,
}

/// The blocks of commands, in their order.
fn blocks() -> Vec<Block> {
    let (mut blocks, mut chapter, mut not_run) = (Vec::new(), String::new(), None);
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut chapter);
        } else if let Some(rest) = line.strip_prefix("<!-- not run: ") {
            not_run = rest.strip_suffix(" -->").map(str::to_owned);
        } else if line == "```sh" {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { chapter: chapter.clone(), text: text.join("\n"), not_run: not_run.take() });
        } else {
            assert!(
                !line.starts_with("    cargo") && !line.starts_with("    curl"),
                "commands stand in ```sh: {line}"
            );
        }
    }
    blocks
}

/// The commands of these chapters as one script that ends at the first failure.
fn script(chapters: &[&str]) -> String {
    let mut script = "set -euo pipefail\n".to_owned();
    for block in blocks().iter().filter(|block| block.not_run.is_none()) {
        if chapters.contains(&block.chapter.as_str()) {
            script.push_str("echo '---'\n");
            script.push_str(&block.text);
            script.push('\n');
        }
    }
    // A refusal of the server would go unnoticed otherwise; the guide shows two on purpose.
    script
        .replace("curl -s ", "curl -sS --fail-with-body ")
        .replace("| jq .error\n", "| jq .error || true\n")
        .replace("-d '{\"force\":true}' | jq .\n", "-d '{\"force\":true}' | jq . || true\n")
}

/// Runs a script in the environment that a reader of the guide has. Returns its output.
async fn follow(script: &str, folder: &Path) -> String {
    let programs = heddle_binary().parent().expect("the program is in a folder").display().to_string();
    let mut environment = environment(folder, &Database::Sqlite, &Options::default());
    environment.insert("PATH".to_owned(), format!("{programs}:/usr/local/bin:/usr/bin:/bin"));
    environment.insert("HOME".to_owned(), folder.display().to_string());
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).env_clear().envs(environment).current_dir(folder);
    let output = bash.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_mins(5), output).await.expect("the guide ends in time");
    let output = output.expect("bash starts");
    let (shown, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{shown}\n{errors}\nof\n{script}", output.status);
    shown.into_owned()
}

fn at(server: &Process, script: &str) -> String {
    script.replace("http://127.0.0.1:8080", server.api.base())
}

#[track_caller]
fn assert_shows(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "'{part}' is shown:\n{shown}");
    }
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let blocks = blocks();
    assert!(blocks.len() > 20, "{blocks:?}");
    let not_run: Vec<&str> = blocks
        .iter()
        .filter(|block| block.not_run.as_ref().is_some_and(|why| !why.is_empty()))
        .map(|block| block.text.lines().next().unwrap_or_default())
        .collect();
    assert_eq!(not_run, NOT_RUN);
    let run = ["Quick start", "Your first router", "Install", "Operate", "API tour"];
    for block in &blocks {
        assert!(run.contains(&block.chapter.as_str()), "no test runs the chapter of {block:?}");
    }
}

#[test]
fn paragraphs_are_short() {
    let mut is_code = false;
    for paragraph in README.split("\n\n") {
        let is_fenced = is_code || paragraph.starts_with("```");
        is_code ^= paragraph.matches("```").count() % 2 == 1;
        if is_fenced || paragraph.starts_with('|') || paragraph.starts_with("<!--") {
            continue;
        }
        for item in paragraph.split("\n- ") {
            let words = item.split_whitespace().count();
            assert!(words <= PARAGRAPH_WORDS_MAX, "{words} words: {item}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quick_start_works() {
    let folder = tempfile::tempdir().unwrap();
    let router = start_router().await;
    let server = Process::start(folder.path(), &Database::Sqlite, &Options::default()).await;
    // What `cargo xtask run --demo` sets up.
    let setup = serde_json::json!({
        "organization": { "name": "Demo" },
        "admin": { "username": "demo", "email": "demo@example.net", "password": "Heddle-Trial-2026!" },
        "site": { "name": "Lab" },
    });
    let setup = server.api.post("/setup/complete", &setup).await.expect_status(201).body;
    let server = server.with_token(setup["access_token"].as_str().unwrap());
    let controller = register(&server.api, &router.url(), ROUTER_PASSWORD).await;
    let path = format!("/controllers/{}/sync", controller["id"].as_str().unwrap());
    server.api.post(&path, &serde_json::json!({})).await.expect_status(202);

    let script =
        at(&server, &script(&["Quick start"])).replace("http://127.0.0.1:8182", &router.control_url());
    let shown = follow(&script, folder.path()).await;
    assert_shows(
        &shown,
        &["\"awaiting_confirm\"", "\"status\": \"applied\"", "Allow-HTTPS", "\"valid\": true", "\"uci\""],
    );
    let rules = router.config_text("firewall").unwrap_or_default();
    assert!(!rules.contains("Allow-HTTPS"), "it was taken back: {rules}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_router_is_set_up_operated_and_used_as_the_guide_says() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Router::builder().password(ROUTER_PASSWORD).boot_time(Duration::from_millis(300));
    let router = builder.tls().start().await;
    let server = Process::start(folder.path(), &Database::Sqlite, &Options::default()).await;
    let before = router.fingerprint();
    let script = at(&server, &script(&["Your first router", "Install", "Operate", "API tour"]))
        .replace("https://192.168.1.1", &router.url())
        .replace("ROUTER-PASSWORD", ROUTER_PASSWORD);
    let shown = follow(&script, folder.path()).await;
    let parts = [
        "\"completed\": true",
        "certificate_fingerprint",
        "\"ok\": true",
        "Block-Telnet",
        "\"discarded\"",
        "database: sound",
        "\"ready\"",
        "heddle_",
        "\"state\": \"enabled\"",
        "Branch office",
        "unknown field",
    ];
    assert_shows(&shown, &parts);
    assert_eq!(router.fingerprint(), before, "nothing was written to the router");
}
