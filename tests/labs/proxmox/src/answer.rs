//! What a call is given and what it gives back.

use heddle_lab::FormPart;
use serde_json::{Map, Value};

use crate::facts::Route;
use crate::privileges::Caller;

/// A JSON object, in the order in which its keys were written.
pub(crate) type Object = Map<String, Value>;

/// The outcome of a call: its `data`, or why it failed.
pub(crate) type Outcome<T = Value> = Result<T, Failure>;

/// A refusal. The reason stands in the HTTP status line, as with the real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) reason: String,
    /// By parameter; only with status 400.
    pub(crate) errors: Vec<(String, String)>,
}

impl Failure {
    pub(crate) fn new(status: u16, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), errors: Vec::new() }
    }

    /// A 500, which is what the server answers for everything that is neither syntax nor access.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::new(500, reason)
    }

    pub(crate) fn parameters(errors: Vec<(String, String)>) -> Self {
        Self { status: 400, reason: "Parameter verification failed.".to_owned(), errors }
    }

    pub(crate) fn parameter(name: &str, text: impl Into<String>) -> Self {
        Self::parameters(vec![(name.to_owned(), text.into())])
    }

    pub(crate) fn not_implemented(method: &str, path: &str) -> Self {
        Self::new(501, format!("Method '{method} {path}' not implemented"))
    }

    /// The mismatch of a digest.
    pub(crate) fn stale() -> Self {
        Self::refused("detected modified configuration - file changed by other user? Try again.")
    }
}

/// A verified call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) route: &'static Route,
    /// The path below `/api2/json`, decoded.
    pub(crate) path: String,
    /// Path variables, query and body, each of the type that the schema names.
    pub(crate) params: Object,
    pub(crate) caller: Caller,
    /// The file that a form with parts has.
    pub(crate) upload: Option<FormPart>,
}

impl Call {
    /// A text parameter; empty when absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.as_str()
    }

    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        self.params.get(name)?.as_u64()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.integer(name) == Some(1)
    }

    pub(crate) fn vmid(&self) -> u64 {
        self.integer("vmid").unwrap_or_default()
    }

    pub(crate) fn node(&self) -> &str {
        self.text("node")
    }

    /// A list parameter: the names between commas, semicolons or white space, or the elements of an array.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        match self.params.get(name) {
            Some(Value::Array(items)) => items.iter().map(text_of).collect(),
            Some(value) => split_list(&text_of(value)).map(str::to_owned).collect(),
            None => Vec::new(),
        }
    }

    /// The parameters but the named ones.
    pub(crate) fn without(&self, names: &[&str]) -> Object {
        let kept = self.params.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether method and path pattern are these.
    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.route.method == method && self.route.path == path
    }
}

/// The parts of a list as the server splits it.
pub(crate) fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c == ';' || c == '\0' || c.is_whitespace())
        .filter(|part| !part.is_empty())
}

/// A value as the configuration files write it.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// An object of a literal; anything else is empty.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Text of a key of an object; empty when it is absent.
pub(crate) fn field<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}
