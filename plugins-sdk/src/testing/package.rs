//! The data of a package, and what a server refuses because of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{json_body, method_word};
use crate::{Auth, Body, ChangePlan, Method, Request};

/// The package of the crate under test, parsed once: the paths of `manifest.json` and `description.json`, from the file that
/// names them. It panics where one of them is no JSON.
#[macro_export]
macro_rules! package_of {
    ($manifest:literal, $description:literal) => {{
        static PACKAGE: std::sync::OnceLock<$crate::testing::Package> = std::sync::OnceLock::new();
        PACKAGE.get_or_init(|| {
            let (manifest, description) = (include_str!($manifest), include_str!($description));
            $crate::testing::Package::parse(manifest, description).expect("the package is JSON")
        })
    }};
}

/// Why the data of a package cannot be read.
pub type PackageError = serde_json::Error;

/// The manifest and the description of a package.
#[derive(Debug)]
pub struct Package {
    description: Value,
    rules: Vec<Rule>,
    sessions: BTreeSet<String>,
}

/// What the manifest says that the rules of sending are about.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    auth: BTreeMap<String, Value>,
    #[serde(default)]
    reads: Vec<Rule>,
}

/// Which requests only read, beyond those that carry no body and are a GET.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Rule {
    method: String,
    path: String,
    #[serde(default)]
    json: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    form: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    query: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    only_reads: bool,
}

impl Package {
    /// Parses the texts of `manifest.json` and `description.json`.
    pub fn parse(manifest: &str, description: &str) -> Result<Self, PackageError> {
        let Manifest { auth, reads } = serde_json::from_str(manifest)?;
        let description = serde_json::from_str(description)?;
        Ok(Self { description, rules: reads, sessions: auth.into_keys().collect() })
    }

    /// The content of `description.json`.
    #[must_use]
    pub fn description(&self) -> &Value {
        &self.description
    }

    /// The features, in the order of the description.
    #[must_use]
    pub fn features(&self) -> &[Value] {
        self.rows("features")
    }

    /// The kinds, in the order of the description.
    #[must_use]
    pub fn kinds(&self) -> &[Value] {
        self.rows("kinds")
    }

    fn rows(&self, of: &str) -> &[Value] {
        self.description[of].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// A feature by its whole id.
    #[must_use]
    pub fn feature(&self, id: &str) -> Option<&Value> {
        self.features().iter().find(|feature| feature["id"] == id)
    }

    /// The binding of a kind; null where there is no such kind.
    #[must_use]
    pub fn kind(&self, id: &str) -> &Value {
        let found = self.kinds().iter().find(|kind| kind["id"] == id);
        found.map_or(&Value::Null, |kind| &kind["binding"])
    }

    /// Whether a request only reads, as a server judges it.
    #[must_use]
    pub fn is_read(&self, request: &Request) -> bool {
        if request.method == Method::Get && matches!(request.body, Body::None) {
            return true;
        }
        match json_body(request) {
            Some(Value::Array(batch)) => {
                !batch.is_empty() && batch.iter().all(|element| self.fits(request, Some(element)))
            }
            body => self.fits(request, body.as_ref()),
        }
    }

    /// Whether a request fits a rule of the manifest: an adapter could send it without a review.
    pub(super) fn fits_a_rule(&self, request: &Request) -> bool {
        self.fits(request, json_body(request).as_ref())
    }

    fn fits(&self, request: &Request, body: Option<&Value>) -> bool {
        self.rules.iter().any(|rule| rule.fits(request, body))
    }

    /// Refuses a request of the adapter that may write, or that goes into a session that is not declared.
    pub(super) fn check_read(&self, request: &Request, auth: &Auth) -> Result<(), String> {
        if let Auth::Session(name) = auth
            && !self.sessions.contains(name.as_ref())
        {
            return Err(format!("the manifest declares no session '{name}'"));
        }
        if self.is_read(request) {
            return Ok(());
        }
        let word = method_word(request.method);
        Err(format!("{word} {} may write, and an adapter only reads", request.path))
    }

    /// What a server would refuse of a plan.
    pub(super) fn problem_of_plan(&self, plan: &ChangePlan) -> Option<String> {
        let is_unknown = |name: &String| !self.sessions.contains(name);
        let unknown =
            plan.native.iter().filter_map(|call| call.session.as_ref()).find(|name| is_unknown(name));
        match unknown {
            Some(name) => Some(format!("the manifest declares no session '{name}' of a call")),
            None => super::rules::problem(plan),
        }
    }
}

impl Rule {
    fn fits(&self, request: &Request, body: Option<&Value>) -> bool {
        let (path, query) = request.path.split_once('?').map_or((&*request.path, None), |(path, query)| {
            (path, Some(query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))))
        });
        let has_query = match query {
            None => self.query.is_empty(),
            Some(pairs) => !self.query.is_empty() && are_exactly(&self.query, pairs),
        };
        method_word(request.method) == self.method
            && is_place(&self.path, path)
            && has_query
            && self.fits_body(&request.body)
            && self.json.iter().all(|(pointer, values)| {
                body.and_then(|body| body.pointer(pointer)).is_some_and(|found| values.contains(found))
            })
    }

    /// What the rule takes beside its JSON: the named form or, where none is named, what it says of bodies.
    fn fits_body(&self, body: &Body) -> bool {
        match body {
            Body::Form(fields) if !self.form.is_empty() => {
                are_exactly(&self.form, fields.iter().map(|(name, value)| (&**name, &**value)))
            }
            Body::None => self.form.is_empty(),
            _ => self.form.is_empty() && (self.only_reads || !self.json.is_empty()),
        }
    }
}

