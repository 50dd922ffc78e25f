//! Proves to a receiver that a body came from this service, and when.

use heddle_core::Timestamp;
use heddle_core::secret::Secret;
use hmac::{Hmac, Mac as _};
use http::{HeaderName, HeaderValue, Method};
use sha2::Sha256;
use url::Url;

const SIGNATURE: HeaderName = HeaderName::from_static("x-fabric-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-fabric-timestamp");
const OF_ORGANIZATION: HeaderName = HeaderName::from_static("x-heddle-signature");

/// Returns the signature, HMAC-SHA256 over the timestamp, a dot and the body, and the timestamp.
pub(super) fn headers(secret: &Secret, now: Timestamp, body: &[u8]) -> [(HeaderName, HeaderValue); 2] {
    let timestamp = now.timestamp().to_string();
    let signature = format!("sha256={}", hmac(secret, &[timestamp.as_bytes(), b".", body]));
    [(SIGNATURE, value(&signature)), (TIMESTAMP, value(&timestamp))]
}

/// `t=<timestamp>,v1=<signature>`, with one `v1` for each secret: HMAC-SHA256 over timestamp, method, URL and body,
/// with a line feed after each of the first three. So a signature is valid for one receiver only.
pub(super) fn of_organization(
    secrets: &[Secret],
    now: Timestamp,
    method: &Method,
    url: &Url,
    body: &[u8],
) -> Option<(HeaderName, HeaderValue)> {
    if secrets.is_empty() {
        return None;
    }
    let head = format!("{}\n{method}\n{url}\n", now.timestamp());
    let signatures = secrets.iter().map(|secret| format!(",v1={}", hmac(secret, &[head.as_bytes(), body])));
    Some((OF_ORGANIZATION, value(&format!("t={}{}", now.timestamp(), signatures.collect::<String>()))))
}

fn hmac(secret: &Secret, parts: &[&[u8]]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("a key of any length is taken");
    parts.iter().for_each(|part| mac.update(part));
    hex::encode(mac.finalize().into_bytes())
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("hex, digits and signs are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_timestamp(1_700_000_000, 0).unwrap()
    }

    /// Computed with `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac s3cret`.
    #[test]
    fn the_signature_is_the_one_that_others_compute() {
        let [(_, signature), (_, timestamp)] = headers(&Secret::new("s3cret"), now(), br#"{"a":1}"#);
        assert_eq!(timestamp, "1700000000");
        assert_eq!(signature, "sha256=1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940");
    }

    /// Computed with `printf '1700000000\nPOST\nhttps://a.example/x?k=1\n{"a":1}' | openssl dgst -sha256 -hmac s3cret`.
    #[test]
    fn the_signature_of_an_organization_is_good_for_one_url_only() {
        let of = |secrets: &[&str], url: &str| {
            let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(*text)).collect();
            let url = url.parse().unwrap();
            let header = of_organization(&secrets, now(), &Method::POST, &url, br#"{"a":1}"#);
            header.map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        assert_eq!(of(&[], "https://a.example/x?k=1"), None);
        let one = of(&["s3cret"], "https://a.example/x?k=1").unwrap();
        assert_eq!(one, "t=1700000000,v1=d5406bbb85d20b372cd711ee71f67e12ed2888bad9972658e337ccb7015a7d1a");
        assert_ne!(of(&["s3cret"], "https://b.example/x?k=1").unwrap(), one);
        let both = of(&["n3w", "s3cret"], "https://a.example/x?k=1").unwrap();
        assert!(both.ends_with(&one["t=1700000000".len()..]) && both.matches("v1=").count() == 2);
    }
}
