//! `ETag` and `If-Match`: an object is changed only in the state that the client saw.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heddle_store::object::Revised;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::app::SharedApp;
use crate::http::error::Error;

/// Fields that are shown once: in the first answer of the request that made them. They are not part of the object.
pub const SHOWN_ONCE: &[&str] = &["api_key", "client_secret", "signing_secret"];

/// Revision of objects that are created and removed, but never edited.
pub const UNEDITED: i64 = 1;

/// The value of an `ETag`. It names the state that people edit: measured and counted values do not change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// Returns the tag of an object from the number of its edits, also edits of fields that no answer shows.
    pub fn of(id: impl Into<Uuid>, revision: i64) -> Self {
        Self::of_parts([id.into().as_bytes().as_slice(), revision.to_be_bytes().as_slice()])
    }

    /// Returns the tag of bytes that together identify an object and its state.
    pub(crate) fn of_parts<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        Self(format!("\"{}\"", hex::encode(&digest.finalize()[..16])))
    }

    /// Returns the tag of the object as it is shown, without these fields. For objects that are reviewed as they are
    /// shown.
    pub fn of_shown<T: Serialize>(object: &T, but: &[&str]) -> Result<Self, Error> {
        let text = json(object)?;
        // Only the outermost fields are looked at: an object such as a plan has hundreds of values.
        let Ok(Fields(fields)) = serde_json::from_str(&text) else {
            return Ok(Self::of_parts([text.as_bytes()]));
        };
        let kept = fields.iter().filter(|(name, _)| !but.contains(&name.as_str()));
        let kept: Vec<String> =
            kept.map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
        Ok(Self::of_parts([format!("{{{}}}", kept.join(",")).as_bytes()]))
    }

    /// Returns the tag that was stored with an answer; `None` where it had none.
    pub(crate) fn kept(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The fields of a JSON object in their order, each with the text of its value.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Fields<'t> {
    fn deserialize<D: Deserializer<'t>>(text: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'t> Visitor<'t> for InOrder {
            type Value = Fields<'t>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'t>>(self, mut map: M) -> Result<Fields<'t>, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        text.deserialize_map(InOrder)
    }
}

/// An object that has an `ETag`.
pub trait Tagged {
    /// # Errors
    /// None that a caller can cause: an object that cannot be serialized.
    fn tag(&self) -> Result<Tag, Error>;
}

impl<T: Revised> Tagged for T {
    fn tag(&self) -> Result<Tag, Error> {
        let revision = self.revision();
        Ok(Tag::of(revision.object, revision.number))
    }
}

/// 200 with one object and its `ETag`.
#[derive(Debug)]
pub struct One<T>(pub T);

impl<T: Serialize + Tagged> IntoResponse for One<T> {
    fn into_response(self) -> Response {
        let answer = || tagged(StatusCode::OK, json(&self.0)?, Some(&self.0.tag()?));
        answer().unwrap_or_else(Error::into_response)
    }
}

/// The text of an answer's body.
pub(crate) fn json<T: Serialize>(object: &T) -> Result<String, Error> {
    serde_json::to_string(object).map_err(Error::internal)
}

/// Returns the object without the fields that are shown once.
pub(crate) fn without_secrets(json: &str) -> Result<String, Error> {
    let mut value: Value = serde_json::from_str(json).map_err(Error::internal)?;
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !SHOWN_ONCE.contains(&name.as_str()));
    }
    Ok(value.to_string())
}

/// The object with its `ETag`.
pub(crate) fn tagged(status: StatusCode, json: String, tag: Option<&Tag>) -> Result<Response, Error> {
    let kind = HeaderValue::from_static("application/json");
    let mut response = (status, [(header::CONTENT_TYPE, kind)], json).into_response();
    if let Some(tag) = tag {
        let tag = HeaderValue::from_str(tag.as_str()).map_err(Error::internal)?;
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// The `If-Match` of a request. When it is absent, every state is accepted.
#[derive(Debug, Clone, Default)]
pub struct IfMatch(Option<String>);

impl IfMatch {
    /// Whether the client named the state that it saw.
    pub fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// Answers 412 unless the object is in the state that the client saw. Call it in the transaction that changes it.
    pub fn check(&self, current: &impl Tagged) -> Result<(), Error> {
        let Some(given) = &self.0 else { return Ok(()) };
        let tag = current.tag()?;
        // A weak tag never matches strongly (RFC 9110 section 13.1.1).
        let fits = given.split(',').map(str::trim).any(|one| one == "*" || one == tag.as_str());
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
    use heddle_core::SiteId;
    use serde_json::json;

    use super::*;

    struct Site {
        id: SiteId,
        revision: i64,
    }
    heddle_store::revised!(Site);

    #[track_caller]
    fn check(given: Option<&str>, fits: bool) {
        let site = Site { id: SiteId(Uuid::from_u128(7)), revision: 3 };
        let own = site.tag().unwrap();
        let given = given.map(|text| text.replace("OWN", own.as_str()));
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
    }

    #[test]
    fn an_answer_that_was_kept_without_a_tag_has_none() {
        let tag = Tag::of(Uuid::from_u128(1), 1);
        assert_eq!(Tag::kept(tag.as_str().to_owned()), Some(tag));
        let answer = tagged(StatusCode::CREATED, "{}".to_owned(), Tag::kept(String::new()).as_ref()).unwrap();
        assert_eq!(answer.headers().get(header::ETAG), None);
    }

    #[test]
    fn a_tag_is_that_of_one_state_of_one_object() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_ne!(Tag::of(one, 1), Tag::of(one, 2));
        assert_ne!(Tag::of(one, 1), Tag::of(other, 1));
        assert_ne!(Tag::of_parts([b"ab".as_slice(), b"c"]), Tag::of_parts([b"a".as_slice(), b"bc"]));
        let shown = |plan: &str, status: &str| {
            Tag::of_shown(&json!({ "plan": plan, "status": status }), &["status"]).unwrap()
        };
        assert_eq!(shown("a", "pending"), shown("a", "applied"));
        assert_ne!(shown("a", "pending"), shown("b", "pending"));
    }

    #[test]
    fn a_tag_of_what_is_shown_is_that_of_its_text_without_the_fields() {
        let deep =
            json!({ "z": [1, 2.5, "a \"quoted\" status"], "status": { "status": null }, "ü": "\u{1}" });
        let shown = json!({ "status": "pending", "deep": deep, "a\"b": 1, "last": [] });
        let kept = json!({ "deep": deep, "a\"b": 1, "last": [] });
        let expected = |text: String| Tag::of_parts([text.as_bytes()]);
        assert_eq!(Tag::of_shown(&shown, &["status"]).unwrap(), expected(kept.to_string()));
        assert_eq!(Tag::of_shown(&json!({ "status": 1 }), &["status"]).unwrap(), expected("{}".to_owned()));
        assert_eq!(Tag::of_shown(&["status"], &["status"]).unwrap(), expected("[\"status\"]".to_owned()));
    }
}
