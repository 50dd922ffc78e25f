//! Forms as browsers and apps send them, and the tokens against forgery by other sites.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, header};
use chrono::TimeDelta;
use heddle_core::secret::Secret;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::too_large;
use heddle_kernel::keys::keyed_hash;
use serde_json::json;
use subtle::ConstantTimeEq as _;

use super::refusal::{OauthError, OauthRefusal};

/// Characters of a field's name that a refusal shows.
const NAME_CHARS_SHOWN: usize = 50;
/// How long a shown form can be sent.
const FORM_MINUTES: i64 = 10;

/// Most bytes of a field. The longest field is the request that a form carries: it came in the head of a message, which
/// has no more bytes.
pub(super) const FIELD_BYTES_MAX: usize = 32 * 1024;

/// The fields of a form. Unknown fields have no effect; no field occurs twice.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns a field. An empty value counts as left out.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn secret(&self, name: &str) -> Option<Secret> {
        self.get(name).map(Secret::new)
    }

    pub(super) fn require(&self, name: &str) -> Result<&str, OauthRefusal> {
        self.get(name).ok_or_else(|| invalid(format!("parameter '{name}' is missing")))
    }
}

fn invalid(error_description: String) -> OauthRefusal {
    OauthRefusal { error: OauthError::InvalidRequest, error_description }
}

impl FromRequest<SharedApp> for Fields {
    type Rejection = Error;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, Error> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let message = "send a form: 'content-type: application/x-www-form-urlencoded'";
            return Err(invalid(message.to_owned()).into());
        }
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| too_large(&rejection))?;
        Ok(parse(&bytes)?)
    }
}

fn parse(bytes: &[u8]) -> Result<Fields, OauthRefusal> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (name, value) in url::form_urlencoded::parse(bytes).into_owned() {
        if fields.iter().any(|(known, _)| *known == name) {
            return Err(invalid("a parameter must not be repeated".to_owned()));
        }
        if value.len() > FIELD_BYTES_MAX {
            let shown: String = name.chars().take(NAME_CHARS_SHOWN).collect();
            return Err(invalid(format!(
                "parameter '{shown}' must not have more than {FIELD_BYTES_MAX} bytes"
            )));
        }
        // One of the databases cannot store this character in a text.
        if value.contains('\0') {
            return Err(invalid("the character U+0000 is not accepted".to_owned()));
        }
        fields.push((name, value));
    }
    Ok(Fields(fields))
}

/// Whether the browser says that one of our pages sent this, or does not name the sender: old browsers and tests do
/// not.
fn is_from_here(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, None | Some(b"same-origin" | b"none"))
}

/// Returns a token for a form; `binding` names its user and its purpose. It is valid for ten minutes.
pub(super) fn form_token<T: AsRef<str>>(app: &App, binding: &[T]) -> String {
    let until = (app.clock.now() + TimeDelta::minutes(FORM_MINUTES)).timestamp();
    format!("{until}.{}", seal(app, until, binding))
}

/// Whether one of our pages sent the form, with a token that was made for this binding and has not expired.
pub(super) fn is_ours<T: AsRef<str>>(
    app: &App,
    headers: &HeaderMap,
    binding: &[T],
    token: Option<&str>,
) -> bool {
    if !is_from_here(headers) {
        return false;
    }
    let Some((until, given)) = token.and_then(|token| token.split_once('.')) else { return false };
    let Ok(until) = until.parse::<i64>() else { return false };
    let fits: bool = seal(app, until, binding).as_bytes().ct_eq(given.as_bytes()).into();
    fits && app.clock.now().timestamp() < until
}

fn seal<T: AsRef<str>>(app: &App, until: i64, binding: &[T]) -> String {
    let binding: Vec<&str> = binding.iter().map(AsRef::as_ref).collect();
    keyed_hash(&app.keys.form_key(), &Secret::new(json!([until, binding]).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_and_no_field_comes_twice() {
        let fields = parse(b"a=1&b=x+y%21&c=").unwrap();
        assert_eq!((fields.get("a"), fields.get("b"), fields.get("c")), (Some("1"), Some("x y!"), None));
        assert!(fields.require("d").unwrap_err().error_description.contains("'d'"));
        assert!(parse(b"a=1&a=1").is_err());
        assert!(parse(b"a=%00").is_err());
        assert!(parse(format!("a={}", "x".repeat(FIELD_BYTES_MAX)).as_bytes()).is_ok());
        let long = parse(format!("a={}", "x".repeat(FIELD_BYTES_MAX + 1)).as_bytes());
        assert!(long.err().unwrap().error_description.contains("'a' must not have more than 32768 bytes"));
    }
}
