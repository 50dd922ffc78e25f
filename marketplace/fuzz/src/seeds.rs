//! The inputs that the targets begin with, and the words that they put into inputs. They are made anew each time, from the
//! examples and adapters of the checkout and from the archives of the tests.

#[expect(clippy::unwrap_used, reason = "it is shared with tests")]
#[path = "../../tests/hostile_archives/corpus.rs"]
mod corpus;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;
use heddle_marketplace::catalog::{
    Archive, Catalog, CatalogRef, ListedKey, Plugin, PluginVersion, Publisher, Revocation, Timestamp,
};
use heddle_marketplace::{DESCRIPTION, MANIFEST, PublisherKey, key_id, manifest_schema, pack, write_archive};
use semver::Version;
use serde_json::{Value, json};

use crate::package::{COMPONENT, Files, publisher};
use crate::{archive, catalog, manifest, rules, writer};

const MIB: usize = 1 << 20;
/// Bytes of the longest input.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// Longest word of a dictionary.
const WORD_BYTES_MAX: usize = 48;

const ADAPTER: &[u8] = include_bytes!("../seeds/adapter.json");
const PLUGIN: &[u8] = include_bytes!("../seeds/plugin.json");
const DESCRIBED: &[u8] = include_bytes!("../seeds/description.json");

/// Inputs and words of a target.
#[derive(Default)]
struct Seeds {
    inputs: Vec<Vec<u8>>,
    words: BTreeSet<Vec<u8>>,
}

/// Writes the inputs into a folder for each target, and its words beside it, below the folder that the command line names;
/// then ends the process.
pub fn write_and_exit() {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).expect("the command line names a folder");
    let targets = [
        ("archive", of_archive()),
        ("manifest", of_manifest()),
        ("catalog", of_catalog()),
        ("rules", of_rules()),
    ];
    for (target, seeds) in targets {
        seeds.write(&folder, target).unwrap_or_else(|error| panic!("'{}': {error}", folder.display()));
    }
    std::process::exit(0);
}

impl Seeds {
    fn add(&mut self, input: impl Into<Option<Vec<u8>>>) {
        self.inputs.extend(input.into().filter(|input| input.len() <= INPUT_BYTES_MAX));
    }

    /// Adds the keys and the short texts of a document.
    fn learn(&mut self, document: &Value) {
        match document {
            Value::String(text) if text.len() <= WORD_BYTES_MAX => {
                self.words.insert(Value::String(text.clone()).to_string().into_bytes());
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(fields) => {
                for (key, value) in fields.iter().filter(|(key, _)| key.len() <= WORD_BYTES_MAX) {
                    self.words.insert(format!("{}:", Value::String(key.clone())).into_bytes());
                    self.learn(value);
                }
            }
            _ => {}
        }
    }

    fn write(&self, folder: &Path, target: &str) -> std::io::Result<()> {
        let inputs = folder.join(target);
        fs::create_dir_all(&inputs)?;
        for (number, input) in self.inputs.iter().enumerate() {
            fs::write(inputs.join(format!("{number:04}")), input)?;
        }
        let escaped = |word: &Vec<u8>| word.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let words: Vec<String> = self.words.iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
        fs::write(folder.join(format!("{target}.dict")), words.concat())
    }
}

/// A manifest with the other files of its package.
type Unpacked = (Vec<u8>, Files);

/// What packages there are, in the name of the publisher here: those beside this file, and those of the checkout.
fn packages() -> Vec<Unpacked> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = vec![ADAPTER.to_vec(), PLUGIN.to_vec()];
    for folder in ["plugins-sdk/examples", "adapters"].map(|folder| root.join(folder)) {
        let entries = fs::read_dir(folder).expect("the checkout is there");
        let manifests = entries.filter_map(Result::ok).map(|entry| entry.path().join(MANIFEST));
        texts.extend(manifests.filter_map(|manifest| fs::read(manifest).ok()));
    }
    texts.iter().map(|text| unpacked(text)).collect()
}

