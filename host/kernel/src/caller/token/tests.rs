use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use heddle_core::Clock;
use serde_json::{Value, json};

use super::*;

const KEY: [u8; 32] = [7; 32];

fn claims(clock: &Clock) -> Claims {
    let subject = Subject {
        user: clock.new_id(),
        org: clock.new_id(),
        role: Role::Operator,
        token_version: 3,
        session: clock.new_id(),
    };
    Claims::new(subject, clock.new_id(), clock.now(), 1800)
}

/// The claims with one of them replaced, signed with the right key.
fn signed_with(name: &str, value: Value) -> String {
    let mut body = serde_json::to_value(claims(&Clock::default())).unwrap();
    body[name] = value;
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &body, &EncodingKey::from_secret(&KEY)).unwrap()
}

#[track_caller]
fn check_refused(token: &str, message: &str) {
    let error = verify(&KEY, token, Clock::default().now()).unwrap_err();
    assert!(matches!(error, Error::Unauthenticated(text) if text == message), "{error}");
}

#[test]
fn a_token_says_what_was_signed() {
    let clock = Clock::default();
    let claims = claims(&clock);
    let token = sign(&KEY, &claims).unwrap();
    assert_eq!(verify(&KEY, &token, clock.now()).unwrap(), claims);
}

#[test]
fn a_token_ends_by_the_services_clock() {
    let clock = Clock::default();
    let token = sign(&KEY, &claims(&clock)).unwrap();
    clock.advance(TimeDelta::seconds(1200));
    assert!(verify(&KEY, &token, clock.now()).is_ok());
    clock.advance(TimeDelta::seconds(600));
    let error = verify(&KEY, &token, clock.now()).unwrap_err();
    assert!(matches!(error, Error::Unauthenticated("token is expired")));
}

#[test]
fn another_key_is_refused() {
    let token = sign(&[8; 32], &claims(&Clock::default())).unwrap();
    check_refused(&token, "token is not valid");
}

#[test]
fn another_audience_or_issuer_is_refused() {
    check_refused(&signed_with("aud", json!("other")), "token is not valid");
    check_refused(&signed_with("aud", Value::Null), "token is not valid");
    check_refused(&signed_with("iss", json!("other")), "token is not valid");
}

#[test]
fn the_algorithm_none_is_refused() {
    let token = sign(&KEY, &claims(&Clock::default())).unwrap();
    let body = token.split('.').nth(1).unwrap();
    let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"none","typ":"JWT"}"#);
    check_refused(&format!("{header}.{body}."), "token is not valid");
    let signature = token.split('.').nth(2).unwrap();
    check_refused(&format!("{header}.{body}.{signature}"), "token is not valid");
}

#[test]
fn another_hmac_is_refused() {
    let claims = claims(&Clock::default());
    let key = EncodingKey::from_secret(&KEY);
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS512), &claims, &key).unwrap();
    check_refused(&token, "token is not valid");
}

#[test]
fn what_is_no_token_is_refused() {
    for text in ["", ".", "a.b.c", "🦀.🦀.🦀"] {
        check_refused(text, "token is not valid");
    }
}

/// RFC 7519 section 3.1, with the key of RFC 7515 appendix A.1.
const EXAMPLE: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const EXAMPLE_KEY: &str =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";

#[test]
fn the_example_of_rfc_7519_is_read_as_it_says_and_is_none_of_ours() {
    let key = URL_SAFE_NO_PAD.decode(EXAMPLE_KEY).unwrap();
    let joe = decode_as::<Value>(&key, EXAMPLE, &signature_only()).unwrap();
    assert_eq!(joe, json!({ "iss": "joe", "exp": 1_300_819_380, "http://example.com/is_root": true }));
    assert!(decode_as::<Value>(&key, &EXAMPLE.replace("jXk", "jXK"), &signature_only()).is_err());
    assert!(decode_as::<Value>(&key, EXAMPLE, &validation(AUDIENCE)).is_err());
}

#[test]
fn the_unsecured_example_of_rfc_7519_is_refused() {
    // Section 6.1.
    let unsecured = "eyJhbGciOiJub25lIn0.\
        eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.";
    assert!(decode_as::<Value>(&[7; 32], unsecured, &signature_only()).is_err());
    check_refused(unsecured, "token is not valid");
}

/// What is left of the check without the claims.
fn signature_only() -> Validation {
    let mut validation = validation(AUDIENCE);
    validation.validate_aud = false;
    validation.iss = None;
    validation.set_required_spec_claims::<&str>(&[]);
    validation
}
