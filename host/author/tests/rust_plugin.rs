//! A plugin in Rust, from an empty folder to its first call, with the program that authors have.
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod fake;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heddle_marketplace::{PublisherKey, Verified, parse_trusted_keys};
use serde_json::{Value, json};

use crate::fake::Fake;

/// The example of this crate, which cargo builds with its tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples/heddle-plugin")
}

/// Runs a command of authors in a folder.
fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    finished(Command::new(program()).args(arguments).current_dir(folder))
}

fn finished(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
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
    passes_its_own_tests(&plugin);
    is_called_and_packed(&plugin);
    std::fs::write(plugin.join("manifest.json"), &manifest).unwrap();
    is_sent_to_a_server(&plugin);
    std::fs::write(plugin.join("manifest.json"), manifest).unwrap();
    is_recorded_and_replayed(&plugin);
}

/// The tests that `new` writes, native and recorded.
fn passes_its_own_tests(plugin: &Path) {
    let (is_done, text) =
        finished(Command::new("cargo").arg("test").current_dir(plugin).env_remove("CARGO_TARGET_DIR"));
    assert!(is_done && text.contains("1 passed"), "{text}");
    let text = works(plugin, &["test"]);
    assert!(text.contains("greet: as expected"), "{text}");
    let path = plugin.join("calls/greet.json");
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        written.replace("\"stored\": { \"Ada\": \"3\" }", "\"stored\": { \"Ada\": \"4\" }"),
    )
    .unwrap();
    fails(plugin, &["test"], "found stored:    {\"Ada\":\"3\"}");
    std::fs::write(&path, written).unwrap();
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

    fails(plugin, &["call", "bow"], "it has the actions greet");
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

    with_manifest(plugin, |manifest| manifest["publisher"] = json!("acme"));
    works(plugin, &["check"]);
    works(plugin, &ada);

    with_manifest(plugin, |manifest| manifest["actions"] = serde_json::json!([]));
    fails(plugin, &["check"], "the manifest declares no actions");
    with_manifest(plugin, |manifest| manifest["colour"] = serde_json::json!("green"));
    fails(plugin, &["check"], "colour");
}

