//! What a manifest says about requests and secrets in small languages of its own: templates, origins, headers, rules of
//! reads, places of secrets, what hooks sign, ranges of versions, releases, schemas and lists of keys.
//!
//! The first byte of an input chooses one of them; the rest is texts with zero bytes between them.

use heddle_marketplace::catalog::{VersionRange, is_lookalike};
use heddle_marketplace::headers::{belongs_to_host, carries_credentials, is_connection, misleads};
use heddle_marketplace::manifest::ReadRule;
use heddle_marketplace::plugin::{
    FromSetting, HookEncoding, HookScheme, HookSignature, HttpTarget, Origin, SecretPlace, SignedPart,
};
use heddle_marketplace::reading::{body_fits, query_fits};
use heddle_marketplace::release::{Tested, is_between, is_tested, tested_in_words};
use heddle_marketplace::template::{self, Part, Source};
use heddle_marketplace::{Schema, parse_origin, parse_trusted_keys, write_trusted_keys};
use semver::Version;
use serde_json::{Value, json};

use crate::{bounded, package};

type Rule = fn(&[&str]);

/// The rules, each with the byte that chooses it.
pub(crate) const RULES: [(u8, Rule); 11] = [
    (b'0', template),
    (b'1', origin),
    (b'2', header),
    (b'3', read),
    (b'4', place),
    (b'5', signed),
    (b'6', range),
    (b'7', releases),
    (b'8', lookalike),
    (b'9', schema),
    (b'a', trusted_keys),
];

/// Applies the rule of an input.
pub fn check(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let rest = String::from_utf8_lossy(rest);
    let texts: Vec<&str> = rest.split('\0').collect();
    if let Some((_, rule)) = RULES.iter().find(|(byte, _)| byte == choice) {
        bounded(|| rule(&texts));
    }
}

fn text<'a>(texts: &[&'a str], at: usize) -> &'a str {
    texts.get(at).copied().unwrap_or_default()
}

/// A template means the same once it is written from its parts.
fn template(texts: &[&str]) {
    for text in texts {
        let Ok(parts) = template::parse(text) else { continue };
        let written: String = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Place(Source::Secret, name) => format!("{{{{secret.{name}}}}}"),
                Part::Place(Source::Session, name) => format!("{{{{session.{name}}}}}"),
                Part::Place(Source::Settings, name) => format!("{{{{settings.{name}}}}}"),
            })
            .collect();
        assert_eq!(template::parse(&written), Ok(parts), "'{text}'");
    }
}

/// An origin that is accepted has a host and nothing else, and is accepted as it is shown.
fn origin(texts: &[&str]) {
    for text in texts {
        for private in [false, true] {
            let Ok(url) = parse_origin(text, private) else { continue };
            assert!(url.scheme() == "https" || (private && url.scheme() == "http"), "'{text}'");
            assert!(url.host_str().is_some_and(|host| !host.is_empty() && !host.contains('@')), "'{text}'");
            assert!(url.path() == "/" && url.query().is_none() && url.username().is_empty(), "'{text}'");
            let settings = json!({ "server": text });
            let setting = Origin::Setting(FromSetting { setting: "server".to_owned() });
            let [fixed, set] = [Origin::Fixed((*text).to_owned()), setting].map(|origin| {
                let (methods, paths) = (vec!["GET".to_owned()], vec!["/**".to_owned()]);
                HttpTarget { name: "api".to_owned(), origin, methods, paths, private }.origin_with(&settings)
            });
            assert_eq!(fixed.is_ok(), set.is_ok(), "'{text}'");
            let (Ok(fixed), Ok(set)) = (fixed, set) else { continue };
            assert_eq!(fixed, set);
            let again = parse_origin(&fixed, private).expect("what is shown is an origin");
            assert_eq!(again.origin(), url.origin(), "'{text}' is shown as '{fixed}'");
        }
    }
}

/// A credential never goes into a header that makes another request of it.
fn header(texts: &[&str]) {
    for name in texts {
        let lower = name.to_ascii_lowercase();
        assert_eq!(misleads(name), misleads(&lower), "'{name}'");
        if carries_credentials(&lower) && !["authorization", "cookie"].contains(&lower.as_str()) {
            assert!(!misleads(&lower) && !is_connection(&lower) && !belongs_to_host(&lower), "'{name}'");
        }
    }
}