fn unpacked(text: &[u8]) -> Unpacked {
    let mut manifest: Value = serde_json::from_slice(text).expect("a manifest of the checkout is JSON");
    manifest["publisher"] = publisher().publisher().into();
    let mut files = BTreeMap::from([("component.wasm".to_owned(), COMPONENT.to_vec())]);
    if manifest["kind"] == "adapter" {
        // Descriptions of the adapters are too long for an input.
        let described = if text == ADAPTER { DESCRIBED } else { br#"{"areas": []}"# };
        files.insert(DESCRIPTION.to_owned(), described.to_vec());
    }
    (manifest.to_string().into_bytes(), files)
}

/// The files of a package, signed.
fn packed((text, files): &Unpacked) -> Files {
    pack(text, files.clone(), publisher()).expect("a seed is a package")
}

fn of_archive() -> Seeds {
    let mut seeds = Seeds::default();
    for (_, bytes, _) in corpus::all() {
        seeds.add((bytes.len() < INPUT_BYTES_MAX).then(|| [&[archive::AS_IT_IS], &bytes[..]].concat()));
    }
    for package in packages() {
        let files = packed(&package);
        let bytes = write_archive(&files).expect("it is a package");
        seeds.add([&[archive::AS_IT_IS], &bytes[..]].concat());
        let unsigned = [(MANIFEST.to_owned(), package.0), ("assets/icon.svg".to_owned(), b"<svg/>".to_vec())];
        let unsigned: Files = unsigned.into_iter().chain(package.1).collect();
        for (mode, kind, files) in [
            (archive::BUILT, 0, &files),
            (archive::BUILT, 1, &files),
            (archive::BUILT, 3, &files),
            (archive::BUILT, 7, &files),
            (archive::SIGNED, 0, &unsigned),
        ] {
            let files: Vec<(&str, &[u8])> =
                files.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
            seeds.add(archive::input(mode, kind, &files));
        }
    }
    let lies =
        (0..12).map(|lie| [&b"1\x05\x08\x05\0hello"[..], &[lie, 5, 0], b"UT\x01\0\0\x06\0\x01\0x"].concat());
    lies.for_each(|input| seeds.add(input));
    let records = ["PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07", "PK\x07\x08"];
    seeds.words.extend(records.into_iter().chain(archive::NAMES).map(|word| word.as_bytes().to_vec()));
    seeds
}

fn of_manifest() -> Seeds {
    let mut seeds = Seeds::default();
    seeds.learn(&manifest_schema());
    seeds.learn(&serde_json::from_slice(DESCRIBED).expect("it is JSON"));
    for package in packages() {
        let complete = packed(&package);
        let (text, files) = package;
        let described = |text: &[u8], description: Option<&Vec<u8>>| match description {
            Some(description) => [text, b"\0", description].concat(),
            None => text.to_vec(),
        };
        let signed = described(&complete[MANIFEST], complete.get(DESCRIPTION));
        seeds.add([&[manifest::AS_IT_IS], &signed[..]].concat());
        let unsigned = described(&text, files.get(DESCRIPTION));
        seeds.add([&[manifest::PACKED], &unsigned[..]].concat());
    }
    for schema in schemas() {
        let mut heavy: Value = serde_json::from_slice(PLUGIN).expect("it is JSON");
        heavy["actions"][1]["params-schema"] = schema.clone();
        heavy["config-schema"]["properties"]["more"] = schema;
        seeds.add([&[manifest::PACKED], heavy.to_string().as_bytes()].concat());
    }
    seeds
}

/// Schemas that cost as much as one may, or more.
fn schemas() -> Vec<Value> {
    let object = |more: Value| {
        let mut schema = json!({ "type": "object" });
        schema.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
        schema
    };
    let deep = (0..12).fold(json!({ "type": "object" }), |inner, _| json!({ "properties": { "a": inner } }));
    let doubling = (0..12).map(|n| {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        (format!("d{n}"), json!({ "allOf": [next, next] }))
    });
    let mut definitions: serde_json::Map<String, Value> = doubling.collect();
    definitions.insert("d12".to_owned(), json!({ "type": "integer" }));
    let patterns = |pattern: &str, count: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("p{n}"), json!({ "pattern": pattern }))).collect();
        object(json!({ "properties": properties }))
    };
    vec![
        object(json!({ "allOf": [deep] })),
        object(json!({ "$ref": "#/$defs/d0", "$defs": definitions })),
        patterns("^(a|b{1,64}){1,64}$", 8),
        patterns("^\\w{1,32}$", 8),
        patterns("^(?:[a-z0-9]+\\.)*[^@]+$", 32),
        // Each is compiled, and none is small.
        object(json!({
            "anyOf": (0..128).map(|n| json!({ "pattern": format!("^[^a]{{1,{}}}$", 1_000 + n) })).collect::<Vec<_>>(),
        })),
        object(
            json!({ "enum": [{}, { "a": 1 }], "dependentSchemas": { "a": false }, "unevaluatedProperties": false }),
        ),
        object(
            json!({ "propertyNames": { "maxLength": 2 }, "minProperties": 1, "dependentRequired": { "a": ["b"] } }),
        ),
    ]
}

