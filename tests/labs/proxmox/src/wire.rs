//! From an HTTP request to the parameters of a call, and from an outcome to an HTTP answer.

use heddle_lab::{Answer, FormPart, Request};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::answer::{Failure, Object, Outcome};

/// Largest body before 8.4, and since.
const BODY_BYTES_MAX: (usize, usize) = (64 << 10, 512 << 10);

/// The decoded path below the JSON API.
pub(crate) fn api_path(request: &Request) -> Option<String> {
    let decoded = percent_decode_str(&request.path).decode_utf8_lossy().into_owned();
    let path = decoded.strip_prefix("/api2/json")?;
    (path.is_empty() || path.starts_with('/')).then(|| path.trim_end_matches('/').to_owned())
}

/// The parameters of query and body. What is in both is taken from the query.
pub(crate) fn parameters(request: &Request, release: (u32, u32)) -> Outcome<Object> {
    let mut params = Object::new();
    let has_body = matches!(request.method.as_str(), "POST" | "PUT");
    if !has_body && !request.body.is_empty() {
        return Err(Failure::new(501, format!("Unexpected content for method '{}'", request.method)));
    }
    let content_type = request.header("content-type").unwrap_or("application/x-www-form-urlencoded");
    let plain_type = content_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    if has_body && plain_type == "multipart/form-data" {
        multipart(&mut params, &request.parts);
    } else if has_body {
        let limit = if release < (8, 4) { BODY_BYTES_MAX.0 } else { BODY_BYTES_MAX.1 };
        if request.body.len() > limit {
            return Err(Failure::new(501, "for data too large"));
        }
        match plain_type.as_str() {
            _ if request.body.is_empty() => {}
            "application/x-www-form-urlencoded" => {
                pairs(&mut params, &String::from_utf8_lossy(&request.body));
            }

            "application/json" => match request.json() {
                Some(Value::Object(body)) if release < (8, 0) && body.values().any(Value::is_array) => {
                    return Err(Failure::new(500, "malformed JSON string"));
                }
                Some(Value::Object(body)) => params = body,
                _ => return Err(Failure::new(500, "malformed JSON string")),
            },
            other => return Err(Failure::new(506, format!("upload Content-Type '{other}' not implemented"))),
        }
    }
    let mut query = Object::new();
    pairs(&mut query, &request.query);
    params.extend(query);
    Ok(params)
}

/// The fields of a form. A name that comes again makes a list.
fn pairs(params: &mut Object, text: &str) {
    for pair in text.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let value = Value::from(decode(value));
        match params.get_mut(&decode(name)) {
            None => {
                params.insert(decode(name), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
}

/// The fields of an upload. That of the file holds its name.
fn multipart(params: &mut Object, parts: &[FormPart]) {
    for part in parts {
        let value = part.file_name.as_ref().unwrap_or(&part.text);
        params.insert(part.name.clone(), Value::from(value.clone()));
    }
}

/// A success: `data`, and what stands next to it.
pub(crate) fn success(data: Value, beside: Object) -> Answer {
    let mut body = Object::new();
    body.insert("data".to_owned(), data);
    body.extend(beside);
    Answer::body(200, "application/json;charset=UTF-8", Value::Object(body).to_string())
}

/// A failure: its reason stands in the status line, since 8.4 also in the body. The connection closes.
pub(crate) fn failure(failure: &Failure, release: (u32, u32)) -> Answer {
    let mut body = json!({ "data": null });
    if release >= (8, 4) {
        body["message"] = json!(format!("{}\n", failure.reason));
    }
    if !failure.errors.is_empty() {
        let errors = failure.errors.iter().map(|(name, text)| (name.clone(), Value::from(text.clone())));
        body["errors"] = Value::Object(errors.collect());
    }
    Answer::body(failure.status, "application/json;charset=UTF-8", body.to_string())
        .with_reason(failure.reason.lines().next().unwrap_or_default())
        .closing()
}
