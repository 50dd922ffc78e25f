//! One call of a known route: its parameters, and which collection or document it is about.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::facts::{Era, Item, Role, Route, facts};
use crate::outcome::{Failure, INVALID};
use crate::shape;
use crate::store::{self, GLOBAL};

/// A call that has passed the doors.
pub(crate) struct Call {
    pub(crate) route: &'static Route,
    pub(crate) item: &'static Item,
    pub(crate) parameters: BTreeMap<&'static str, String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) body: Value,
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

impl Call {
    pub(crate) fn new(
        route: &'static Route,
        parameters: BTreeMap<&'static str, String>,
        query: BTreeMap<String, String>,
        body: Value,
    ) -> Self {
        Self { route, item: &facts().items[route.item], parameters, query, body }
    }

    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// The site's or template's id, or the controller's own scope.
    pub(crate) fn scope(&self) -> &str {
        // The sites themselves belong to the controller.
        if self.item.id == "system.site" {
            return GLOBAL;
        }
        let scope = self.parameters.get("siteId").or_else(|| self.parameters.get("siteTemplateId"));
        scope.map_or(GLOBAL, String::as_str)
    }

    /// The address of a device or client in the path, under whichever name the route gives it.
    pub(crate) fn mac(&self) -> &str {
        let names = ["deviceMac", "apMac", "switchMac", "gatewayMac", "clientMac", "mac"];
        names.iter().find_map(|name| self.parameters.get(name)).map_or("", String::as_str)
    }

    /// The last part of the path, which tells apart the routes of an item that share a role.
    pub(crate) fn last(&self) -> &str {
        self.route.parts.last().map_or("", String::as_str)
    }

    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.route.role, Role::List | Role::Get | Role::Read)
    }

    /// The collection of the item under the parents that the path names.
    pub(crate) fn collection(&self) -> String {
        let parents = self.item.parents.iter().map(|name| match self.parameters.get(name.as_str()) {
            Some(value) => value.clone(),
            None => self.mac().to_owned(),
        });
        store::collection(self.item, &parents.collect::<Vec<_>>())
    }

    /// The document that the route reads or writes.
    ///
    /// Reads and writes of one path share a document, on either surface and in every version.
    pub(crate) fn document(&self) -> String {
        if self.item.is_document && matches!(self.route.role, Role::List | Role::Get | Role::Update) {
            return self.collection();
        }
        let own = self.route.name.splitn(3, ' ').nth(2).unwrap_or_default();
        let parts =
            own.split('/').map(|part| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => self.parameter(name).to_owned(),
                None => part.to_owned(),
            });
        format!("path {}", parts.collect::<Vec<_>>().join("/"))
    }

    /// The parameter of the path that names one row, and its value.
    pub(crate) fn row_id(&self) -> Option<(&str, &str)> {
        let named =
            self.route.parts.iter().rev().filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let is_own = |name: &&str| {
            !matches!(*name, "omadacId" | "siteId" | "siteTemplateId")
                && !self.item.parents.iter().any(|own| own == name)
        };
        let site =
            (self.item.id == "system.site" && self.parameters.contains_key("siteId")).then_some("siteId");
        let name = named.into_iter().find(is_own).or(site)?;
        Some((name, self.parameter(name)))
    }

    pub(crate) fn fields(&self) -> &Map<String, Value> {
        self.body.as_object().unwrap_or_else(|| &EMPTY)
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    /// Whether a controller of this release has the route.
    pub(crate) fn exists_in(&self, release: Release) -> bool {
        match self.route.era {
            Era::Always => true,
            Era::Since62 => release == Release::V62,
            Era::Until60 => release != Release::V62,
        }
    }

    /// The vendor's own checks: required fields, types, limits, enumerations.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if let Some(number) = self.route.query {
            for (name, field) in facts().shape(number) {
                match self.query.get(name) {
                    Some(text) if shape::query_fits(text, field) => {}
                    None if !field.is_required => {}
                    // The web server refuses what its own binding misses; the rest comes from the controller.
                    None if !name.starts_with("page") && !name.contains('.') => {
                        return Err(Failure { status: 400, ..Failure::new(INVALID) });
                    }
                    _ => return Err(Failure::new(INVALID)),
                }
            }
        }
        // The description of a batch gives its inner bodies as text, but only objects are taken.
        if self.item.id == "bulk.batch" {
            let is_list = self.body["actions"].is_array();
            return if is_list { Ok(()) } else { Err(Failure::new(INVALID)) };
        }
        let Some(field) = self.route.body.as_ref().filter(|_| self.is_write() || !self.body.is_null()) else {
            return Ok(());
        };
        // A route whose fields are all optional may come without a body.
        let requires = field.is_array
            || field.inside().is_some_and(|inside| inside.iter().any(|(_, field)| field.is_required));
        if self.body.is_null() && !requires {
            return Ok(());
        }
        match shape::refused(&self.body, field, "") {
            None => Ok(()),
            Some(name) => Err(Failure::with(INVALID, format!("Invalid request parameters: {name}."))),
        }
    }
}

/// A generation of the controller's software.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// 5.15.
    V515,
    /// 6.0.
    V60,
    /// 6.2, with the widest Open API.
    #[default]
    V62,
}

impl Release {
    /// The version that `/api/info` tells.
    pub fn version(self) -> &'static str {
        match self {
            Self::V515 => "5.15.20.18",
            Self::V60 => "6.0.0.24",
            Self::V62 => "6.2.10.15",
        }
    }
}