/// A catalogue with one plugin.
fn listed(version: u64) -> Catalog {
    let later = |days| catalog::begins() + TimeDelta::days(days);
    let hash = |digit: &str| digit.repeat(64);
    let publisher_of = |id: &str, key: &PublisherKey, ids: &[&str]| {
        let public = key.trusted().key;
        let key = ListedKey {
            keyid: key_id(&public),
            public: hex::encode(public),
            not_before: later(-30),
            not_after: later(300),
        };
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        Publisher { id: id.to_owned(), name: "ACME".to_owned(), keys: vec![key], ids }
    };
    let version_of = |version: Version| PluginVersion {
        version,
        package: Archive { url: format!("packages/{}.zip", hash("a")), length: 1_000, sha256: hash("a") },
        manifest_sha256: hash("b"),
        component_sha256: hash("c"),
        api: "1.0".to_owned(),
        min_host: Some(Version::new(0, 1, 0)),
        released: later(-1),
        yanked: false,
        signed_by: vec![publisher().trusted().key_id()],
        capabilities: serde_json::value::to_raw_value(
            &json!({ "kv": {}, "fabric": { "call": ["network.vlan.create"] } }),
        )
        .ok(),
        permissions: serde_json::value::to_raw_value(&json!([])).ok(),
    };
    let mut catalog = Catalog::empty(version, later(90));
    catalog.publishers.push(publisher_of("acme", publisher(), &["acme", "acme-*"]));
    catalog.plugins.push(Plugin {
        id: "acme-switch".to_owned(),
        publisher: "acme".to_owned(),
        kind: heddle_marketplace::manifest::Kind::Adapter,
        name: "ACME switches".to_owned(),
        summary: "Switches of ACME.".to_owned(),
        description: "Reads them.\nWrites them.".to_owned(),
        categories: vec!["switching".to_owned()],
        license: "Apache-2.0".to_owned(),
        homepage: Some("https://example.net/switches".to_owned()),
        icon: Some(format!("icons/{}.svg", hash("d"))),
        versions: (0..2).map(|minor| version_of(Version::new(1, minor, 0))).collect(),
    });
    catalog
}

fn revocations() -> Vec<Revocation> {
    let hash = "e".repeat(64);
    let entries = json!([
        { "kind": "plugin", "value": "acme-switch", "versions": ">=1.0.0, <1.0.1-rc.1", "action": "disable", "reason": "It is broken." },
        { "kind": "key", "value": hash, "action": "block", "reason": "It was lost." },
        { "kind": "package", "value": hash, "action": "kill", "reason": "It does harm." },
        { "kind": "component", "value": hash, "action": "kill", "reason": "It does harm." },
    ]);
    serde_json::from_value(entries).expect("they are revocations")
}

fn of_catalog() -> Seeds {
    let mut seeds = Seeds::default();
    let day = |days| catalog::begins() + TimeDelta::days(days);
    let timestamp = |version: u64, days: i64| {
        let file = CatalogRef { version: 1, length: 1, sha256: "0".repeat(64) };
        Timestamp::new(version, day(days), day(days + 7), file, revocations()).to_bytes()
    };
    let (first, second) = (listed(1).to_bytes(), listed(2).to_bytes());
    let compact = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("it is JSON").to_string();
    // The same keys, other keys of the catalogue and the timestamp, and other keys of the root.
    let roots = [[&[0][..], &[1], &[2]], [&[0], &[3], &[4]], [&[3, 4], &[1], &[2, 4]]];
    let roots = roots.map(|roles| catalog::root(2, roles).to_bytes());
    let named = catalog::NAMED;
    seeds.add(catalog::input(named, &[b"", &timestamp(1, 0), &first]));
    seeds.add(catalog::input(
        named | catalog::UNVERSIONED,
        &[b"", compact(&timestamp(1, 0)).as_bytes(), compact(&first).as_bytes()],
    ));
    for root in &roots {
        seeds.add(catalog::input(named, &[root, &timestamp(1, 0), &first]));
        let both: [&[u8]; 7] = [b"", &timestamp(1, 0), &first, b"", root, &timestamp(2, 1), &second];
        seeds.add(catalog::input(named, &both));
    }
    let third = catalog::root(3, [&[4], &[4], &[4]]).to_bytes();
    let all: [&[u8]; 11] = [
        &roots[0],
        &timestamp(3, 0),
        &first,
        b"",
        &third,
        &timestamp(4, 1),
        &second,
        b"",
        b"",
        &timestamp(5, 2),
        &second,
    ];
    seeds.add(catalog::input(named, &all));
    // Older and lacking ones, and one whose names do not fit.
    seeds.add(catalog::input(named, &[b"", &timestamp(2, 0), &second, b"", b"", &timestamp(1, 0), &first]));
    seeds.add(catalog::input(0, &[b"", &timestamp(1, 0), &first]));
    for options in [catalog::PINNED, catalog::UNSIGNED] {
        seeds.add(catalog::input(options, &[b"", b"", &first, b"", b"", b"", &second]));
    }
    let signature =
        json!({ "signatures": [{ "keyid": "0".repeat(64), "sig": format!("{}==", "A".repeat(86)) }] });
    seeds.add(catalog::input(named, &[b"", &timestamp(1, 0), &first, signature.to_string().as_bytes()]));
    seeds.add(catalog::input(catalog::PINNED, &[b"", b"", &first, "0".repeat(128).as_bytes()]));
    for text in [&roots[0], &timestamp(1, 0), &first, &signature.to_string().into_bytes()] {
        seeds.add(catalog::input(catalog::PARSED, &[text]));
    }
    for document in [&first, &timestamp(1, 0), &third] {
        seeds.learn(&serde_json::from_slice(document).expect("it is JSON"));
    }
    seeds.learn(&signature);
    seeds
}

