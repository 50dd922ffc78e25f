//! A plugin in Rust, from an empty folder to its first call, with the program that authors have.
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heddle_marketplace::{PublisherKey, Verified};
use serde_json::Value;

/// The example of this crate, which cargo builds with its tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples/heddle-plugin")
}

/// Runs a command of authors in a folder.
fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } =
        Command::new(program()).args(arguments).current_dir(folder).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.success(), text)
}

#[track_caller]
fn works(folder: &Path, arguments: &[&str]) -> String {
    let (is_done, text) = run(folder, arguments);
    assert!(is_done, "{arguments:?}: {text}");
    text
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str], reason: &str) {
    let (is_done, text) = run(folder, arguments);
    assert!(!is_done && text.contains(reason), "{arguments:?}: {text}");
}

/// Changes the manifest of the plugin.
fn with_manifest(plugin: &Path, change: impl FnOnce(&mut Value)) {
    let path = plugin.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    std::fs::write(path, manifest.to_string()).unwrap();
}

/// The answer among the lines that `call` prints.
fn answer(text: &str) -> Value {
    let (begin, end) = (text.find("\n{").unwrap(), text.rfind("\n}").unwrap());
    serde_json::from_str(&text[begin..end + 2]).unwrap()
}

/// One test: what the SDK needs takes most of a minute to build, once for each folder.
#[test]
fn an_empty_folder_becomes_a_plugin_that_is_called_packed_refused_for_what_it_lacks_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    works(folder.path(), &["new", "greeter"]);
    let plugin = folder.path().join("greeter");
    works(&plugin, &["build"]);
    let manifest = std::fs::read(plugin.join("manifest.json")).unwrap();
    is_called_and_packed(&plugin);
    std::fs::write(plugin.join("manifest.json"), manifest).unwrap();
    is_recorded_and_replayed(&plugin);
}

/// Each answer and each refusal is the one of a server.
fn is_called_and_packed(plugin: &Path) {
    let words = works(plugin, &["check"]);
    assert!(words.contains("keeps up to 65536 bytes") && words.contains("action 'greet'"), "{words}");

    let ada = ["call", "greet", "--params", r#"{"name": "Ada"}"#];
    let text = works(plugin, &ada);
    assert_eq!(answer(&text), serde_json::json!({ "text": "Good day, Ada!", "times": 1 }));
    assert!(text.contains("kv: set 'Ada' to 1 bytes"), "{text}");
    let again = works(plugin, &[&ada[..], &["--stored", "Ada=41", "--setting", "greeting=Hi"]].concat());
    assert_eq!(answer(&again), serde_json::json!({ "text": "Hi, Ada!", "times": 42 }));

    fails(plugin, &["call", "bow"], "it has: greet");
    fails(plugin, &["call", "greet"], "\"name\" is a required property");
    fails(plugin, &[&ada[..], &["--setting", "greting=Hi"]].concat(), "settings");
    fails(plugin, &[&ada[..], &["--secret", "key=x"]].concat(), "declares no secret 'key'");

    works(plugin, &["pack"]);
    let key = PublisherKey::load(&plugin.join(".heddle/development.key")).unwrap();
    let archive = std::fs::read(plugin.join("dist/greeter-0.1.0.zip")).unwrap();
    let package = Verified::open_archive(&archive, &[key.trusted_for_own()]).unwrap();
    assert_eq!(
        (package.manifest().id.as_str(), package.manifest().publisher.as_str()),
        ("greeter", "greeter")
    );

    with_manifest(plugin, |manifest| manifest["actions"] = serde_json::json!([]));
    fails(plugin, &["check"], "the manifest declares no actions");
    with_manifest(plugin, |manifest| manifest["colour"] = serde_json::json!("green"));
    fails(plugin, &["check"], "colour");
}

/// A target of the plugin: answers so many requests, and returns their heads.
fn target(requests: usize) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\
                      connection: close\r\n\r\n{\"name\":\"Bo\"}";
        let mut heads = Vec::new();
        for connection in listener.incoming().take(requests) {
            let mut connection = connection.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            connection.write_all(answer.as_bytes()).unwrap();
            heads.push(String::from_utf8(head).unwrap());
        }
        heads
    };
    (url, std::thread::spawn(serve))
}

/// The source of a plugin that asks its target whom it greets, with a secret.
const ASKS: &str = r#"
use heddle_sdk::plugin::{Action, Entry, Host, Plugin, action};
use heddle_sdk::{Auth, Fault, Place, Request, fault, register_plugin};
use serde_json::Value;

struct Asker;
impl Plugin for Asker {
    const ACTIONS: &'static [Entry] = &[action::<Greet>()];
}
register_plugin!(Asker);

struct Greet;
impl Action for Greet {
    const ID: &'static str = "greet";
    type Params = Value;
    type Output = Value;
    fn run(host: &dyn Host, _: Value) -> Result<Value, Fault> {
        let place = Place::Header(("x-key".to_owned(), String::new()));
        let auth = Auth::Inject(vec![(place, "key".into())]);
        let answer = host.send("api", Request::get("/v1/name"), auth)?;
        let body: Value =
            serde_json::from_slice(&answer.body).map_err(|error| fault::generic(error.to_string()))?;
        Ok(serde_json::json!({ "text": body["name"], "times": answer.status }))
    }
}
"#;

/// A call is recorded without its secret, and needs no target from then on.
fn is_recorded_and_replayed(plugin: &Path) {
    std::fs::remove_dir_all(plugin.join("calls")).unwrap();
    std::fs::write(plugin.join("src/lib.rs"), ASKS).unwrap();
    let (url, served) = target(1);
    with_manifest(plugin, |manifest| {
        manifest["capabilities"] = serde_json::json!({
            "http": [{ "name": "api", "origin": url, "methods": ["GET"], "paths": ["/v1/*"], "private": true }],
            "secrets": [{ "name": "key", "target": "api", "places": ["header:x-key"] }],
        });
    });
    fails(plugin, &["test"], "no recorded call");
    let call = ["greet", "--params", r#"{"name": "x"}"#, "--secret", "key=canary-5e1f"];
    let text = works(plugin, &[&["record", "bo"], &call[..]].concat());
    assert!(text.contains("http: GET /v1/name: 200"), "{text}");
    assert!(served.join().unwrap()[0].contains("x-key: canary-5e1f"), "the target gets the secret");
    let path = plugin.join("calls/bo.json");
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("canary-5e1f") && !recorded.contains("canary-5e1f"), "{text} {recorded}");
    fails(plugin, &[&["record", "bo"], &call[..]].concat(), "is there already");

    works(plugin, &["test"]);
    std::fs::write(&path, recorded.replace("\"text\": \"Bo\"", "\"text\": \"Al\"")).unwrap();
    fails(plugin, &["test"], "expected: {\"output\":{\"text\":\"Al\"");
    std::fs::write(&path, recorded.replace("/v1/name", "/v1/other")).unwrap();
    fails(plugin, &["test"], "requests that were not recorded: GET /v1/name");
}
