//! Proves to a receiver that a body came from here, and when.

use heddle_core::Timestamp;
use heddle_core::secret::Secret;
use hmac::{Hmac, Mac as _};
use http::{HeaderName, HeaderValue};
use sha2::Sha256;

const SIGNATURE: HeaderName = HeaderName::from_static("x-fabric-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-fabric-timestamp");

/// HMAC-SHA256 over the timestamp, a dot and the body, and the timestamp.
pub(super) fn headers(secret: &Secret, now: Timestamp, body: &[u8]) -> [(HeaderName, HeaderValue); 2] {
    let timestamp = now.timestamp().to_string();
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("a key of any length is taken");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let value = |text: &str| HeaderValue::from_str(text).expect("hex and digits are visible ASCII");
    [(SIGNATURE, value(&signature)), (TIMESTAMP, value(&timestamp))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac s3cret`.
    #[test]
    fn the_signature_is_the_one_that_others_compute() {
        let now = Timestamp::from_timestamp(1_700_000_000, 0).unwrap();
        let [(_, signature), (_, timestamp)] = headers(&Secret::new("s3cret"), now, br#"{"a":1}"#);
        assert_eq!(timestamp, "1700000000");
        assert_eq!(signature, "sha256=1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940");
    }
}
