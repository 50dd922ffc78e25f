//! `ETag` and `If-Match`: an object is changed only as it was seen.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::{MapAccess, Visitor};
use serde::{Deserializer as _, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::app::SharedApp;
use crate::http::error::Error;

/// What readings and counts change by themselves. An `ETag` names what people edit, so these do not move it.
const MEASURED: &[&str] = &[
    "conflicts_with",
    "controller_count",
    "device_count",
    "token_version",
    "last_sync_at",
    "next_sync_at",
    "last_seen_at",
    "last_used_at",
    "last_fired_at",
    "next_due_at",
    "upcoming",
    "measurements",
    "attributes",
    "addresses",
    "firmware",
    "product",
    "last_error",
    "last_delivered_at",
    "last_failed_at",
    "consecutive_failures",
    "problem",
    "unqueued",
    "status",
    "locked_until",
    "updated_at",
];
/// Fields that are shown once: in the first answer of the request that made them. The object is the same without them.
pub const SHOWN_ONCE: &[&str] = &["api_key", "client_secret", "signing_secret"];

/// 200 with one object and its `ETag`.
#[derive(Debug)]
pub struct One<T>(pub T);

impl<T: Serialize> IntoResponse for One<T> {
    fn into_response(self) -> Response {
        let response = Tagged::new(&self.0).and_then(|object| tagged(StatusCode::OK, object));
        response.unwrap_or_else(Error::into_response)
    }
}

/// An object as it is answered, and its tag.
pub(crate) struct Tagged {
    pub(crate) json: String,
    tag: String,
}

impl Tagged {
    pub(crate) fn new<T: Serialize>(object: &T) -> Result<Self, Error> {
        Ok(Self::from_json(serde_json::to_string(object).map_err(Error::internal)?))
    }

    pub(crate) fn from_json(json: String) -> Self {
        let tag = tag(&json);
        Self { json, tag }
    }
}

/// The object without what is shown once.
pub(crate) fn without_secrets(json: &str) -> Result<String, Error> {
    let mut value: Value = serde_json::from_str(json).map_err(Error::internal)?;
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !SHOWN_ONCE.contains(&name.as_str()));
    }
    Ok(value.to_string())
}

/// The object with its `ETag`.
pub(crate) fn tagged(status: StatusCode, object: Tagged) -> Result<Response, Error> {
    let tag = HeaderValue::from_str(&object.tag).map_err(Error::internal)?;
    let json = HeaderValue::from_static("application/json");
    Ok((status, [(header::ETAG, tag), (header::CONTENT_TYPE, json)], object.json).into_response())
}

/// The tag of an object, from its JSON text.
fn tag(json: &str) -> String {
    let mut digest = Sha256::new();
    let mut reader = serde_json::Deserializer::from_str(json);
    if reader.deserialize_map(Edited(&mut digest)).is_err() {
        digest.update(json);
    }
    format!("\"{}\"", hex::encode(&digest.finalize()[..16]))
}

/// Adds the fields that people edit to a digest, each as it stands in the text.
struct Edited<'d>(&'d mut Sha256);

impl<'de> Visitor<'de> for Edited<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some((name, value)) = fields.next_entry::<Cow<'de, str>, &'de RawValue>()? {
            if MEASURED.contains(&&*name) || SHOWN_ONCE.contains(&&*name) {
                continue;
            }
            for part in [&*name, value.get()] {
                self.0.update(part);
                // Neither the name of a field nor JSON holds this character: no two objects give the same bytes.
                self.0.update([0]);
            }
        }
        Ok(())
    }
}

/// The `If-Match` of a request; absent, it lets everything through.
#[derive(Debug, Clone, Default)]
pub struct IfMatch(Option<String>);

impl IfMatch {
    /// Whether the client said how it saw the object.
    pub fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// 412 unless the object is as the client saw it. To be asked within the transaction that changes it.
    pub fn check<T: Serialize>(&self, current: &T) -> Result<(), Error> {
        let Some(given) = &self.0 else { return Ok(()) };
        let tag = tag(&serde_json::to_string(current).map_err(Error::internal)?);
        // A weak tag never matches strongly (RFC 9110 section 13.1.1).
        let fits = given.split(',').map(str::trim).any(|one| one == "*" || one == tag);
        if fits { Ok(()) } else { Err(Error::PreconditionFailed) }
    }
}

impl FromRequestParts<SharedApp> for IfMatch {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &SharedApp) -> Result<Self, Error> {
        let mut values = parts.headers.get_all(header::IF_MATCH).iter().peekable();
        if values.peek().is_none() {
            return Ok(Self(None));
        }
        let texts: Result<Vec<&str>, _> = values.map(HeaderValue::to_str).collect();
        let texts =
            texts.map_err(|_| Error::field("if-match", "must hold entity tags such as '\"5f1c…\"'"))?;
        Ok(Self(Some(texts.join(","))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(given: Option<&str>, fits: bool) {
        let site = json!({ "id": 1, "name": "Head office", "device_count": 7 });
        let own = tag(r#"{"device_count":8,"id":1,"name":"Head office"}"#);
        let given = given.map(|text| text.replace("OWN", &own));
        assert_eq!(IfMatch(given.clone()).check(&site).is_ok(), fits, "{given:?}");
    }

    #[test]
    fn an_object_is_changed_only_as_it_was_seen() {
        check(None, true);
        check(Some("*"), true);
        check(Some("OWN"), true);
        check(Some("\"other\", OWN"), true);
        check(Some("W/OWN"), false);
        check(Some("\"other\""), false);
        check(Some(""), false);
        assert_ne!(tag(r#"{"name":"a"}"#), tag(r#"{"name":"b"}"#));
        assert_ne!(tag(r#"{"a":1,"b":2}"#), tag(r#"{"a":12}"#));
    }
}
