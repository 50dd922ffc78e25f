//! Typed extractors that refuse with the service's own errors.

use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use heddle_core::page::{Cursor, PageRequest, Place, WalkRequest};
use heddle_store::{Sort, Sorted};
use serde::de::DeserializeOwned;

use crate::app::SharedApp;
use crate::caller::rights::Caller;
use crate::http::error::{Detail, Error};
use crate::http::nulls::Strict;

/// A JSON body. Unknown fields, wrong types and broken JSON are 422 and name the field.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<SharedApp> for Json<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Error> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let is_json = content_type.is_none_or(|text| {
            let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            essence == "application/json" || essence.ends_with("+json")
        });
        if !is_json {
            return Err(Error::Validation(vec![Detail::new(
                "content-type",
                "body must be JSON: send 'content-type: application/json'",
                "content_type",
            )]));
        }
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| too_large(&rejection))?;
        parse(&bytes).map(Json)
    }
}

/// Returns the error for a body that could not be read: 413 where it is larger than 1 MiB, 400 where it came
/// too slowly or broke off. It is for extractors that read the bytes themselves.
pub fn too_large(rejection: &BytesRejection) -> Error {
    unread(rejection, super::body::BODY_BYTES_MAX)
}

/// The same for a body that may have so many bytes.
pub(super) fn unread(rejection: &BytesRejection, max: usize) -> Error {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        super::body::too_large(max)
    } else {
        broken(rejection)
    }
}

/// Returns the error for a body that came too slowly or broke off.
pub(super) fn broken(error: &(dyn std::error::Error + 'static)) -> Error {
    match super::body::TooSlow::find(error) {
        Some(slow) => Error::BadRequest { kind: "request_timeout", message: slow.to_string() },
        None => Error::BadRequest { kind: "bad_request", message: "request body cannot be read".to_owned() },
    }
}

/// A form, as OAuth 2.0 sends it. Fields that `T` does not have are ignored, as the standard demands.
#[derive(Debug)]
pub struct Form<T>(pub T);

impl<T: DeserializeOwned> FromRequest<SharedApp> for Form<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Error> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Error::Validation(vec![Detail::new(
                "content-type",
                "body must be a form: send 'content-type: application/x-www-form-urlencoded'",
                "content_type",
            )]));
        }
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| too_large(&rejection))?;
        let mut seen = std::collections::BTreeSet::new();
        for (name, value) in url::form_urlencoded::parse(&bytes) {
            if value.contains('\0') {
                return Err(Error::field(&name, NUL_REFUSED));
            }
            // RFC 6749, section 3.2: parameters must not be included more than once.
            if !seen.insert(name.clone()) {
                return Err(Error::field(&name, "is in the form more than once"));
            }
        }
        serde_urlencoded::from_bytes(&bytes).map(Form).map_err(|error| {
            let message = error.to_string().replace('`', "'");
            let field = message.split('\'').nth(1).unwrap_or("body").to_owned();
            let kind = if message.starts_with("missing field") { "missing" } else { "value_error" };
            Error::Validation(vec![Detail::new(field, message, kind)])
        })
    }
}

/// A file as the body of a request, for routes that [take one](crate::http::routes::Doc::takes). `T` names its media type.
#[derive(Debug)]
pub struct File<T>(pub Bytes, PhantomData<T>);

/// A media type of files, such as `application/zip`.
pub trait Media: Send {
    const TYPE: &'static str;
}

impl<T: Media> FromRequest<SharedApp> for File<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Error> {
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case(T::TYPE) {
            return Err(Error::Validation(vec![Detail::new(
                "content-type",
                format!("body must be a file: send 'content-type: {}'", T::TYPE),
                "content_type",
            )]));
        }
        // The guard has read it within the limit of the route.
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| too_large(&rejection))?;
        Ok(Self(bytes, PhantomData))
    }
}

