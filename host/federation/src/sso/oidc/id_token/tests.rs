use jsonwebtoken::{EncodingKey, encode};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;
/// Ed25519, of RFC 8037 appendix A, as PKCS#8 and as published.
const ED_PKCS8: &str = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v_VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g";
const ED_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

fn key(change: Value) -> Jwk {
    let mut key = json!({ "kty": "OKP", "crv": "Ed25519", "x": ED_X, "kid": "k1", "use": "sig" });
    key.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    serde_json::from_value(key).unwrap()
}

fn expected() -> Expected<'static> {
    Expected { issuer: "https://id", client_id: "c", nonce: "n", access_token: Some("at"), now: NOW }
}

fn token(kid: Option<&str>, change: Value) -> String {
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = kid.map(str::to_owned);
    let mut claims = json!({
        "iss": "https://id", "aud": "c", "sub": "alice", "nonce": "n", "iat": NOW - 5, "exp": NOW + 300,
    });
    claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let private = URL_SAFE_NO_PAD.decode(ED_PKCS8).unwrap();
    encode(&header, &claims, &EncodingKey::from_ed_der(&private)).unwrap()
}

#[track_caller]
fn check(change: Value, wanted: Result<(), Unproved>) {
    let shown = change.to_string();
    let verified = verify(&token(Some("k1"), change), &[key(json!({}))], &expected());
    assert_eq!(verified.map(drop), wanted, "{shown}");
}

#[test]
fn a_token_is_for_this_client_this_sign_in_and_now() {
    check(json!({}), Ok(()));
    check(json!({ "iss": "https://id/" }), Err(Unproved::Issuer));
    check(json!({ "iss": null }), Err(Unproved::Malformed));
    check(json!({ "aud": "other" }), Err(Unproved::Audience));
    check(json!({ "aud": ["c", "other"] }), Err(Unproved::AuthorizedParty));
    check(json!({ "aud": ["c", "other"], "azp": "c" }), Ok(()));
    check(json!({ "azp": "other" }), Err(Unproved::AuthorizedParty));
    check(json!({ "nonce": "m" }), Err(Unproved::Nonce));
    check(json!({ "nonce": null }), Err(Unproved::Nonce));
    check(json!({ "exp": NOW - 60 }), Err(Unproved::Expired));
    check(json!({ "exp": NOW - 59 }), Ok(()));
    check(json!({ "exp": null }), Err(Unproved::Malformed));
    check(json!({ "iat": NOW - 700 }), Err(Unproved::Expired));
    check(json!({ "iat": NOW + 61 }), Err(Unproved::NotYetValid));
    check(json!({ "iat": null }), Err(Unproved::Malformed));
    check(json!({ "nbf": NOW + 61 }), Err(Unproved::NotYetValid));
    check(json!({ "sub": "" }), Err(Unproved::Subject));
    check(json!({ "sub": "x".repeat(256) }), Err(Unproved::Subject));
}

#[test]
fn the_access_token_is_the_one_that_came_with_it() {
    check(json!({ "at_hash": half_hash(Algorithm::EdDSA, "at") }), Ok(()));
    check(json!({ "at_hash": half_hash(Algorithm::EdDSA, "another") }), Err(Unproved::AccessToken));
    // The example of OpenID Connect Core, section A.3.
    let known = half_hash(Algorithm::RS256, "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y");
    assert_eq!(known, "77QmUPtjPfzWtF2AnpK9RQ");
}

#[test]
fn the_key_says_which_algorithm_and_the_token_which_key() {
    let verified = |token: &str, keys: &[Jwk]| verify(token, keys, &expected()).map(drop);
    assert_eq!(verified(&token(None, json!({})), &[key(json!({}))]), Ok(()));
    assert_eq!(verified(&token(Some("k2"), json!({})), &[key(json!({}))]), Err(Unproved::Key));
    assert_eq!(verified(&token(Some("k1"), json!({})), &[key(json!({ "use": "enc" }))]), Err(Unproved::Key));
    assert_eq!(
        verified(&token(Some("k1"), json!({})), &[key(json!({ "alg": "RS256" }))]),
        Err(Unproved::Key)
    );
    let other = key(json!({ "x": "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik" }));
    assert_eq!(verified(&token(Some("k1"), json!({})), std::slice::from_ref(&other)), Err(Unproved::Key));
    assert_eq!(verified(&token(Some("k1"), json!({})), &[other, key(json!({}))]), Ok(()));
}

#[test]
fn neither_unsigned_nor_signed_with_what_everybody_knows() {
    let whole = token(Some("k1"), json!({}));
    let claims = whole.split('.').nth(1).unwrap();
    for header in [r#"{"alg":"none"}"#, r#"{"alg":"None","kid":"k1"}"#, "{}"] {
        let unsigned = format!("{}.{claims}.", URL_SAFE_NO_PAD.encode(header));
        assert_eq!(
            verify(&unsigned, &[key(json!({}))], &expected()).map(drop),
            Err(Unproved::Algorithm),
            "{header}"
        );
    }
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("k1".to_owned());
    let body: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    for public in [ED_X.as_bytes().to_vec(), URL_SAFE_NO_PAD.decode(ED_X).unwrap()] {
        let forged = encode(&header, &body, &EncodingKey::from_secret(&public)).unwrap();
        assert_eq!(verify(&forged, &[key(json!({}))], &expected()).map(drop), Err(Unproved::Algorithm));
    }
    for text in ["", "a.b.c", "....", "eyJhbGciOiJFZERTQSJ9"] {
        assert!(verify(text, &[key(json!({}))], &expected()).is_err(), "{text}");
    }
}

#[test]
fn weak_and_foreign_keys_are_no_keys() {
    let rsa = |bytes: usize| {
        let modulus = URL_SAFE_NO_PAD.encode(vec![0xa5; bytes]);
        serde_json::from_value::<Jwk>(json!({ "kty": "RSA", "n": modulus, "e": "AQAB" })).unwrap()
    };
    assert!(is_usable(&rsa(256)) && !is_usable(&rsa(128)));
    assert!(is_usable(&key(json!({}))) && !is_usable(&key(json!({ "use": "enc" }))));
    let shared: Jwk = serde_json::from_value(json!({ "kty": "oct", "k": "c2VjcmV0" })).unwrap();
    assert!(!is_usable(&shared));
}
