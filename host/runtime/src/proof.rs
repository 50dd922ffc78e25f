//! Proofs of requests that others send to the service: a token, or a signature with a secret that both sides have. Pure.
//!
//! The hooks of plugins and those of controllers are declared alike and judged alike. Where the secret comes from, and what a
//! request without a proof is answered, is for the caller.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::Timestamp;
use heddle_marketplace::plugin::{HookEncoding, HookScheme, HookSignature, SignedPart};
use hmac::{Hmac, Mac as _};
use http::HeaderMap;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Returns what proves a request, where it is valid: the signature in hexadecimal digits, which two different requests do not
/// share, or an empty text for a token. Without a secret nothing is proved.
pub fn proved(
    signature: &HookSignature,
    secret: &[u8],
    (headers, body): (&HeaderMap, &[u8]),
    now: Timestamp,
) -> Option<String> {
    let text = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        // Of two values, one could be what was signed and the other what is read.
        values.next().is_none().then_some(value)
    };
    let given = text(&signature.header)?.strip_prefix(signature.prefix.as_str())?;
    if signature.scheme == HookScheme::Token {
        return is_token(given, secret).then(String::new);
    }
    let given = match signature.encoding {
        HookEncoding::Hex => hex::decode(given).ok()?,
        HookEncoding::Base64 => STANDARD.decode(given).ok()?,
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok().filter(|_| !secret.is_empty())?;
    for part in signature.parts().ok()? {
        match part {
            SignedPart::Text(literal) => mac.update(literal.as_bytes()),
            SignedPart::Header(name) => mac.update(text(&name)?.as_bytes()),
            SignedPart::Body => mac.update(body),
        }
    }
    mac.verify_slice(&given).ok()?;
    if let Some(timestamp) = &signature.timestamp {
        let sent: i64 = text(&timestamp.header)?.parse().ok()?;
        let age = now.timestamp().checked_sub(sent)?;
        if age.unsigned_abs() > u64::from(timestamp.tolerance_s) {
            return None;
        }
    }
    Some(hex::encode(given))
}

/// Whether a text is the secret, in a time that says nothing of it.
pub(crate) fn is_token(given: &str, secret: &[u8]) -> bool {
    !secret.is_empty() && bool::from(Sha256::digest(given).ct_eq(&Sha256::digest(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"8f742231b10e8888abcd99yyyzzz85a5";

    fn signature(json: &str) -> HookSignature {
        serde_json::from_str(json).unwrap()
    }

    fn slack() -> HookSignature {
        signature(
            r#"{ "scheme": "hmac-sha256", "secret": "s", "header": "X-Slack-Signature", "prefix": "v0=",
                "signed": "v0:{header.X-Slack-Request-Timestamp}:{body}",
                "timestamp": { "header": "X-Slack-Request-Timestamp", "tolerance-s": 300 } }"#,
        )
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_timestamp(secs, 0).unwrap()
    }

    /// The example of the vendor's own documentation.
    #[test]
    fn a_signature_with_a_time_is_verified() {
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signed = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let sent = |signed: &str, time: &str| {
            headers(&[("x-slack-signature", signed), ("x-slack-request-timestamp", time)])
        };
        let check = |headers: &HeaderMap, body: &[u8], now| {
            proved(&slack(), SECRET, (headers, body), at(now)).is_some()
        };
        let sound = sent(signed, "1531420618");
        assert!(check(&sound, body, 1_531_420_618) && check(&sound, body, 1_531_420_918));
        assert!(!check(&sound, body, 1_531_420_919), "too old");
        assert!(!check(&sound, body, 1_531_420_317), "from the future");
        assert!(!check(&sound, b"token=other", 1_531_420_618));
        assert!(!check(&sent(signed, "1531420619"), body, 1_531_420_618));
        assert!(!check(&sent(&signed.replace("a2", "a3"), "1531420618"), body, 1_531_420_618));
        assert!(!check(&sent(&signed[3..], "1531420618"), body, 1_531_420_618), "without the prefix");
        assert!(!check(&headers(&[("x-slack-signature", signed)]), body, 1_531_420_618));
        let mut twice = sound.clone();
        twice.append("x-slack-signature", signed.parse().unwrap());
        assert!(!check(&twice, body, 1_531_420_618));
        assert!(proved(&slack(), b"other", (&sound, body), at(1_531_420_618)).is_none());
    }

    #[test]
    fn the_body_alone_and_a_token_are_proofs() {
        let hub = signature(
            r#"{ "scheme": "hmac-sha256", "secret": "s", "header": "x-hub-signature-256", "prefix": "sha256=" }"#,
        );
        let signed = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let secret = b"It's a Secret to Everybody";
        let sound = headers(&[("x-hub-signature-256", signed)]);
        assert!(proved(&hub, secret, (&sound, b"Hello, World!"), at(0)).is_some());
        assert!(proved(&hub, secret, (&sound, b"Hello, World?"), at(0)).is_none());
        let token = signature(r#"{ "scheme": "token", "secret": "s", "header": "x-token" }"#);
        assert!(proved(&token, b"abc", (&headers(&[("x-token", "abc")]), b""), at(0)).is_some());
        for other in ["abd", "ab", ""] {
            assert!(
                proved(&token, b"abc", (&headers(&[("x-token", other)]), b""), at(0)).is_none(),
                "{other}"
            );
        }
        assert!(proved(&token, b"abc", (&HeaderMap::new(), b""), at(0)).is_none());
    }

    #[test]
    fn an_empty_secret_proves_nothing() {
        let token = signature(r#"{ "scheme": "token", "secret": "s", "header": "x-token" }"#);
        assert!(proved(&token, b"", (&headers(&[("x-token", "")]), b""), at(0)).is_none());
        let hub = signature(r#"{ "scheme": "hmac-sha256", "secret": "s", "header": "x-hub-signature-256" }"#);
        let signed = hex::encode(Hmac::<Sha256>::new_from_slice(b"").unwrap().finalize().into_bytes());
        let given = headers(&[("x-hub-signature-256", &signed)]);
        assert!(proved(&hub, b"", (&given, b""), at(0)).is_none());
    }
}