/// A body that may be left out.
impl<T: DeserializeOwned> OptionalFromRequest<SharedApp> for Json<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Option<Self>, Error> {
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| too_large(&rejection))?;
        if bytes.is_empty() { Ok(None) } else { parse(&bytes).map(|value| Some(Json(value))) }
    }
}

/// The refusal of a character that one of the databases cannot store.
const NUL_REFUSED: &str = "the character U+0000 is not accepted";

/// Parses a body; the error names the field.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    // One of the databases cannot store this character in a text.
    if bytes.windows(6).any(|window| window == br"\u0000") {
        return Err(Error::field("body", NUL_REFUSED));
    }
    // serde would fill the fields of the type from an array, in their order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        let message = "must be a JSON object, not an array";
        return Err(Error::Validation(vec![Detail::new("body", message, "type_error")]));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let value =
        T::deserialize(Strict::new(tracked)).map_err(|error| invalid(&track.path().to_string(), &error))?;
    deserializer.end().map_err(|error| invalid(".", &error))?;
    Ok(value)
}

fn invalid(path: &str, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let message = super::words::in_api_words(text.split(" at line ").next().unwrap_or(&text));
    let quoted = message.split('\'').nth(1).unwrap_or_default();
    let (kind, leaf) = if message.starts_with("unknown field") {
        ("unknown_field", Some(quoted))
    } else if message.starts_with("missing field") {
        ("missing", Some(quoted))
    } else if error.is_data() {
        ("type_error", None)
    } else {
        ("json_invalid", None)
    };
    let base = if path == "." || path == "?" { "body" } else { path };
    let field = match leaf {
        Some(leaf) if base == "body" => leaf.to_owned(),
        // The path of an unknown field already ends in its name.
        Some(leaf) if base == leaf || base.ends_with(&format!(".{leaf}")) => base.to_owned(),
        Some(leaf) => format!("{base}.{leaf}"),
        None => base.to_owned(),
    };
    Error::Validation(vec![Detail::new(field, message, kind)])
}

/// Query parameters. Unknown and malformed ones are 422.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<SharedApp> for Params<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Error> {
        refuse_nul(parts.uri.query().unwrap_or_default())?;
        let Query(value) = Query::<T>::from_request_parts(parts, app).await.map_err(|rejection| {
            let text = match &rejection {
                QueryRejection::FailedToDeserializeQueryString(inner) => inner.body_text(),
                other => other.body_text(),
            };
            let message = text.trim_start_matches("Failed to deserialize query string: ").replace('`', "'");
            let field = message.split([':', '\'']).nth(1).map_or("query", str::trim).to_owned();
            let field = message.split_once(": ").map_or(field, |(name, _)| name.to_owned());
            Error::Validation(vec![Detail::new(field, message, "value_error")])
        })?;
        Ok(Self(value))
    }
}

fn refuse_nul(query: &str) -> Result<(), Error> {
    match url::form_urlencoded::parse(query.as_bytes()).find(|(_, value)| value.contains('\0')) {
        Some((name, _)) => Err(Error::field(&name, NUL_REFUSED)),
        None => Ok(()),
    }
}

/// Path parameters. A malformed id is 422.
#[derive(Debug)]
pub struct At<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<SharedApp> for At<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Error> {
        // The path matched a route, so this can only be in a parameter.
        if parts.uri.path().contains("%00") {
            return Err(Error::field("path", NUL_REFUSED));
        }
        let Path(value) = Path::<T>::from_request_parts(parts, app).await.map_err(|_| {
            Error::Validation(vec![Detail::new("path", "path holds an id that is not a UUID", "uuid")])
        })?;
        Ok(Self(value))
    }
}

/// The guard inserted it; a public route has none.
impl FromRequestParts<SharedApp> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &SharedApp) -> Result<Self, Error> {
        parts.extensions.get::<Caller>().cloned().ok_or(Error::Unauthenticated("authentication is required"))
    }
}

