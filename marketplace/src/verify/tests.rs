//! Every way to tamper with a package, and its refusal.

use ed25519_dalek::SigningKey;
use serde_json::{Value, json};

use super::*;
use crate::keys::PublisherKey;
use crate::{pack, sign, write_dir};

type Files = BTreeMap<String, Vec<u8>>;

fn key(seed: u8) -> PublisherKey {
    PublisherKey::new("acme", SigningKey::from_bytes(&[seed; 32])).unwrap()
}

fn template() -> Value {
    json!({
        "schema": 1, "id": "acme-switch", "version": "1.0.0", "kind": "adapter", "api": "1.0",
        "name": "ACME switches", "publisher": "acme", "license": "Apache-2.0", "component": "component.wasm",
        "limits": { "cpu-ms": 200 },
        "config-schema": {
            "type": "object", "properties": { "port": { "$ref": "#/$defs/port" } }, "$defs": { "port": { "type": "integer" } }
        },
        "auth": { "main": {
            "login": [{
                "request": { "method": "POST", "path": "/login", "effect": "session", "json": { "user": "{{secret.username}}" } },
                "expect": { "status": [200] },
                "capture": [{ "as": "token", "from": { "json": "/token" } }]
            }],
            "apply": [{ "to": { "header": "X-Token" }, "value": "{{session.token}}" }],
            "ttl-s": 300,
            "logout": { "method": "POST", "path": "/logout", "effect": "session", "form": { "t": "{{session.token}}" } }
        } },
        "reads": [{ "method": "POST", "path": "/api/*/query", "json": { "/op": ["get"] } }]
    })
}

fn contents() -> Files {
    BTreeMap::from([
        ("component.wasm".to_owned(), b"\0asm\x0d\0\x01\0body".to_vec()),
        ("assets/icon.svg".to_owned(), b"<svg/>".to_vec()),
        (DESCRIPTION.to_owned(), br#"{"areas": [{"id": "vlan", "title": "VLANs"}]}"#.to_vec()),
    ])
}

fn package() -> Files {
    pack(template().to_string().as_bytes(), contents(), &key(1)).unwrap()
}

/// The package with this manifest text, signed properly.
fn resigned(text: &[u8]) -> Files {
    let mut files = package();
    files.insert(SIGNATURE.to_owned(), sign(text, key(1).signing()));
    files.insert(MANIFEST.to_owned(), text.to_vec());
    files
}

fn complete() -> Value {
    serde_json::from_slice(&package()[MANIFEST]).unwrap()
}

fn open(files: Files) -> Result<Verified, PackageError> {
    Verified::from_files(files, &[key(1).trusted()])
}

#[track_caller]
fn refused(files: Files, expected: &str) {
    let error = open(files).expect_err(expected);
    let shown = format!("{error:?}");
    assert!(shown.starts_with(expected), "expected {expected}, got {shown}: {error}");
}

/// A signed manifest with this one value changed is refused so.
#[track_caller]
fn rule(pointer: &str, value: Value, expected: &str) {
    let mut manifest = complete();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let parent = manifest.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        _ => parent[last] = value,
    }
    refused(resigned(manifest.to_string().as_bytes()), expected);
}

#[test]
fn sound_package_is_accepted_from_memory_and_from_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acme-switch");
    write_dir(&package(), &path).unwrap();
    write_dir(&package(), &path).unwrap();
    let opened = Verified::open_dir(&path, &[key(2).trusted(), key(1).trusted()]).unwrap();
    assert_eq!(opened.manifest().id, "acme-switch");
    assert_eq!(opened.component(), contents()["component.wasm"]);
    assert_eq!(opened.key_ids(), [key(1).trusted().key_id()]);
    assert_eq!(open(package()).unwrap().manifest_sha256(), opened.manifest_sha256());
}

#[test]
fn a_changed_byte_in_any_file_is_refused() {
    for (name, expected) in [
        (MANIFEST, "BadSignature"),
        (SIGNATURE, "SignatureFormat"),
        ("component.wasm", "FileHash"),
        ("assets/icon.svg", "FileHash"),
    ] {
        let mut files = package();
        files.get_mut(name).unwrap()[0] ^= 1;
        refused(files, expected);
    }
}

