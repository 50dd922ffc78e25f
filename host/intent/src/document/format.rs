//! In which format a document is sent and answered.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use heddle_core::words;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::http::extract::too_large;
use serde_json::Value;

use super::bounds::{DOCUMENT_BYTES_MAX, Problem, refused};
use super::{json, yaml};

/// Media type of documents in YAML (RFC 9512).
pub(super) const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

words! {
    /// Formats of documents.
    pub enum Format {
        Yaml = "yaml",
        Json = "json",
    }
}

impl Format {
    /// The one that a media type names.
    fn of(media: &str) -> Option<Self> {
        let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            YAML | "text/yaml" | "application/x-yaml" | "text/x-yaml" => Some(Self::Yaml),
            JSON => Some(Self::Json),
            _ if essence.ends_with("+json") => Some(Self::Json),
            _ if essence.ends_with("+yaml") => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The one that the client asks for: by the query, else the first that `Accept` names; JSON where it names none.
    pub(super) fn asked(query: Option<Self>, headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let accepted = accepted.flat_map(|value| value.split(',')).find_map(Self::of);
        query.or(accepted).unwrap_or(Self::Json)
    }

    /// Answers a document.
    pub(super) fn answer(self, document: &Value) -> Result<Response, Error> {
        let (media, text) = match self {
            Self::Yaml => (YAML, yaml::write(document)),
            Self::Json => (JSON, serde_json::to_string_pretty(document).map_err(Error::internal)?),
        };
        if text.len() > DOCUMENT_BYTES_MAX {
            let message = format!(
                "the document would have more than {DOCUMENT_BYTES_MAX} bytes; ask for one controller (controller_id) or \
                 one kind (kind)"
            );
            return Err(refused(&[Problem::at("", message, "too_large")]));
        }
        Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(media))], text).into_response())
    }
}

/// A document as it was sent.
#[derive(Debug)]
pub(super) struct Sent {
    bytes: Bytes,
    format: Format,
}

impl Sent {
    /// Reads it; each problem names its place.
    pub(super) fn read(&self) -> Result<Value, Problem> {
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|_| Problem::at("", "the document must be UTF-8", "value_error"))?;
        match self.format {
            Format::Yaml => yaml::read(text),
            Format::Json => json::read(text),
        }
    }
}

impl FromRequest<SharedApp> for Sent {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Error> {
        let media = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let format = media.map_or(Some(Format::Json), Format::of).ok_or_else(|| {
            let message = format!("must be '{JSON}' or '{YAML}'");
            Error::Validation(vec![Detail::new("content-type", message, "content_type")])
        })?;
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| too_large(&rejection))?;
        Ok(Self { bytes, format })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_wins_over_what_is_accepted() {
        let asked = |accept: &str, query| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            Format::asked(query, &headers)
        };
        assert_eq!(asked("application/yaml", None), Format::Yaml);
        assert_eq!(asked("text/html, application/json;q=0.9", None), Format::Json);
        assert_eq!(asked("*/*", None), Format::Json);
        assert_eq!(asked("application/yaml", Some(Format::Json)), Format::Json);
        assert_eq!(asked("application/json", Some(Format::Yaml)), Format::Yaml);
    }
}
