//! Puts secrets of a credential into a request, last of all.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::secret::Secret;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use zeroize::Zeroizing;

use super::request::{Auth, Body, Content, Part, Place, denied};
use super::wire::Outgoing;
use super::{body, headers, path};
use crate::api::Credential;
use crate::limits::SECRET_PLACES_MAX;

/// Refuses the same place twice, and more places than a request needs.
pub(super) fn check_places(auth: &Auth) -> Result<(), Fault> {
    let Auth::Inject(places) = auth else { return Ok(()) };
    if places.len() > SECRET_PLACES_MAX {
        return Err(denied(
            "place",
            format!("secrets go to at most {SECRET_PLACES_MAX} places of a request"),
        ));
    }
    let mut seen = HashSet::new();
    match places.iter().find(|(place, _)| !seen.insert(canonical(place))) {
        None => Ok(()),
        Some(_) => Err(denied("place", "two secrets have the same place; name each place once")),
    }
}

/// The kind of a place and its name, equal for all spellings of one place.
fn canonical(place: &Place) -> (u8, String) {
    match place {
        Place::Bearer => (0, http::header::AUTHORIZATION.as_str().to_owned()),
        Place::Header(name, _) => (0, name.to_ascii_lowercase()),
        Place::Query(name) => (1, name.clone()),
        // A '/' in a name is not one between names.
        Place::JsonPointer(pointer) => (2, pointer.replace('/', "\0").replace("~1", "/").replace("~0", "~")),
        Place::FormField(name) => (3, name.clone()),
    }
}

/// Refuses a request that has too many bytes once the secrets are in it. A secret goes into each element of a batch, so
/// this is judged before they are placed.
pub(super) fn check_room(
    outgoing: &Outgoing,
    auth: &Auth,
    credential: &Credential,
    body_bytes_max: usize,
) -> Result<(), Fault> {
    let Auth::Inject(places) = auth else { return Ok(()) };
    let (mut of_body, mut of_query) = (body::size(&outgoing.body), outgoing.path.len());
    for (place, name) in places {
        let secret = field(credential, name)?.expose().len();
        match place {
            Place::Bearer | Place::Header(..) => {}
            Place::Query(name) => of_query = of_query.saturating_add(name.len() + secret + 2),
            Place::FormField(name) => of_body = of_body.saturating_add(name.len() + secret + 2),
            Place::JsonPointer(pointer) => {
                let elements = match &outgoing.body {
                    Body::Json(Value::Array(batch)) => batch.len(),
                    _ => 1,
                };
                of_body = of_body.saturating_add(elements.saturating_mul(pointer.len() + secret));
            }
        }
    }
    body::check_size(of_body, body_bytes_max)?;
    check_query(of_query)
}

/// Judges a request with its secrets by the bounds that it was judged by without them.
pub(super) fn check_filled(outgoing: &Outgoing, body_bytes_max: usize) -> Result<(), Fault> {
    body::check_size(body::size(&outgoing.body), body_bytes_max)?;
    headers::check_sizes(outgoing.headers.iter().map(|(name, value)| name.as_str().len() + value.len()))?;
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&outgoing.query).finish();
    check_query(outgoing.path.len() + query.len())
}

fn check_query(bytes: usize) -> Result<(), Fault> {
    if bytes > path::BYTES_MAX {
        let message =
            format!("the path and query with their secrets have more than {} bytes", path::BYTES_MAX);
        return Err(Fault::new(FaultKind::Generic, message).with_code("request-too-large"));
    }
    Ok(())
}

pub(super) fn place(outgoing: &mut Outgoing, auth: &Auth, credential: &Credential) -> Result<(), Fault> {
    match auth {
        Auth::None | Auth::Session(_) => Ok(()),
        Auth::Basic(user, password) => {
            let (user, password) = (field(credential, user)?, field(credential, password)?);
            basic(outgoing, user.expose(), password.expose())
        }
        Auth::Inject(places) => {
            places.iter().try_for_each(|(place, name)| put(outgoing, place, field(credential, name)?))
        }
    }
}

/// Authorizes by user name and password.
pub(super) fn basic(outgoing: &mut Outgoing, username: &str, password: &str) -> Result<(), Fault> {
    let pair = Zeroizing::new(format!("{username}:{password}"));
    let value = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    header(outgoing, "authorization", &value)
}

