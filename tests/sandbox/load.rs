//! What is refused before any of it runs: packages, imports, code.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use heddle_core::Clock;
use heddle_marketplace::{PackError, PackageError, Verified};
use serde_json::json;

use super::package::{self, hostile, key, manifest, manifest_with, manifest_with_login, packed};
use super::{CACHE_KEY, Lab, load, objects, shared_code, start_runtime, start_runtime_with};
use crate::support::heddle_binary;

/// What the runtime says to a component of this text.
async fn refusal_of(component: &str) -> String {
    let bytes = wat::parse_str(component).expect("the text is a component");
    let runtime = start_runtime(&shared_code(), &[], &Clock::default());
    load(&runtime, &manifest(), &bytes).await.expect_err(component)
}

fn importing(interface: &str) -> String {
    format!(r#"(component (import "{interface}" (instance (export "f" (func)))))"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn system_interfaces_are_refused_by_name() {
    for interface in [
        "wasi:sockets/tcp@0.2.6",
        "wasi:sockets/ip-name-lookup@0.2.6",
        "wasi:http/outgoing-handler@0.2.6",
        "wasi:filesystem/preopens@0.2.6",
        "wasi:cli/environment@0.2.6",
        "heddle:host/shell@1.0.0",
        "acme:any/thing",
    ] {
        let refusal = refusal_of(&importing(interface)).await;
        assert!(refusal.contains(interface), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_the_manifest_does_not_ask_for_is_refused() {
    let runtime = start_runtime(&shared_code(), &[], &Clock::default());
    for (capability, interface) in
        [("controller-http", "heddle:host/http@1.0.0"), ("secrets", "heddle:host/secrets@1.0.0")]
    {
        let without = manifest_with(&format!("/capabilities/{capability}"), json!(false));
        let refusal = load(&runtime, &without, &hostile()).await.unwrap_err();
        assert!(refusal.contains(interface), "{refusal}");
        assert!(refusal.contains(&format!("'{capability}'")), "{refusal}");
    }
    assert!(runtime.adapters().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_exports_nothing_is_no_adapter() {
    let refusal = refusal_of("(component)").await;
    assert!(refusal.contains("interface"), "{refusal}");
}

#[test]
fn features_of_another_vendor_are_refused() {
    let error = packed(&manifest_with("/id", json!("peaceful")), &hostile()).unwrap_err().to_string();
    assert!(error.contains("'hostile.lab.thing' does not begin with 'peaceful.'"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_gets_its_own_bindings_and_no_others() {
    let lab = Lab::start().await;
    let seen = objects(&lab.adapter, &lab.call(), "bindings").await.unwrap();
    let expected =
        json!({ "kind": { "says": "calm" }, "feature": { "says": "thing" }, "other": [null, null, null] });
    assert_eq!(seen, expected);
}

#[test]
fn a_core_module_is_no_component() {
    let module = wat::parse_str("(module)").unwrap();
    let error = packed(&manifest(), &module).unwrap_err();
    assert!(matches!(error, PackError::Refused(PackageError::CoreModule(_))), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compiled_code_is_no_component() {
    let lab = Lab::start().await;
    // The host's own code, without its authentication: it would fit the engine.
    let entry = std::fs::read(entry(&shared_code(), lab.adapter.component_sha256())).unwrap();
    let error = packed(&manifest(), &entry[CACHE_KEY.len()..]).unwrap_err();
    assert!(matches!(error, PackError::Refused(PackageError::Precompiled(_))), "{error}");
}

#[test]
fn a_changed_byte_of_the_component_is_refused_before_it_is_compiled() {
    let files = packed(&manifest(), &hostile()).unwrap();
    let length = files["component.wasm"].len();
    for at in [8, length / 2, length - 1] {
        let mut changed = files.clone();
        changed.get_mut("component.wasm").unwrap()[at] ^= 1;
        let error = Verified::from_files(changed, &[key().trusted()]).unwrap_err();
        assert!(matches!(error, PackageError::FileHash(_)), "{error}");
    }
}

#[test]
fn a_package_without_a_trusted_signature_is_refused() {
    let mut files = packed(&manifest(), &hostile()).unwrap();
    let stranger = heddle_marketplace::PublisherKey::generate("acme").unwrap();
    let error = Verified::from_files(files.clone(), &[stranger.trusted()]).unwrap_err();
    assert!(matches!(error, PackageError::UntrustedKey(_)), "{error}");
    files.remove(heddle_marketplace::SIGNATURE);
    let error = Verified::from_files(files, &[key().trusted()]).unwrap_err();
    assert!(matches!(error, PackageError::Missing(_)), "{error}");
}

#[test]
fn a_manifest_with_more_rights_than_were_signed_is_refused() {
    let mut files = packed(&manifest_with("/capabilities/secrets", json!(false)), &hostile()).unwrap();
    let more = packed(&manifest(), &hostile()).unwrap();
    files.insert(heddle_marketplace::MANIFEST.to_owned(), more[heddle_marketplace::MANIFEST].clone());
    let error = Verified::from_files(files, &[key().trusted()]).unwrap_err();
    assert!(matches!(error, PackageError::BadSignature(_)), "{error}");
}

/// Two more "login" steps changed a router's host name; neither they nor a hidden logout pass now.
#[test]
fn a_login_with_steps_that_write_is_refused_before_it_runs() {
    let mut manifest = manifest_with_login();
    let write = |op: &str| {
        json!({
            "request": { "method": "POST", "path": "/write", "json": { "op": op, "token": "{{session.token}}" } },
            "expect": { "status": [200] },
        })
    };
    let login = manifest["auth"]["main"]["login"].as_array_mut().unwrap();
    login.extend([write("set"), write("commit")]);
    let error = packed(&manifest, &hostile()).unwrap_err().to_string();
    assert!(error.contains("login step 2 of 3 (POST /write)") && error.contains("effect"), "{error}");

    let mut manifest = manifest_with_login();
    manifest["auth"]["main"]["logout"] = json!({ "method": "POST", "path": "/write", "json": {} });
    let error = packed(&manifest, &hostile()).unwrap_err().to_string();
    assert!(error.contains("logout (POST /write)"), "{error}");
}

/// A rule without a condition, on the path of the login, made everything a read.
#[test]
fn a_rule_that_makes_every_request_a_read_is_refused() {
    for rule in [
        json!({ "method": "POST", "path": "/login" }),
        json!({ "method": "POST", "path": "/login", "only-reads": true }),
        json!({ "method": "POST", "path": "/*", "json": { "/user": ["root"] } }),
    ] {
        let mut manifest = manifest_with_login();
        manifest["reads"].as_array_mut().unwrap().push(rule.clone());
        let error = packed(&manifest, &hostile()).unwrap_err();
        assert!(matches!(error, PackError::Refused(PackageError::ReadRule { .. })), "{rule}: {error}");
    }
}

/// The one entry of the code cache for a component.
fn entry(code: &Path, sha256: &str) -> PathBuf {
    let mut entries = std::fs::read_dir(code.join(sha256)).expect("the component was compiled");
    entries.next().expect("it has an entry").expect("the folder can be read").path()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_was_changed_on_disk_is_compiled_again_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start().await;
    let sha256 = lab.adapter.component_sha256();
    let genuine = std::fs::read(entry(&shared_code(), sha256)).unwrap();
    let name = entry(&shared_code(), sha256).file_name().unwrap().to_owned();
    let own = folder.path().join(sha256).join(name);
    std::fs::create_dir(folder.path().join(sha256)).unwrap();
    let mut changed = genuine.clone();
    changed[genuine.len() / 2] ^= 1;
    std::fs::write(&own, &changed).unwrap();

    let runtime = start_runtime(folder.path(), &["127.0.0.0/8"], &Clock::default());
    let adapter = load(&runtime, &manifest(), &hostile()).await.unwrap();
    assert_eq!(objects(&adapter, &lab.call(), "calm").await.unwrap()["status"], 200);
    assert!(std::fs::read(&own).unwrap() != changed, "the entry was written anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_another_server_compiled_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = wat::parse_str("(component)").unwrap();
    let verified = package::verified(&manifest(), &bytes);
    let mut codes = Vec::new();
    for key in [CACHE_KEY, [8; 32]] {
        let runtime = start_runtime_with(folder.path(), key, &[], &Clock::default());
        // Refused for its exports, which are looked at when its code was loaded.
        load(&runtime, &manifest(), &bytes).await.unwrap_err();
        codes.push(std::fs::read(entry(folder.path(), verified.component_sha256())).unwrap());
    }
    assert_ne!(codes[0][..32], codes[1][..32], "the entry carries the second server's authentication");
    assert_eq!(codes[0][32..], codes[1][32..]);
}

#[test]
fn a_child_that_compiles_ends_with_its_server() {
    // A shell takes the server's place, and the child waits for a component that never comes.
    let script = "exec 3<&0; \"$0\" plugin-compile <&3 >/dev/null & echo $!; wait";
    let mut parent = Command::new("sh")
        .args([OsStr::new("-c"), OsStr::new(script), heddle_binary().as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let process = PathBuf::from(format!("/proc/{}", line.trim()));
    let is_there = || std::fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let looks_after_its_parent = || {
        let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
        names.into_iter().any(|name| name.trim() == "parent")
    };
    while !looks_after_its_parent() {
        assert!(is_there());
        std::thread::sleep(Duration::from_millis(10));
    }
    // What is written to the child stays open.
    let _open = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    while is_there() {
        std::thread::sleep(Duration::from_millis(50));
    }
}