/// The origin of a request, for sessions, limits and the audit log.
#[derive(Debug, Clone)]
pub struct Origin {
    pub ip: String,
    pub user_agent: String,
    pub request_id: String,
    pub is_https: bool,
}

impl FromRequestParts<SharedApp> for Origin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &SharedApp) -> Result<Self, Error> {
        let client = parts.extensions.get::<super::client::Client>();
        let header = |name| parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
        Ok(Self {
            ip: client.map(|client| client.ip.to_string()).unwrap_or_default(),
            user_agent: header(header::USER_AGENT).chars().take(300).collect(),
            request_id: parts
                .extensions
                .get::<super::request_id::RequestId>()
                .map(|id| id.0.clone())
                .unwrap_or_default(),
            is_https: client.is_some_and(|client| client.is_https),
        })
    }
}

/// Rows of a page when the caller does not say.
pub const PER_PAGE_DEFAULT: u32 = 50;
/// Most rows of a page, unless a list says otherwise.
pub const PER_PAGE_MAX: u32 = 200;

/// Checks `page` and `per_page` against their bounds.
pub fn page_request(page: Option<u32>, per_page: Option<u32>, max: u32) -> Result<PageRequest, Error> {
    let request = PageRequest { page: page.unwrap_or(1), per_page: per_page.unwrap_or(PER_PAGE_DEFAULT) };
    if request.page < 1 {
        return Err(Error::field("page", "page counts from 1"));
    }
    if request.per_page < 1 || request.per_page > max {
        return Err(Error::field("per_page", format!("per_page must be from 1 to {max}")));
    }
    Ok(request)
}

/// Checks `page`, `per_page`, `cursor` and `sort` of a list without an end, such as events. The direction of a cursor is
/// part of it.
pub fn walk_request<T: Sorted>(
    (page, per_page, cursor): (Option<u32>, Option<u32>, Option<&str>),
    sort: Option<Sort<T>>,
    max: u32,
) -> Result<WalkRequest, Error> {
    let request = page_request(page, per_page, max)?;
    let wanted = sort.map(|sort| sort.is_ascending());
    let mut is_ascending = wanted.unwrap_or_default();
    let place = match cursor {
        None => Place::Page(request.page),
        Some(_) if page.is_some() => {
            return Err(Error::field("cursor", "cursor and page exclude each other; send one of them"));
        }
        Some(text) => {
            let (cursor, direction) = Cursor::decode(text).ok_or_else(|| {
                Error::field(
                    "cursor",
                    "cursor is not the next_cursor of an answer; send it as it was answered",
                )
            })?;
            if wanted.is_some_and(|wanted| wanted != direction) {
                return Err(Error::field(
                    "sort",
                    "sort is not that of the answer that the cursor came with; leave it out",
                ));
            }
            is_ascending = direction;
            Place::Behind(cursor)
        }
    };
    Ok(WalkRequest { per_page: request.per_page, place, is_ascending })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_nul(query: &str, field: Option<&str>) {
        match (refuse_nul(query), field) {
            (Ok(()), None) => {}
            (Err(Error::Validation(details)), Some(field)) => assert_eq!(details[0].field, field, "{query}"),
            (other, _) => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn a_body_is_an_object() {
        #[derive(Debug, serde::Deserialize)]
        struct Body {
            #[serde(default)]
            name: Option<String>,
        }
        assert_eq!(parse::<Body>(b" {\"name\": \"x\"}").unwrap().name.as_deref(), Some("x"));
        for array in [&b"[]"[..], b" [\"x\"]"] {
            let Err(Error::Validation(details)) = parse::<Body>(array) else { panic!("an array is refused") };
            assert_eq!((details[0].field.as_str(), details[0].kind.as_str()), ("body", "type_error"));
        }
    }

    #[test]
    fn a_parameter_with_the_character_0_is_refused_by_its_name() {
        check_nul("", None);
        check_nul("search=a%20b&page=1", None);
        check_nul("search=100%2500", None);
        check_nul("page=1&search=a%00b", Some("search"));
    }
}
