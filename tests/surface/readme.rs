//! The guide of the README does what it says: its commands are run in their order, against a server and simulated routers.
//!
//! A block that cannot run here follows a comment `<!-- not run: why -->`; [`NOT_RUN`] lists them.

mod acme;
mod reader;

use std::path::Path;
use std::time::Duration;

use heddle_lab_openwrt::Router;

use self::acme::Acme;
use self::reader::{Reader, Shown};
use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Database, ENCRYPTION_KEY, NEXT_ENCRYPTION_KEY, Options, Process, register};

const README: &str = include_str!("../../README.md");

/// Most words of a paragraph: more are not read.
const PARAGRAPH_WORDS_MAX: usize = 60;

/// The first lines of the blocks that no test runs.
const NOT_RUN: &[&str] = &[
    "cargo xtask run --demo",
    "git clone https://github.com/heddle-project/heddle && cd heddle",
    "cargo build --release --bin heddle",
];

/// The block between two restarts.
const ROTATION: &str = "heddle keys rotate";

#[derive(Debug)]
struct Block {
    /// Heading of the second level that it stands below.
    chapter: String,
    text: String,
    /// Why it cannot be run by a test.
    not_run: Option<String>,
}

impl Block {
    /// Commands that are not in the guide.
    fn of_test(text: &str) -> Self {
        Self { chapter: String::new(), text: text.to_owned(), not_run: None }
    }
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

/// The blocks of these chapters that are run.
fn run_of(chapters: &[&str]) -> Vec<Block> {
    let is_run = |block: &Block| block.not_run.is_none() && chapters.contains(&block.chapter.as_str());
    blocks().into_iter().filter(is_run).collect()
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
    let options = Options::default();
    let server = Process::start(folder.path(), &Database::Sqlite, &options).await;
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

    let reader =
        Reader { folder: folder.path(), places: vec![("http://127.0.0.1:8182", router.control_url())] };
    let shown = reader.follow(&server, &options, &run_of(&["Quick start"])).await;
    shown.has("jq '.plan", &["\"uci\"", "Allow-HTTPS"]);
    shown.has(
        "curl -s $api/gateway-vpn/changes/$id/apply",
        &["\"awaiting_confirm\"", "\"status\": \"applied\""],
    );
    shown.has("curl -s http://127.0.0.1:8182/configs/firewall", &["Allow-HTTPS", "\"valid\": true"]);
    shown.has("inverse=", &["\"applied\""]);
    let rules = router.config_text("firewall").unwrap_or_default();
    assert!(!rules.contains("Allow-HTTPS"), "it was taken back: {rules}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_router_is_set_up_operated_and_used_as_the_guide_says() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Router::builder().password(ROUTER_PASSWORD).boot_time(Duration::from_millis(300));
    let router = builder.tls().start().await;
    let acme = Acme::new(folder.path());
    let options = acme.options();
    let places = vec![("https://192.168.1.1", router.url()), ("ROUTER-PASSWORD", ROUTER_PASSWORD.to_owned())];
    let reader = Reader { folder: folder.path(), places };
    let blocks = run_of(&["Your first router", "Install", "Operate", "API tour"]);
    let rotation = blocks.iter().position(|block| block.text == ROTATION).unwrap();
    let (before, after) = (&blocks[..rotation], &blocks[rotation + 1..]);
    let untouched = router.fingerprint();

    let mut server = Process::start(folder.path(), &Database::Sqlite, &options).await;
    assert_is_set_up(&reader.follow(&server, &options, before).await);

    // What the guide says around the rotation: restart with both keys, run it, restart without the previous key.
    let options = options.with("ENCRYPTION_KEY", NEXT_ENCRYPTION_KEY);
    let both = options.clone().with("ENCRYPTION_KEY_PREVIOUS", ENCRYPTION_KEY);
    restart(&mut server, folder.path(), &both).await;
    let rotated = reader.follow(&server, &both, &blocks[rotation..=rotation]).await;
    rotated
        .has(ROTATION, &["rows were sealed with the current key", "ENCRYPTION_KEY_PREVIOUS can be removed"]);
    assert!(!rotated.by(ROTATION).starts_with("0 rows"), "{}", rotated.by(ROTATION));
    restart(&mut server, folder.path(), &options).await;
    let login = Block::of_test("curl -s -X POST $api/controllers/$controller/test -H \"$auth\" | jq .ok");
    let opened = reader.follow(&server, &options, &[login]).await;
    assert_eq!(opened.by("curl").trim_end(), "true", "the router's login opens with the new key alone");

    let shown = reader.follow(&server, &options, after).await;
    assert_is_operated(&shown);
    assert_packages_are_in_use(&shown);
    assert_eq!(router.fingerprint(), untouched, "nothing was written to the router");
}

/// Ends the server and starts it with these settings on the same data.
async fn restart(server: &mut Process, folder: &Path, options: &Options) {
    server.terminate().await;
    *server = Process::start(folder, &Database::Sqlite, options).await;
}

#[track_caller]
fn assert_is_set_up(shown: &Shown) {
    shown.has("api=", &["\"completed\": true"]);
    shown.has("router=", &["\"ok\": false", "\"certificate_fingerprint\": \""]);
    shown.has("controller=", &["\"ok\": true"]);
    shown.has("change=", &["Block-Telnet"]);
    shown.has("curl -s -X POST $api/gateway-vpn/changes/$(jq", &["\"discarded\""]);
    shown.has("heddle migrate", &["database: sound", "acme-switch 1.0.0 is verified"]);
}

#[track_caller]
fn assert_is_operated(shown: &Shown) {
    shown.has("curl -s http://127.0.0.1:8080/api/v1/health/ready", &["\"ready\"", "heddle_subsystem_up"]);
    shown.has("curl -s $api/fabric/connections", &["\"state\": \"enabled\""]);
    shown.has("site=", &["Branch office"]);
    shown.has("curl -s $api/sites", &["unknown field"]);
}

#[track_caller]
fn assert_packages_are_in_use(shown: &Shown) {
    // The adapter: judged against the version that serves, installed, and rolled back to that version.
    let adapter =
        ["counts as a read: POST /read", "\"version\": \"1.0.0\"", "\"installed\"", "\"version\": \"1.1.0\""];
    shown.has("zip=", &adapter);
    shown.has("zip=", &["\"installed_by\": \"admin\""]);
    assert_eq!(shown.by("zip=").lines().next_back(), Some("\"1.0.0\""));
    // The plugin: read, agreed to, and set up all but its secret, which is sent last.
    let asked = ["\"awaiting_consent\"", "\"acme\"", "setting 'server-url'", "puts the secret 'api-key'"];
    shown.has("plugin=", &asked);
    shown.has("plugin=", &["\"active\"", "[\n  \"api-key\"\n]"]);
    // The catalogue: what is new waits for consent, and an update that may do nothing new serves at once.
    shown.has(
        "market=",
        &["\"state\": \"updated\"", "\"id\": \"grafana-annotations\"", "puts the secret 'token'"],
    );
    shown.has("market=", &["\"version\": \"0.1.0\"", "\"state\": \"awaiting_consent\""]);
    let updated = [
        "\"installed_version\": \"1.0.0\"",
        "\"has_update\": true",
        "\"version\": \"1.1.0\"",
        "\"state\": \"active\"",
    ];
    shown.has("curl -s \"$market?installed=true\"", &updated);
}