/// A rule of reads with a form and a query.
const READ: &str = r#"{"method":"POST","path":"/x","form":{"op":["get"],"id":["*"]},"query":{"type":["vm","node"],"limit":["*"]}}"#;

/// Texts for each rule but that of schemas, with the byte that chooses it.
const TEXTS: [(u8, &[&str]); 14] = [
    (b'0', &["{{secret.api-key}}", "Bearer {{ session.token }}/{{settings.site}}", "{\"a\": {\"b\": 1}}"]),
    (b'0', &["}}{{", "{{{secret.a}}}"]),
    (
        b'1',
        &[
            "https://api.example.net",
            "http://[fe80::1]:8080/",
            "https://user@host",
            "HTTPS://EXAMPLE.NET:443",
        ],
    ),
    (b'1', &["https://xn--nxasmq6b:0", "https://1.2.3", "http://0x7f.1"]),
    (
        b'2',
        &[
            "X-Forwarded-For",
            "x_http_method_override",
            "Authorization",
            "Proxy-Authorization",
            "x-accel-redirect",
        ],
    ),
    (b'3', &[READ, "/x?type=vm&limit=5", "op=get", "id=1"]),
    (b'3', &[r#"{"method":"PUT","path":"/search","only-reads":true}"#, "/search"]),
    (
        b'4',
        &[
            "bearer",
            "basic-username",
            "header:X-Key",
            "query:key",
            "form:key",
            "json:/auth/~0key",
            "header:host",
        ],
    ),
    (b'5', &["{body}", "v0:{header.X-Time}:{body}", "{header.}{body}", "{body"]),
    (b'6', &[">=1.2.0, <1.3.0-rc.1", "1.2.5", "1.3.0-rc.0+build"]),
    (b'6', &["=1.0.0", "1.0.0"]),
    (
        b'7',
        &[
            "26.1_4",
            "24.10",
            "26.1.2_3",
            r#"[{"product":"24.10","tested":["24.10",{"from":"25.1","to":"26.1_4"}]}]"#,
        ],
    ),
    (b'7', &["SNAPSHOT", "5.15.20.6", "18446744073709551616"]),
    (b'8', &["acme-switch", "acme-swicth"]),
];

fn of_rules() -> Seeds {
    let mut seeds = Seeds::default();
    for (choice, texts) in TEXTS {
        seeds.add(rules::input(choice, texts));
    }
    for schema in schemas() {
        let value = r#"{"a":{"a":1},"p0":"aaaa","p1":"bbbb"}"#;
        seeds.add(rules::input(b'9', &[&schema.to_string(), value, "aaaaaaaa"]));
        seeds.learn(&schema);
    }
    let key = hex::encode(publisher().trusted().key);
    for entry in [
        json!({ "publisher": "acme", "public_key": key, "ids": ["acme-switch", "acme-*"] }),
        json!({ "publisher": "acme", "key": key }),
    ] {
        seeds.add(rules::input(b'a', &[&json!([entry]).to_string(), "acme-switch"]));
    }
    seeds.learn(&serde_json::from_str(READ).expect("it is JSON"));
    seeds
}