#[test]
fn every_byte_of_the_manifest_is_covered_by_the_signature() {
    let files = package();
    for at in 0..files[MANIFEST].len() {
        let mut changed = files.clone();
        changed.get_mut(MANIFEST).unwrap()[at] ^= 1 << (at % 8);
        refused(changed, "BadSignature");
    }
}

#[test]
fn every_byte_of_the_signature_file_matters() {
    let files = package();
    for at in 0..files[SIGNATURE].len() {
        let mut changed = files.clone();
        changed.get_mut(SIGNATURE).unwrap()[at] ^= 1;
        assert!(open(changed).is_err(), "byte {at}");
    }
}

#[test]
fn only_a_trusted_key_counts() {
    let other = pack(template().to_string().as_bytes(), contents(), &key(2)).unwrap();
    refused(other.clone(), "UntrustedKey");
    assert!(matches!(Verified::from_files(package(), &[]), Err(PackageError::UntrustedKey(_))));

    // Another key's signature under the trusted key's name.
    let mut renamed = other.clone();
    let signature = String::from_utf8(other[SIGNATURE].clone()).unwrap();
    let renamed_signature = signature.replace(&key(2).trusted().key_id(), &key(1).trusted().key_id());
    renamed.insert(SIGNATURE.to_owned(), renamed_signature.into_bytes());
    refused(renamed, "BadSignature");
}

#[test]
fn one_good_signature_among_two_is_enough() {
    let mut files = package();
    let mut both: Value = serde_json::from_slice(&sign(&files[MANIFEST], key(2).signing())).unwrap();
    let good: Value = serde_json::from_slice(&files[SIGNATURE]).unwrap();
    both["signatures"].as_array_mut().unwrap().push(good["signatures"][0].clone());
    files.insert(SIGNATURE.to_owned(), both.to_string().into_bytes());
    open(files).unwrap();
}

#[test]
fn a_signature_without_the_context_is_refused() {
    use base64::Engine as _;
    use ed25519_dalek::Signer as _;
    let mut files = package();
    let bare = key(1).signing().sign(&files[MANIFEST]);
    let entry = json!({ "signatures": [{ "keyid": key(1).trusted().key_id(),
        "sig": base64::engine::general_purpose::STANDARD.encode(bare.to_bytes()) }] });
    files.insert(SIGNATURE.to_owned(), entry.to_string().into_bytes());
    refused(files, "BadSignature");
}

#[test]
fn a_publisher_cannot_sign_for_another() {
    rule("/publisher", json!("globex"), "Publisher");
}

