//! The publisher that the targets trust, and what has to be true of each package that is accepted.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ed25519_dalek::SigningKey;
use heddle_marketplace::release::{is_tested, tested_in_words};
use heddle_marketplace::{
    MANIFEST, PublisherKey, SIGNATURE, Schema, Verified, grant, in_words, inspect, judge_schemas,
    settings_schema, sign,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bounded;

/// Files of a package, by their names.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What the verifier takes for a component.
pub(crate) const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0body";

/// The publisher `acme`, whose key may sign every package.
pub(crate) fn publisher() -> &'static PublisherKey {
    static PUBLISHER: LazyLock<PublisherKey> = LazyLock::new(|| {
        PublisherKey::new("acme", SigningKey::from_bytes(&[1; 32])).expect("it is a name of a publisher")
    });
    &PUBLISHER
}

/// Signs the manifest among these files as it is.
pub(crate) fn signed(mut files: Files) -> Files {
    if let Some(manifest) = files.get(MANIFEST) {
        files.insert(SIGNATURE.to_owned(), sign(manifest, publisher().signing()));
    }
    files
}

/// Fills in the `files` of the manifest, where it is an object, so that the sizes and hashes are those of the other files.
pub(crate) fn completed(mut files: Files) -> Files {
    let manifest = files.get(MANIFEST).and_then(|text| serde_json::from_slice(text).ok());
    let Some(Value::Object(mut manifest)) = manifest else { return files };
    let listed = files.iter().filter(|(name, _)| ![MANIFEST, SIGNATURE].contains(&name.as_str()));
    let entry = |(path, bytes): (&String, &Vec<u8>)| json!({ "path": path, "size": bytes.len(), "sha256": hex::encode(Sha256::digest(bytes)) });
    manifest.insert("files".to_owned(), listed.map(entry).collect());
    files.insert(MANIFEST.to_owned(), Value::Object(manifest).to_string().into_bytes());
    files
}

/// Goes on with an accepted package as an installation does, and asserts what has to be true of it.
pub(crate) fn judge(package: &Verified) {
    let manifest = package.manifest();
    assert!(!package.signers().is_empty());
    let is_plain = |line: &String| line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    assert!(in_words(manifest).iter().all(is_plain), "a line of consent can look like another one");

    let text = serde_json::to_vec(manifest).expect("it has text keys only");
    if let Err(error) = inspect(&text) {
        panic!("what is accepted is refused as it is written again: {error}");
    }
    let asked = grant::of(manifest);
    let kept = serde_json::to_vec(&asked).expect("it has text keys only");
    assert_eq!(asked, serde_json::from_slice(&kept).expect("it was just written"));
    assert_eq!(grant::difference(&asked, &asked, |_| false), grant::Difference::default());
    let more = grant::difference(&grant::Grant::default(), &asked, |_| false);
    assert!(more.removed.is_empty(), "what asks for nothing has something more");

    let releases = &package.description().releases;
    for version in ["24.10.2", "26.1_4", "SNAPSHOT", &manifest.version.to_string()] {
        is_tested(releases, &manifest.name, version);
    }
    tested_in_words(releases, &manifest.name);

    let settings =
        json!({ "login": "token", "server-url": "https://example.net:0", "extra": [1, -0.5, null] });
    for target in &manifest.capabilities.http {
        if let Ok(origin) = target.origin_with(&settings) {
            assert!(origin.starts_with("https://") || (target.private && origin.starts_with("http://")));
        }
    }
    bounded(|| judge_schemas(manifest, package.description())).ok();
    // A value of the author's, for want of a better one: it has all types.
    let value: Value = serde_json::from_slice(&text).expect("it was just written");
    if let Ok(schema) = settings_schema(manifest) {
        validate(&schema, &settings);
        validate(&schema, &value);
    }
    for action in &manifest.actions {
        if let Ok(schema) = bounded(|| Schema::parse(&action.params_schema)) {
            validate(&schema, &value);
        }
    }
}

/// Checks a value against a schema. Both ways to ask have to agree.
pub(crate) fn validate(schema: &Schema, value: &Value) {
    bounded(|| {
        let problems: Vec<String> =
            schema.validator().iter_errors(value).take(8).map(|error| error.to_string()).collect();
        assert_eq!(schema.validator().is_valid(value), problems.is_empty(), "{problems:?}");
    });
}
