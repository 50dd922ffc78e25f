//! Requests as the controllers see them, and their answers.

use serde_json::{Map, Value, json};

use crate::config::{Values, escape};
use crate::facts::{Command, Facts, Field};
use crate::release::Release;

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

/// A request to a known route by a known user.
pub(crate) struct Call<'a> {
    /// Module and controller, for example `firewall/alias`.
    pub(crate) controller: &'a str,
    /// The command without underscores and in lower case.
    pub(crate) command: &'a str,
    pub(crate) facts: &'static Command,
    pub(crate) params: Vec<String>,
    pub(crate) query: Map<String, Value>,
    pub(crate) body: Map<String, Value>,
    pub(crate) is_post: bool,
    pub(crate) user: String,
    /// The user may read everything that its privileges name, and save nothing.
    pub(crate) is_read_only: bool,
}

impl Answer {
    pub(crate) fn json(body: &Value) -> Self {
        Self::of(200, "application/json", body.to_string().into_bytes())
    }

    pub(crate) fn of(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self { status, content_type, body }
    }

    pub(crate) fn result(word: &str) -> Self {
        Self::json(&json!({ "result": word }))
    }

    pub(crate) fn status(word: &str) -> Self {
        Self::json(&json!({ "status": word }))
    }

    pub(crate) fn saved(uuid: &str) -> Self {
        Self::json(&json!({ "result": "saved", "uuid": uuid }))
    }

    /// What an unusable body, a wrong verb or an unknown item gets.
    pub(crate) fn failed() -> Self {
        Self::result("failed")
    }

    pub(crate) fn empty() -> Self {
        Self::json(&json!([]))
    }

    pub(crate) fn not_found() -> Self {
        let body = json!({ "errorMessage": "Endpoint not found" });
        Self::of(404, "application/json", body.to_string().into_bytes())
    }

    /// What an exception that no controller foresees becomes.
    pub(crate) fn unexpected() -> Self {
        let body = json!({ "errorMessage": "Unexpected error, check log for details" });
        Self::of(500, "application/json", body.to_string().into_bytes())
    }

    /// A business rule refuses the request.
    pub(crate) fn refused(release: Release, title: &str, message: &str) -> Self {
        let mut body = json!({ "errorMessage": message, "errorTitle": title });
        if release == Release::V26_7 {
            body = json!({
                "errorMessage": escape(message), "errorTitle": escape(title), "errorLevel": "error"
            });
        }
        Self::of(500, "application/json", body.to_string().into_bytes())
    }

    /// As [`Self::refused`], for what the newer release calls a warning and answers with 200.
    pub(crate) fn warned(release: Release, title: &str, message: &str) -> Self {
        match release {
            Release::V26_1 => Self::refused(release, title, message),
            Release::V26_7 => Self::json(&json!({
                "errorMessage": escape(message), "errorTitle": escape(title), "errorLevel": "warning"
            })),
        }
    }

    /// Validation failed: one text per field, under the root key.
    pub(crate) fn invalid(root: &str, faults: &[(String, String)]) -> Self {
        let mut out = Map::new();
        for (field, text) in faults {
            let slot = out.entry(format!("{root}.{field}")).or_insert(Value::Null);
            *slot = match slot.take() {
                Value::Null => json!(text),
                Value::Array(mut texts) => {
                    texts.push(json!(text));
                    Value::Array(texts)
                }
                first => json!([first, text]),
            };
        }
        Self::json(&json!({ "result": "failed", "validations": out }))
    }

    /// Text under `response`, as the pages of tools get it.
    pub(crate) fn text(text: &str) -> Self {
        Self::json(&json!({ "response": text }))
    }

    /// The answer as the skeleton sends it.
    pub(crate) fn into_lab(self) -> heddle_lab::Answer {
        heddle_lab::Answer::body(self.status, self.content_type, self.body)
    }

    /// An archive with nothing in it.
    pub(crate) fn zip() -> Self {
        let body = b"PK\x05\x06".iter().chain([0u8; 18].iter()).copied().collect();
        Self::of(200, "application/zip", body)
    }

    pub(crate) fn csv(text: String) -> Self {
        Self::of(200, "text/csv", text.into_bytes())
    }
}

impl Call<'_> {
    pub(crate) fn param(&self, at: usize) -> &str {
        self.params.get(at).map_or("", String::as_str)
    }

    /// A scalar of the body, as text.
    pub(crate) fn text(&self, key: &str) -> String {
        self.body.get(key).and_then(scalar).unwrap_or_default()
    }

    /// The node of the route. Every route that is served by a list has one.
    pub(crate) fn node(&self) -> &'static str {
        self.facts.node.as_deref().unwrap_or_default()
    }

    pub(crate) fn root(&self) -> &'static str {
        self.facts.root.as_deref().unwrap_or_default()
    }
}

/// A scalar as the vendor stores it. `null` leaves the field as it is, and is no scalar.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("1".to_owned()),
        Value::Bool(false) => Some(String::new()),
        _ => None,
    }
}

/// Flattens the posted fields of a node to dotted names. Unknown names are ignored.
///
/// # Errors
/// The answer, when a list or an object stands where the node has a scalar.
pub(crate) fn flatten(node: &str, release: Release, posted: &Value) -> Result<Values, Answer> {
    let mut out = Values::new();
    let facts = Facts::get();
    if facts.is_free_form(node) {
        let fields = posted.as_object().into_iter().flatten();
        out.extend(fields.filter_map(|(name, value)| Some((name.clone(), scalar(value)?))));
        return Ok(out);
    }
    for field in facts.fields(node, release) {
        let Some(value) = lookup(posted, field) else { continue };
        if value.is_null() {
            continue;
        }
        out.insert(field.name.clone(), scalar(value).ok_or_else(Answer::unexpected)?);
    }
    Ok(out)
}

fn lookup<'v>(posted: &'v Value, field: &Field) -> Option<&'v Value> {
    if field.is_items() {
        return None;
    }
    field.name.split('.').try_fold(posted, |value, part| value.get(part))
}

/// Puts a value at a dotted name.
pub(crate) fn nest(out: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            out.insert(name.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = out.entry(first).or_insert_with(|| json!({}));
            if let Value::Object(inner) = inner {
                nest(inner, rest, value);
            }
        }
    }
}