#[test]
fn a_key_signs_only_the_ids_that_it_was_listed_for() {
    let open = |ids: &[&str]| {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        Verified::from_files(package(), &[key(1).trusted_for(ids)])
    };
    for granted in ["acme-switch", "acme-*", "*"] {
        open(&["other", granted]).unwrap();
    }
    for denied in ["acme", "acme-switch-*", "acme-switc", "openwrt"] {
        let error = open(&[denied]).unwrap_err();
        assert!(matches!(&error, PackageError::IdNotGranted { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(denied) && text.contains("'acme-switch'") && text.contains("'acme'"), "{text}");
    }
    Verified::from_files(package(), &[key(1).trusted_for_own()]).unwrap();
}

#[test]
fn signature_is_judged_before_the_manifest_is_parsed() {
    let mut files = package();
    files.insert(MANIFEST.to_owned(), b"not json".to_vec());
    refused(files, "BadSignature");
    refused(resigned(b"not json"), "ManifestFormat");
}

#[test]
fn json_that_readers_could_understand_differently_is_refused() {
    let text = complete().to_string();
    let twice = text.replacen('{', "{\"id\":\"other\",", 1);
    refused(resigned(twice.as_bytes()), "DuplicateKey(\"id\")");
    let escaped = text.replacen('{', "{\"\\u0069d\":\"other\",", 1);
    refused(resigned(escaped.as_bytes()), "DuplicateKey(\"id\")");
    let nested = text.replacen("\"cpu-ms\":200", "\"cpu-ms\":200,\"cpu-ms\":201", 1);
    refused(resigned(nested.as_bytes()), "DuplicateKey(\"cpu-ms\")");
    let in_free_json = text.replacen("\"type\":\"object\"", "\"type\":\"object\",\"type\":\"array\"", 1);
    refused(resigned(in_free_json.as_bytes()), "DuplicateKey(\"type\")");
    let raw = text.replacen("\"type\":\"object\"", "\"$serde_json::private::RawValue\":\"{}\"", 1);
    refused(resigned(raw.as_bytes()), "ManifestFormat");
    let deep = text.replacen("\"object\"", &format!("{}{}", "[".repeat(60), "]".repeat(60)), 1);
    refused(resigned(deep.as_bytes()), "TooDeep");
    refused(resigned(format!("{text} {{}}").as_bytes()), "ManifestFormat");
    refused(resigned(b"[]"), "ManifestFormat");
}

#[test]
fn unknown_fields_are_refused_at_every_level() {
    rule("/extra", json!(1), "ManifestFormat");
    rule("/limits/cpu", json!(1), "ManifestFormat");
    rule("/capabilities", json!({ "filesystem": true }), "ManifestFormat");
    rule("/auth/main/login/0/retry", json!(1), "ManifestFormat");
}

#[test]
fn files_must_be_exactly_those_that_are_listed() {
    let mut files = package();
    files.insert("extra.txt".to_owned(), Vec::new());
    refused(files, "FileUnlisted");
    let mut files = package();
    files.remove("assets/icon.svg");
    refused(files, "FileMissing");
    let mut files = package();
    files.get_mut("component.wasm").unwrap().push(0);
    refused(files, "FileSize");
    rule("/files/0/size", json!(1), "FileSize");
    rule("/files/0/sha256", json!("0".repeat(64)), "FileHash");
    rule("/files/0/sha256", json!("A".repeat(64)), "Field");
    for name in [MANIFEST, SIGNATURE] {
        let mut files = package();
        files.remove(name);
        refused(files, "Missing");
    }
}

#[test]
fn paths_that_mean_something_else_elsewhere_are_refused() {
    for name in [
        "",
        "/etc/passwd",
        "../up",
        "a/../b",
        "./a",
        "a//b",
        "a/",
        "a\\b",
        "C:a",
        "a b",
        "a.",
        "dir./a",
        "nul",
        "assets/CON.txt",
        "lpt1.x",
        "ümlaut",
        "a/b/c/d/e/f/g",
        "Manifest.json",
        "manifest.sig",
        "a\u{0}b",
    ] {
        rule("/files/0/path", json!(name), "FileName");
    }
    rule("/files/0/path", json!("x".repeat(121)), "FileName");
    rule("/files/0/path", json!("COMPONENT.wasm"), "DuplicateFile");
    rule("/files/0/path", json!("component.wasm/x"), "FileIsFolder");
    rule("/component", json!("other.wasm"), "ComponentNotListed");
}

#[test]
fn only_a_component_is_accepted_as_component() {
    for (bytes, expected) in [
        (&b"\0asm\x01\0\0\0"[..], "CoreModule"),
        (b"\x7fELF\x02\x01\x01\0", "Precompiled"),
        (b"\0asm", "NotComponent"),
        (b"", "NotComponent"),
    ] {
        let mut contents = contents();
        contents.insert("component.wasm".to_owned(), bytes.to_vec());
        let error = pack(template().to_string().as_bytes(), contents, &key(1)).unwrap_err();
        assert!(format!("{error:?}").contains(expected), "{error:?}");
    }
}

#[test]
fn sizes_are_bounded_before_anything_is_read() {
    let mut files = package();
    files.insert(MANIFEST.to_owned(), vec![b' '; 256 * 1024 + 1]);
    refused(files, "TooLarge");
    let mut files = package();
    files.insert("component.wasm".to_owned(), vec![0; 32 * 1024 * 1024 + 1]);
    refused(files, "TooLarge");
    let mut files = package();
    for name in ["a", "b"] {
        files.insert(name.to_owned(), vec![0; 32 * 1024 * 1024]);
    }
    refused(files, "PackageTooLarge");
    let mut files = package();
    files.extend((0..256).map(|n| (format!("f{n}"), Vec::new())));
    refused(files, "TooManyFiles");
}

#[test]
fn identity_and_limits_follow_the_rules() {
    for id in ["Acme", "a", "ab", "1ab", "-ab", "a_b", "a.b", ""] {
        rule("/id", json!(id), "Id(");
    }
    rule("/id", json!("x".repeat(42)), "Id(");
    rule("/id", json!("controller"), "ReservedId");
    rule("/schema", json!(2), "Schema");
    rule("/api", json!("2.0"), "Api");
    rule("/kind", json!("plugin"), "OtherKind");
    rule("/kind", json!("module"), "ManifestFormat");
    rule("/version", json!("1.0"), "ManifestFormat");
    rule("/min-host", json!("26"), "Field");
    rule("/name", json!(" "), "Field");
    for (name, value) in [("memory-mib", 257), ("cpu-ms", 0), ("requests", 513), ("parallel", 17)] {
        rule(&format!("/limits/{name}"), json!(value), "Limit");
    }
    rule("/pace", json!({ "read-gap-ms": 0, "write-gap-ms": 60_001 }), "Field");
    let window = json!({ "calls": 10, "window-ms": 1_000 });
    rule("/pace", json!({ "windows": vec![window.clone(); 5] }), "Field");
    rule("/pace", json!({ "windows": [{ "calls": 0, "window-ms": 1_000 }] }), "Limit");
    rule("/pace", json!({ "windows": [{ "calls": 10, "window-ms": 3_600_001 }] }), "Limit");
    rule("/pace", json!({ "windows": [{ "calls": 10 }] }), "ManifestFormat");
    let mut manifest = complete();
    manifest["pace"] = json!({ "windows": [window] });
    open(resigned(manifest.to_string().as_bytes())).expect("distances can be left out");
}

#[test]
fn config_schema_is_small_flat_and_local() {
    rule("/config-schema", json!([]), "ConfigSchema");
    rule("/config-schema/properties/port/$ref", json!("https://acme.example/s.json"), "ConfigSchema");
    rule("/config-schema/properties/port/$ref", json!("#/$defs/other"), "ConfigSchema");
    rule("/config-schema/properties/port", json!({ "$dynamicRef": "#x" }), "ConfigSchema");
    rule("/config-schema/properties/port", json!({ "pattern": "a{0,100000}" }), "ConfigSchema");
    rule("/config-schema/title", json!("x".repeat(65 * 1024)), "ConfigSchema");
    let deep = (0..16).fold(json!({}), |inner, _| json!({ "not": inner }));
    rule("/config-schema", deep, "ConfigSchema");
}

#[test]
fn session_declarations_can_be_carried_out() {
    for (pointer, value) in [
        ("login", json!([])),
        ("ttl-s", json!(0)),
        ("apply", json!([])),
        ("login/0/request/method", json!("post")),
        ("login/0/request/path", json!("https://elsewhere/")),
        ("login/0/request/path", json!("//elsewhere/")),
        ("login/0/request/path", json!("/a/%2e%2E/b")),
        ("login/0/request/json/user", json!("{{secret.username")),
        ("login/0/request/json/user", json!("{{env.HOME}}")),
        ("login/0/request/json/user", json!("{{session.token}}")),
        ("login/0/request/form", json!({ "a": "b" })),
        ("login/0/expect", json!({})),
        ("login/0/expect/status", json!([99])),
        ("login/0/expect/json", json!({ "code": [0] })),
        ("login/0/denied", json!({ "json": { "/code": [] } })),
        ("login/0/capture/0/from", json!({ "json": "token" })),
        ("login/0/capture/0/from", json!({ "header": "X Token" })),
        ("apply/0/to", json!({ "header": "Host" })),
        ("apply/0/to", json!({ "json-pointer": "" })),
        ("apply/0/value", json!("{{session.csrf}}")),
        ("apply/0/methods", json!(["SEND"])),
        ("logout/path", json!("logout")),
    ] {
        rule(&format!("/auth/main/{pointer}"), value, "Session");
    }
}

#[test]
fn a_session_without_a_login_carries_a_secret_and_keeps_nothing() {
    let key =
        json!({ "apply": [{ "to": { "header": "X-Key" }, "value": "{{secret.api-key}}" }], "ttl-s": 3600 });
    let basic = json!({
        "apply": [{ "to": { "basic": "{{secret.username}}" }, "value": "{{secret.password}}" }], "ttl-s": 3600,
    });
    for good in [key.clone(), basic] {
        let mut manifest = complete();
        manifest["auth"]["key"] = good;
        open(resigned(manifest.to_string().as_bytes())).expect("it can be carried out");
    }
    for (field, value) in [
        ("cookie-jar", json!(true)),
        ("expired", json!([{ "status": [401] }])),
        ("expired-before-effect", json!(true)),
        ("logout", json!({ "method": "POST", "path": "/logout", "effect": "session" })),
        ("apply", json!([{ "to": { "header": "X-Key" }, "value": "{{settings.key}}" }])),
        ("apply", json!([{ "to": { "basic": "{{session.user}}" }, "value": "{{secret.password}}" }])),
    ] {
        let mut broken = key.clone();
        broken[field] = value;
        rule("/auth/main", broken, "Session");
    }
}

/// What reached a device: the second and third step of this login changed it.
#[test]
fn a_login_has_no_undeclared_steps_that_may_write() {
    let write = json!({
        "request": { "method": "POST", "path": "/api/system", "json": { "op": "set", "token": "{{session.token}}" } },
        "expect": { "status": [200] }
    });
    let login = complete()["auth"]["main"]["login"][0].clone();
    rule("/auth/main/login", json!([login, write, write]), "Session");
    let undeclared = json!({ "method": "POST", "path": "/login", "json": { "user": "u" } });
    rule("/auth/main/login/0/request", undeclared.clone(), "Session");
    rule("/auth/main/logout", undeclared.clone(), "Session");
    let renewal = json!({ "after-s": 200, "expect": { "status": [200] }, "request": undeclared });
    rule("/auth/main/renew", renewal, "Session");
    rule("/auth/main/login/0/request/effect", json!("write"), "ManifestFormat");
    for harmless in [
        json!({ "method": "GET", "path": "/{{secret.username}}?a=b" }),
        json!({ "method": "POST", "path": "/api/x/query", "json": { "op": "get", "user": "{{secret.username}}" } }),
    ] {
        let mut manifest = complete();
        manifest["auth"]["main"]["login"][0]["request"] = harmless;
        open(resigned(manifest.to_string().as_bytes())).unwrap();
    }
    for hidden in [
        json!({ "method": "GET", "path": "/nonce", "json": { "op": "set" } }),
        json!({ "method": "POST", "path": "/api/x/query?op=set", "json": { "op": "get" } }),
        json!({ "method": "POST", "path": "/api/{{settings.path}}/save", "json": { "op": "get" } }),
        json!({ "method": "POST", "path": "/api/x/query", "json": { "op": "{{settings.op}}" } }),
        json!({ "method": "POST", "path": "/api/x/query", "json": "{{settings.body}}" }),
        json!({ "method": "POST", "path": "/api/x/query", "json": [{ "op": "get" }, { "op": "set" }] }),
        json!({ "method": "POST", "path": "/api/x/query", "form": { "op": "get" } }),
    ] {
        rule("/auth/main/login/0/request", hidden, "Session");
    }
}

#[test]
fn a_rule_for_a_path_that_does_more_needs_a_condition() {
    let post = |path: &str, json: Value| json!({ "method": "POST", "path": path, "json": json });
    rule("/reads/0", json!({ "method": "POST", "path": "/ubus" }), "ReadRule");
    rule("/reads/0/only-reads", json!(true), "ReadRule");
    // The login says that the path does more than reading.
    for path in ["/login", "/logout", "/*"] {
        rule("/reads/0", json!({ "method": "POST", "path": path, "only-reads": true }), "ReadRule");
    }
    // The login fits the condition, whatever its template is filled with.
    rule("/reads/0", post("/login", json!({ "/user": ["root"] })), "ReadRule");
    let two = |first: &str, second: &str| json!([{ "method": "POST", "path": first, "only-reads": true }, post(second, json!({ "/op": ["get"] }))]);
    rule("/reads", two("/search", "/search"), "ReadRule");
    rule("/reads", two("/*/x", "/search/*"), "ReadRule");
    for sound in [two("/search", "/rpc"), json!([post("/login", json!({ "/op": ["get"] }))])] {
        let mut manifest = complete();
        manifest["reads"] = sound;
        open(resigned(manifest.to_string().as_bytes())).unwrap();
    }
}

#[test]
fn what_carries_the_session_is_not_exposed() {
    for capture in [
        json!({ "as": "token", "from": { "json": "/token" }, "expose": true }),
        json!({ "as": "token", "from": { "cookie": "sid" }, "expose": true }),
        json!({ "as": "token", "from": { "header": "Set-Cookie" }, "expose": true }),
    ] {
        rule("/auth/main/login/0/capture/0", capture, "Session");
    }
    let token = json!({ "as": "token", "from": { "json": "/token" } });
    let copy = json!({ "as": "id", "from": { "json": "/token" }, "expose": true });
    rule("/auth/main/login/0/capture", json!([token, copy]), "Session");
    let id = |n: usize| json!({ "as": format!("id{n}"), "from": { "json": "/id" }, "expose": true });
    let captures =
        |count: usize| std::iter::once(token.clone()).chain((0..count).map(id)).collect::<Vec<_>>();
    rule("/auth/main/login/0/capture", json!(captures(9)), "Session");
    let mut manifest = complete();
    manifest["auth"]["main"]["login"][0]["capture"] = json!(captures(8));
    open(resigned(manifest.to_string().as_bytes())).unwrap();
}

#[test]
fn reads_rules_name_a_method_and_a_path() {
    for (key, value) in [
        ("method", json!("GET")),
        ("method", json!("post")),
        ("method", json!("DELETE")),
        ("path", json!("")),
        ("path", json!("api")),
        ("path", json!("/a*")),
        ("path", json!("/a/../b")),
        ("path", json!("/a?b=c")),
        ("json", json!({ "op": ["get"] })),
        ("json", json!({ "/op": [] })),
        ("form", json!({ "op": ["get"] })),
        ("query", json!({ "op": [] })),
        ("query", json!({ "o&p": ["get"] })),
        ("query", json!({ "op": ["a=b"] })),
        ("query", json!({ "op": ["get", "*"] })),
        ("only-reads", json!(true)),
    ] {
        rule(&format!("/reads/0/{key}"), value, "ReadRule");
    }
}

#[test]
fn a_form_or_a_query_is_a_condition_that_a_login_may_not_fit() {
    let rule_of = |path: &str, form: Value, query: Value| json!({ "method": "POST", "path": path, "form": form, "query": query });
    let with = |reads: Value, request: Value| {
        let mut manifest = complete();
        manifest["reads"] = json!([reads]);
        manifest["auth"]["main"]["login"][0]["request"] = request;
        resigned(manifest.to_string().as_bytes())
    };
    let login = |path: &str, form: Value| json!({ "method": "POST", "path": path, "effect": "session", "form": form });
    let form = || json!({ "op": ["get"], "user": ["*"] });
    // A login with an effect of its own may not look like a read, whatever its templates are filled with.
    let open_login = json!({ "op": "{{settings.op}}", "user": "{{secret.username}}" });
    refused(with(rule_of("/cgi", form(), json!({})), login("/cgi", open_login.clone())), "ReadRule");
    refused(
        with(
            rule_of("/cgi", json!({}), json!({ "op": ["*"] })),
            json!({ "method": "POST", "path": "/cgi?op=in", "effect": "session" }),
        ),
        "ReadRule",
    );
    for apart in [
        login("/cgi", json!({ "op": "login", "user": "{{secret.username}}" })),
        login("/cgi", json!({ "op": "get" })),
        login("/other", open_login),
    ] {
        open(with(rule_of("/cgi", form(), json!({})), apart)).expect("no rule fits it");
    }
    // One without an effect has to be a read for certain.
    let read = |form: Value| json!({ "method": "POST", "path": "/cgi", "form": form });
    open(with(
        rule_of("/cgi", form(), json!({})),
        read(json!({ "op": "get", "user": "{{secret.username}}" })),
    ))
    .unwrap();
    refused(
        with(rule_of("/cgi", form(), json!({})), read(json!({ "op": "{{settings.op}}", "user": "u" }))),
        "Session",
    );
}

#[cfg(unix)]
#[test]
fn links_in_a_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acme-switch");
    write_dir(&package(), &path).unwrap();
    std::fs::remove_file(path.join("component.wasm")).unwrap();
    std::fs::write(folder.path().join("outside"), &contents()["component.wasm"]).unwrap();
    std::os::unix::fs::symlink(folder.path().join("outside"), path.join("component.wasm")).unwrap();
    let error = Verified::open_dir(&path, &[key(1).trusted()]).unwrap_err();
    assert!(matches!(error, PackageError::NotRegular(name) if name == "component.wasm"));
}

#[test]
fn arbitrary_manifests_never_panic() {
    let text = complete().to_string().into_bytes();
    for at in 0..text.len() {
        let mut changed = text.clone();
        changed[at] = changed[at].wrapping_add(1);
        let _ = parse(&changed).map(|manifest| rules::check(&manifest));
        let _ = parse(&text[..at]);
    }
}