/// What fits a rule has exactly what the rule names.
fn read(texts: &[&str]) {
    let Ok(rule) = serde_json::from_str::<ReadRule>(text(texts, 0)) else { return };
    let path = text(texts, 1);
    let is_equal = |accepted: &str, found: &str| accepted == found;
    if query_fits(&rule, path, is_equal) {
        let query = path.split_once('?').map(|(_, query)| query);
        let pairs = query.map_or(0, |query| query.split('&').count());
        assert_eq!(pairs, rule.query.len(), "'{path}'");
        assert!(query.is_none_or(|query| rule.query.keys().all(|name| query.contains(name.as_str()))));
    }
    let pairs: Vec<(&str, &str)> = texts.iter().skip(2).filter_map(|pair| pair.split_once('=')).collect();
    if body_fits(&rule, true, Some(pairs.iter().copied()), is_equal) && !rule.form.is_empty() {
        assert_eq!(pairs.len(), rule.form.len());
    }
    let nothing: Option<[(&str, &str); 0]> = None;
    assert!(!body_fits(&rule, true, nothing, is_equal) || rule.form.is_empty());
}

/// A place of a secret is the same once it is written again, and is no header that makes another request of it.
fn place(texts: &[&str]) {
    for text in texts {
        let Ok(place) = text.parse::<SecretPlace>() else { continue };
        assert_eq!(place.to_string().parse(), Ok(place.clone()), "'{text}'");
        if let SecretPlace::Header(name) = &place {
            assert!(carries_credentials(name), "'{text}'");
        }
    }
}

/// What a hook signs has the body once, and is the same once it is written from its parts.
fn signed(texts: &[&str]) {
    for text in texts {
        let of = |text: &str| HookSignature {
            scheme: HookScheme::HmacSha256,
            secret: "signing-secret".to_owned(),
            header: "x-signature".to_owned(),
            prefix: String::new(),
            encoding: HookEncoding::Hex,
            signed: Some(text.to_owned()),
            timestamp: None,
        };
        let Ok(parts) = of(text).parts() else { continue };
        assert_eq!(parts.iter().filter(|part| **part == SignedPart::Body).count(), 1, "'{text}'");
        let written: String = parts
            .iter()
            .map(|part| match part {
                SignedPart::Text(text) => text.clone(),
                SignedPart::Header(name) => format!("{{header.{name}}}"),
                SignedPart::Body => "{body}".to_owned(),
            })
            .collect();
        assert_eq!(of(&written).parts(), Ok(parts), "'{text}'");
    }
}

/// A range of versions is the same once it is written again.
fn range(texts: &[&str]) {
    let Ok(range) = text(texts, 0).parse::<VersionRange>() else { return };
    let again: VersionRange = range.to_string().parse().expect("what is shown is a range");
    assert_eq!(range, again);
    for text in &texts[1..] {
        if let Ok(version) = Version::parse(text) {
            assert_eq!(range.has(&version), again.has(&version));
        }
    }
}

/// A version between two others is after the one and before the other.
fn releases(texts: &[&str]) {
    let [version, from, to] = [0, 1, 2].map(|at| text(texts, at));
    let between = is_between(version, Some(from), Some(to));
    let (after, before) = (is_between(version, Some(from), None), is_between(version, None, Some(to)));
    assert_eq!(between, after.zip(before).map(|(after, before)| after && before), "'{version}'");
    if let Ok(tested) = serde_json::from_str::<Vec<Tested>>(text(texts, 3)) {
        is_tested(&tested, from, version);
        tested_in_words(&tested, from);
    }
}

/// Of two ids, each can be taken for the other one, or neither.
fn lookalike(texts: &[&str]) {
    let [one, other] = [0, 1].map(|at| text(texts, at));
    assert_eq!(is_lookalike(one, other), is_lookalike(other, one));
    assert!(!is_lookalike(one, one));
}

/// A schema that is accepted checks any value.
fn schema(texts: &[&str]) {
    let Ok(document) = serde_json::from_str::<Value>(text(texts, 0)) else { return };
    let Ok(schema) = Schema::parse(&document) else { return };
    assert_eq!(*schema.document(), document);
    for text in &texts[1..] {
        let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        package::validate(&schema, &value);
    }
    package::validate(&schema, &document);
}

/// A list of keys is the same once it is written again.
fn trusted_keys(texts: &[&str]) {
    let Ok(keys) = parse_trusted_keys(text(texts, 0).as_bytes()) else { return };
    let again = parse_trusted_keys(write_trusted_keys(&keys).as_bytes());
    assert_eq!(again.expect("what was written is a list of keys"), keys);
    let id = text(texts, 1);
    assert!(keys.iter().all(|key| !key.names(id) || id.ends_with('*') || key.may_sign(id)));
}

/// The input of a target that has these texts.
pub(crate) fn input(choice: u8, texts: &[&str]) -> Vec<u8> {
    [&[choice][..], texts.join("\0").as_bytes()].concat()
}
