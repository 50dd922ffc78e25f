//! Requests of controllers to the host: their proof, and what they tell.

use heddle_core::Timestamp;
use heddle_core::secret::Secret;
use heddle_marketplace::push::{Channel, ProofAt, Transport};
use http::HeaderMap;
use serde_json::Value;

use super::incoming::{Incoming, Parsed};
use super::limits::HOOK_BODY_BYTES_MAX;
use super::rules::{self, Memory};
use super::told::{Place, Told};
use crate::proof::{is_token, proved};

/// Why a request to a hook is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unheard {
    /// The manifest has no such channel, or it is one that the host opens.
    #[error("the package has no such hook")]
    Undeclared,
    /// The body has more than [`HOOK_BODY_BYTES_MAX`] bytes.
    #[error("the request is too large")]
    TooLarge,
    /// It does not prove that it is of the controller.
    #[error("the request has no valid proof")]
    Unproved,
}

/// Judges a request to a hook, and says what it asks for. A body that is no JSON, or too much of it, asks for nothing where
/// its proof stands elsewhere.
pub(super) fn heard(
    channel: &Channel,
    secret: &Secret,
    (headers, body): (&HeaderMap, &[u8]),
    now: Timestamp,
) -> Result<Vec<Told>, Unheard> {
    let Some(Transport::Hook(hook)) = channel.transport() else { return Err(Unheard::Undeclared) };
    if body.len() > HOOK_BODY_BYTES_MAX {
        return Err(Unheard::TooLarge);
    }
    let secret = secret.expose().as_bytes();
    let in_header = matches!(hook.proof.at, ProofAt::Header(_));
    if in_header && proved(&hook.proof.signature(), secret, (headers, body), now).is_none() {
        return Err(Unheard::Unproved);
    }
    let message = match Incoming::Text(body.to_vec()).parse() {
        Parsed::Messages(messages) => messages.into_iter().next(),
        Parsed::NotJson | Parsed::TooMuch => None,
    };
    if let ProofAt::Json(pointer) = &hook.proof.at {
        let given = message.as_ref().and_then(|message| message.pointer(pointer)).and_then(Value::as_str);
        if !given.is_some_and(|given| is_token(given, secret)) {
            return Err(Unheard::Unproved);
        }
    }
    let told =
        message.map(|message| rules::wanted(channel, &Place::Controller, &message, &mut Memory::default()));
    Ok(told.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, Mac as _};
    use serde_json::json;
    use sha2::Sha256;

    use super::super::told::ToldSite;
    use super::*;

    fn channel(proof: Value) -> Channel {
        serde_json::from_value(json!({
            "hook": { "proof": proof, "quiet-s": 3600 },
            "site": { "at": "/Site", "is": "name" },
            "rules": [
                { "when": { "/text/*": ["*lient*"] }, "reads": ["client"], "every-s": 5 },
                { "when": { "/Controller": ["*"] }, "reads": ["device"], "again-s": 5 }
            ]
        }))
        .unwrap()
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn judged(channel: &Channel, headers: &HeaderMap, body: &[u8]) -> Result<Vec<Told>, Unheard> {
        let now = Timestamp::from_timestamp(1_000, 0).unwrap();
        heard(channel, &Secret::new("It's a Secret to Everybody"), (headers, body), now)
    }

    #[test]
    fn a_token_in_the_body_proves_a_request_and_its_rules_are_told() {
        let channel = channel(json!({ "scheme": "token", "at": { "json": "/secret" } }));
        let none = HeaderMap::new();
        let body = |secret: Value| {
            json!({"secret": secret, "Site": "Home", "Controller": "x", "text": ["[client:a] is online"]})
                .to_string()
        };
        let told = judged(&channel, &none, body(json!("It's a Secret to Everybody")).as_bytes()).unwrap();
        let site = ToldSite::Name("Home".to_owned());
        let expected = [
            Told {
                reads: vec!["client".to_owned()],
                site: site.clone(),
                again_s: None,
                every_s: Some(5),
                rule: Some(0),
            },
            Told { reads: vec!["device".to_owned()], site, again_s: Some(5), every_s: None, rule: Some(1) },
        ];
        assert_eq!(told, expected);
        for secret in [json!("it's a secret to everybody"), json!(""), json!(null), json!(["x"])] {
            assert_eq!(judged(&channel, &none, body(secret).as_bytes()), Err(Unheard::Unproved));
        }
        assert_eq!(judged(&channel, &none, b"hello"), Err(Unheard::Unproved));
        let large = body(json!("x".repeat(HOOK_BODY_BYTES_MAX)));
        assert_eq!(judged(&channel, &none, large.as_bytes()), Err(Unheard::TooLarge));
        let empty =
            heard(&channel, &Secret::default(), (&none, body(json!("")).as_bytes()), Timestamp::default());
        assert_eq!(empty, Err(Unheard::Unproved), "a controller without a secret");
    }

    #[test]
    fn a_token_or_a_signature_in_a_header_proves_a_request() {
        let token = channel(json!({ "scheme": "token", "at": { "header": "X-Token" }, "prefix": "Key " }));
        let given = headers(&[("x-token", "Key It's a Secret to Everybody")]);
        assert_eq!(judged(&token, &given, b"no JSON tells nothing"), Ok(Vec::new()));
        assert_eq!(judged(&token, &headers(&[("x-token", "Key other")]), b"{}"), Err(Unheard::Unproved));
        assert_eq!(judged(&token, &HeaderMap::new(), b"{}"), Err(Unheard::Unproved));
        let signed = channel(
            json!({ "scheme": "hmac-sha256", "at": { "header": "X-Signature" }, "prefix": "sha256=" }),
        );
        // The example of GitHub's documentation.
        let given = headers(&[(
            "x-signature",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        )]);
        assert_eq!(judged(&signed, &given, b"Hello, World!"), Ok(Vec::new()));
        assert_eq!(judged(&signed, &given, b"Hello, World?"), Err(Unheard::Unproved));
        let mut twice = given.clone();
        twice.append("x-signature", "sha256=00".parse().unwrap());
        assert_eq!(judged(&signed, &twice, b"Hello, World!"), Err(Unheard::Unproved));
    }

    #[test]
    fn a_signed_time_bounds_how_old_a_request_is() {
        let channel = channel(json!({
            "scheme": "hmac-sha256", "at": { "header": "X-Signature" }, "signed": "{header.X-Time}.{body}",
            "timestamp": { "header": "X-Time", "tolerance-s": 60 }
        }));
        let request = |time: &str| {
            let mut mac = Hmac::<Sha256>::new_from_slice(b"It's a Secret to Everybody").unwrap();
            mac.update(format!("{time}.{{}}").as_bytes());
            let signature = hex::encode(mac.finalize().into_bytes());
            headers(&[("x-signature", &signature), ("x-time", time)])
        };
        for (time, is_taken) in
            [("1000", true), ("940", true), ("1060", true), ("939", false), ("1061", false), ("x", false)]
        {
            assert_eq!(judged(&channel, &request(time), b"{}").is_ok(), is_taken, "{time}");
        }
    }

    #[test]
    fn a_channel_that_is_opened_is_no_hook() {
        let watch = json!({
            "watch": { "every-ms": 1000, "items": "", "key": "/id", "of": ["/a"] },
            "rules": [{ "when": { "/id": ["*"] }, "reads": ["device"] }]
        });
        let watch: Channel = serde_json::from_value(watch).unwrap();
        assert_eq!(judged(&watch, &HeaderMap::new(), b"{}"), Err(Unheard::Undeclared));
    }
}