/// What a server is sent by `dev`: the package, the agreement to what was shown, the settings, and the call.
fn is_sent_to_a_server(plugin: &Path) {
    let server = Fake::start(|sent| match sent.line.as_str() {
        "POST /api/v1/plugins/install" => {
            json!({ "id": "greeter", "state": "awaiting_consent", "reason": "new" })
        }
        "GET /api/v1/plugins/greeter/consent" => {
            json!({ "grant_hash": "9a", "items": [{ "risk": "low", "text": "keeps values" }] })
        }
        "POST /api/v1/plugins/greeter/consent" => json!({ "id": "greeter", "state": "active" }),
        "GET /api/v1/plugins/greeter/organization" => {
            json!({ "enabled": false, "settings": { "greeting": "Old", "other": 1 } })
        }
        "PUT /api/v1/plugins/greeter/organization" => json!({}),
        "POST /api/v1/actions" => {
            json!({ "state": "succeeded", "steps": [{ "success": true, "output": { "text": "Hi, Ada!" } }] })
        }
        other => panic!("{other}"),
    });
    let arguments =
        ["dev", "--once", "--url", &server.url, "--trusted-keys", "trusted.json", "--setting", "greeting=Hi"];
    let dev = |more: &[&str]| {
        let mut command = Command::new(program());
        command.args(arguments).args(more).current_dir(plugin).env_remove("HEDDLE_TOKEN");
        command
    };
    let (is_done, text) = finished(&mut dev(&[]));
    assert!(!is_done && text.contains("--token-file") && server.sent().is_empty(), "{text}");

    // Without the word of its author nothing is agreed to.
    let (is_done, text) = finished(dev(&[]).env("HEDDLE_TOKEN", "of-the-variable"));
    assert!(!is_done && text.contains("low risk: keeps values") && text.contains("--yes"), "{text}");
    let sent = server.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(
        sent.iter().all(|one| one.headers.contains("authorization: Bearer of-the-variable\n")),
        "{sent:?}"
    );

    std::fs::write(plugin.join("token"), "of-the-file\n").unwrap();
    let more = ["--yes", "--token-file", "token", "--call", "greet", "--params", r#"{"name": "Ada"}"#];
    let (is_done, text) = finished(dev(&more).env("HEDDLE_TOKEN", "of-the-variable"));
    assert!(is_done && text.contains("Hi, Ada!") && !text.contains("of-the-"), "{text}");
    let sent = server.sent();
    assert!(sent.iter().all(|one| one.headers.contains("authorization: Bearer of-the-file\n")), "{sent:?}");
    let [package, _, consent, _, settings, call] = &sent[..] else { panic!("{sent:?}") };
    assert!(package.headers.contains("content-type: application/zip\n"), "{package:?}");
    let trusted = parse_trusted_keys(&std::fs::read(plugin.join("trusted.json")).unwrap()).unwrap();
    let opened = Verified::open_archive(&package.body, &trusted).unwrap();
    let version = opened.manifest().version.to_string();
    assert!(version.starts_with("0.1.1-dev."), "{version}");
    assert_eq!(consent.json(), json!({ "grant_hash": "9a" }));
    assert_eq!(settings.json(), json!({ "enabled": true, "settings": { "greeting": "Hi", "other": 1 } }));
    assert_eq!(call.json(), json!({ "operation_id": "plugin.greeter.greet", "params": { "name": "Ada" } }));
}

/// The source of a plugin that asks its target whom it greets, with a secret at each place that one can have.
const ASKS: &str = r#"
use heddle_sdk::plugin::{Action, Entry, Host, Plugin, action};
use heddle_sdk::{Auth, Body, Fault, Method, Place, Request, fault, register_plugin};
use serde_json::{Value, json};

struct Asker;
impl Plugin for Asker {
    const ACTIONS: &'static [Entry] = &[action::<Greet>()];
}
register_plugin!(Asker);

fn key(places: [Place; 2]) -> Auth {
    Auth::Inject(places.into_iter().map(|place| (place, "key".into())).collect())
}

struct Greet;
impl Action for Greet {
    const ID: &'static str = "greet";
    type Params = Value;
    type Output = Value;
    fn run(host: &dyn Host, params: Value) -> Result<Value, Fault> {
        if params["name"] == "panic" {
            panic!("as it was asked to");
        }
        let header = Place::Header(("x-key".to_owned(), String::new()));
        let request = Request::new(Method::Post, "/v1/name?of=me").with_json(&json!({ "n": 1, "auth": {} }));
        host.send("api", request, key([Place::Query("key".to_owned()), Place::JsonPointer("/auth/key".to_owned())]))?;
        let mut request = Request::new(Method::Post, "/v1/form");
        request.body = Body::Form(vec![("a".to_owned(), "b".to_owned())]);
        let answer = host.send("api", request, key([header, Place::FormField("key".to_owned())]))?;
        let body: Value =
            serde_json::from_slice(&answer.body).map_err(|error| fault::generic(error.to_string()))?;
        Ok(json!({ "text": body["name"], "times": answer.status }))
    }
}
"#;

const SECRET: &str = "canary-5e1f";

/// A call is recorded without its secret, and needs no target from then on.
fn is_recorded_and_replayed(plugin: &Path) {
    std::fs::remove_dir_all(plugin.join("calls")).unwrap();
    std::fs::write(plugin.join("src/lib.rs"), ASKS).unwrap();
    let target = Fake::start(|_| json!({ "name": "Bo" }));
    with_manifest(plugin, |manifest| {
        manifest["capabilities"] = json!({
            "http": [{ "name": "api", "origin": target.url, "methods": ["POST"], "paths": ["/v1/*"], "private": true }],
            "secrets": [{
                "name": "key", "target": "api", "places": ["header:x-key", "query:key", "json:/auth/key", "form:key"],
            }],
        });
        manifest["actions"][0]["effect"] = json!("outward");
    });
    fails(plugin, &["test"], "no recorded call");
    let asked = |name| ["greet", "--params", name, "--secret", "key=canary-5e1f"];
    let (bo, panics) = (asked(r#"{"name": "x"}"#), asked(r#"{"name": "panic"}"#));
    fails(plugin, &[&["record", "panic"], &panics[..]].concat(), "the host ended it");
    assert!(!plugin.join("calls/panic.json").exists());
    let text = works(plugin, &[&["record", "bo"], &bo[..]].concat());
    assert!(
        text.contains("http: POST /v1/name?of=me {\"") && text.contains("http: POST /v1/form: 200"),
        "{text}"
    );
    let sent = target.sent();
    let [named, form] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(named.line, format!("POST /v1/name?of=me&key={SECRET}"));
    assert_eq!(named.json(), json!({ "n": 1, "auth": { "key": SECRET } }));
    assert!(form.headers.contains(&format!("x-key: {SECRET}\n")), "{form:?}");
    assert_eq!(String::from_utf8_lossy(&form.body), format!("a=b&key={SECRET}"));
    let path = plugin.join("calls/bo.json");
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(SECRET) && !recorded.contains(SECRET), "{text} {recorded}");
    fails(plugin, &[&["record", "bo"], &bo[..]].concat(), "is there already");

    works(plugin, &["test"]);
    assert!(target.sent().is_empty(), "a recorded call asks no target");
    for (from, to, reason) in [
        ("\"text\": \"Bo\"", "\"text\": \"Al\"", "expected: {\"output\":{\"text\":\"Al\""),
        ("/v1/name?of=me", "/v1/other", "requests that were not recorded: POST /v1/name"),
        ("/v1/name?of=me", "/v1/other", "recorded requests that were not made: POST /v1/other"),
        ("\"n\": 1", "\"n\": 2", "requests that were not recorded: POST /v1/name"),
        ("\"b\"", "\"c\"", "requests that were not recorded: POST /v1/form"),
        ("\"output\":", "\"outcome\":", "unknown key 'outcome'"),
    ] {
        assert!(recorded.contains(from), "{from}: {recorded}");
        std::fs::write(&path, recorded.replace(from, to)).unwrap();
        fails(plugin, &["test"], reason);
    }
    with_manifest(plugin, |manifest| manifest["capabilities"]["http"] = json!(["api"]));
    fails(plugin, &["test"], "'capabilities' of manifest.json");
}