/// Whether pairs are exactly those that are named; `*` stands for any value.
fn are_exactly<'a>(
    named: &BTreeMap<String, Vec<String>>,
    found: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> bool {
    let mut seen = BTreeSet::new();
    let fits = |(name, value): (&'a str, &'a str)| {
        let accepted = named.get(name);
        accepted.is_some_and(|values| values.iter().any(|one| one == "*" || one == value))
            && seen.insert(name)
    };
    found.into_iter().all(fits) && seen.len() == named.len()
}

/// Whether a path fits a rule: exactly, or with `*` for one segment.
fn is_place(rule: &str, path: &str) -> bool {
    let (rule, path): (Vec<&str>, Vec<&str>) = (rule.split('/').collect(), path.split('/').collect());
    let same = |(wanted, part): (&&str, &&str)| wanted == part || *wanted == "*" && !part.is_empty();
    rule.len() == path.len() && rule.iter().zip(&path).all(same)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package() -> Package {
        let manifest = json!({
            "auth": { "api": {} },
            "reads": [
                { "method": "POST", "path": "/search/*", "only-reads": true },
                { "method": "POST", "path": "/rpc", "json": { "/op": ["get"] } },
                { "method": "POST", "path": "/backup", "form": { "download": ["1"], "name": ["*"] } },
                { "method": "POST", "path": "/list", "query": { "type": ["vm"] } },
            ],
        });
        Package::parse(&manifest.to_string(), "{}").unwrap()
    }

    fn post(path: &str, body: &Value) -> Request {
        Request::new(Method::Post, path).with_json(body)
    }

    fn form(path: &str, fields: &[(&str, &str)]) -> Request {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Request { body: Body::Form(fields.collect()), ..Request::new(Method::Post, path) }
    }

    #[test]
    fn requests_read_as_the_manifest_says() {
        let package = package();
        for (request, expected) in [
            (Request::get("/x?a=b"), true),
            (post("/search/hosts", &json!({})), true),
            (post("/search/hosts?a=b", &json!({})), false),
            (post("/search/hosts/1", &json!({})), false),
            (post("/rpc", &json!({ "op": "get" })), true),
            (post("/rpc", &json!({ "op": "set" })), false),
            (post("/rpc", &json!([{ "op": "get" }, { "op": "get" }])), true),
            (post("/rpc", &json!([{ "op": "get" }, { "op": "set" }])), false),
            (post("/rpc", &json!([])), false),
            (Request::new(Method::Put, "/search/hosts"), false),
            (form("/backup", &[("name", "x"), ("download", "1")]), true),
            (form("/backup", &[("name", "x"), ("download", "2")]), false),
            (form("/backup", &[("name", "x")]), false),
            (form("/backup", &[("name", "x"), ("name", "y"), ("download", "1")]), false),
            (post("/backup", &json!({ "name": "x" })), false),
            (Request::new(Method::Post, "/list?type=vm"), true),
            (Request::new(Method::Post, "/list?type=lxc"), false),
            (Request::new(Method::Post, "/list"), false),
            (post("/list?type=vm", &json!({})), false),
        ] {
            assert_eq!(package.is_read(&request), expected, "{request:?}");
        }
    }

    #[test]
    fn sessions_are_those_of_the_manifest() {
        let package = package();
        assert!(package.check_read(&Request::get("/x"), &Auth::session("api")).is_ok());
        assert!(package.check_read(&Request::get("/x"), &Auth::session("other")).is_err());
        assert!(package.check_read(&post("/x", &json!({})), &Auth::session("api")).is_err());
    }
}