pub(super) fn field<'a>(credential: &'a Credential, name: &str) -> Result<&'a Secret, Fault> {
    credential.fields.iter().find(|(found, _)| found == name).map(|(_, secret)| secret).ok_or_else(|| {
        Fault::new(FaultKind::Authentication, format!("the controller's credential has no '{name}'"))
            .with_code("credential-incomplete")
    })
}

fn put(outgoing: &mut Outgoing, place: &Place, secret: &Secret) -> Result<(), Fault> {
    match place {
        Place::Bearer => {
            header(outgoing, "authorization", &Zeroizing::new(format!("Bearer {}", secret.expose())))
        }
        Place::Header(name, prefix) => {
            header(outgoing, name, &Zeroizing::new(format!("{prefix}{}", secret.expose())))
        }
        Place::Query(name) => {
            outgoing.query.push((name.clone(), secret.expose().to_owned()));
            Ok(())
        }
        Place::FormField(name) => {
            let taken = match &outgoing.body {
                Body::Form(fields) => fields.iter().any(|(found, value)| found == name && !value.is_empty()),
                Body::Multipart(parts) => parts.iter().any(|part| part.name == *name && !part.is_empty()),
                _ => false,
            };
            free(name, taken)?;
            form_field(outgoing, name, secret.expose())
        }
        Place::JsonPointer(pointer) => {
            let taken = match &outgoing.body {
                Body::Json(Value::Array(batch)) => batch.iter().any(|element| is_taken(element, pointer)),
                Body::Json(body) => is_taken(body, pointer),
                _ => false,
            };
            free(pointer, taken)?;
            json_pointer(outgoing, pointer, &Value::String(secret.expose().to_owned()))
        }
    }
}

/// The guest says where a secret goes, after the body was judged: so it may
/// fill a gap and not replace what was judged.
fn free(place: &str, taken: bool) -> Result<(), Fault> {
    if taken {
        return Err(denied(
            "place",
            format!("'{place}' of the body has a value already; leave it out or empty"),
        ));
    }
    Ok(())
}

fn is_taken(body: &Value, pointer: &str) -> bool {
    match body.pointer(pointer) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Sets a header, which no connection header may be.
pub(super) fn header(outgoing: &mut Outgoing, name: &str, value: &str) -> Result<(), Fault> {
    let refused = || denied("header", format!("header '{name}' cannot carry a credential"));
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
    if !heddle_marketplace::headers::carries_credentials(parsed.as_str()) {
        return Err(refused());
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Fault::new(FaultKind::Authentication, "the credential has characters that a header cannot carry")
            .with_code("credential-unfit")
    })?;
    value.set_sensitive(true);
    outgoing.headers.retain(|(found, _)| *found != parsed);
    outgoing.headers.push((parsed, value));
    Ok(())
}

pub(super) fn form_field(outgoing: &mut Outgoing, name: &str, value: &str) -> Result<(), Fault> {
    match &mut outgoing.body {
        Body::Form(fields) => {
            fields.retain(|(found, _)| found != name);
            fields.push((name.to_owned(), value.to_owned()));
            Ok(())
        }
        Body::Multipart(parts) => {
            parts.retain(|part| part.name != name);
            // In front: some devices read the session before they take the file.
            let content = Content::Bytes(value.as_bytes().to_vec());
            parts.insert(0, Part { name: name.to_owned(), filename: None, content_type: None, content });
            Ok(())
        }
        _ => Err(Fault::new(FaultKind::Invalid, format!("form field '{name}' needs a form body"))
            .with_code("unfit")),
    }
}

/// Sets a value in a JSON body, in every element of a batch.
pub(super) fn json_pointer(outgoing: &mut Outgoing, pointer: &str, value: &Value) -> Result<(), Fault> {
    let missing = || {
        Fault::new(FaultKind::Invalid, format!("the body has no place '{pointer}' for the credential"))
            .with_code("unfit")
    };
    match &mut outgoing.body {
        Body::Json(Value::Array(batch)) => {
            batch.iter_mut().try_for_each(|element| set(element, pointer, value)).map_err(|()| missing())
        }
        Body::Json(body) => set(body, pointer, value).map_err(|()| missing()),
        _ => Err(missing()),
    }
}

fn set(body: &mut Value, pointer: &str, value: &Value) -> Result<(), ()> {
    if let Some(place) = body.pointer_mut(pointer) {
        *place = value.clone();
        return Ok(());
    }
    let (parent, last) = pointer.rsplit_once('/').ok_or(())?;
    let key = last.replace("~1", "/").replace("~0", "~");
    match body.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(key, value.clone());
            Ok(())
        }
        _ => Err(()),
    }
}
