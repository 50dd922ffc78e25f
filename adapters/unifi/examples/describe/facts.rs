//! Facts about the interfaces of the controller, as `facts.py` makes them. What a record leaves out is empty or false.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_adapter_kit::Surface;
use serde::Deserialize;
use serde_json::{Map, Value};

/// `facts.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    /// By method, path, and the command of the body where several share a path.
    pub(super) routes: BTreeMap<String, Route>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Route {
    pub(super) area: String,
    pub(super) body: Option<Body>,
    /// The route whose body this one has, too.
    pub(super) like: Option<String>,
    /// Parameters of the query; `!` where one is required.
    pub(super) query: BTreeMap<String, String>,
    /// Changes nothing.
    pub(super) reads: bool,
    /// Belongs to a session, or is open to everybody.
    pub(super) session: bool,
    /// Part of a form that is a file.
    pub(super) file: Option<String>,
    #[serde(rename = "since")]
    _since: Option<String>,
}

/// The fields of a body, as JSON Schema.
#[derive(Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Body {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
}

/// A route's name in its parts.
#[derive(Clone, Copy)]
pub(super) struct Name<'n> {
    pub(super) method: &'n str,
    pub(super) path: &'n str,
    /// What stands in the field `cmd` of the body.
    pub(super) command: Option<&'n str>,
}

/// One of the interfaces of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// Pages, ids that are UUIDs, objects that are replaced.
    Official,
    /// An envelope, and updates that keep what they leave out.
    First,
    /// Bare answers, and updates that replace.
    Second,
}

impl<'n> Name<'n> {
    pub(super) fn parse(name: &'n str) -> anyhow::Result<Self> {
        let (method, rest) = name.split_once(' ').with_context(|| format!("'{name}' names no route"))?;
        let (path, command) = match rest.split_once(' ') {
            Some((path, command)) => (path, Some(command)),
            None => (rest, None),
        };
        Ok(Name { method, path, command })
    }

    /// Whether the route belongs to the console, whose answers are bare.
    pub(super) fn is_of_console(&self) -> bool {
        ["/api/firmware/", "/api/system/"].iter().any(|part| self.path.starts_with(part))
    }

    pub(super) fn api(&self) -> Api {
        if self.path.starts_with("/integration/") {
            Api::Official
        } else if self.path.starts_with("/v2/") {
            Api::Second
        } else {
            Api::First
        }
    }
}

/// The parameters of a path.
pub(super) fn params(path: &str) -> Vec<&str> {
    path.split(['/', '?', '&', '=']).filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

/// The fields of each route's body, with the parameters of its query.
pub(super) fn surface(facts: &Facts) -> Surface {
    let of_route = |(name, route): (&String, &Route)| {
        let body = route.body.iter().flat_map(|body| &body.properties);
        let fields = body.map(|(field, schema)| (field.clone(), schema.to_string()));
        let query = route.query.iter().map(|(param, need)| (format!("?{param}"), need.clone()));
        (name.clone(), fields.chain(query).collect())
    };
    facts.routes.iter().map(of_route).collect()
}
