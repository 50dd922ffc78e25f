//! What is known of an item before anything is made of it: its routes, fields and names.

use anyhow::Context as _;
use serde_json::Value;

use super::fields::{self, Field, STEERING, Uses};
use super::grammar::Maker;
use super::overlay::{FieldFacts, Item, Parent, Way};
use super::places::{self, BASE, name_schema, variables, with_id};

/// A route of a write, with its path as the binding has it.
pub(super) struct Written {
    pub(super) method: String,
    pub(super) path: String,
}

impl Written {
    /// The route in the words of the facts.
    pub(super) fn route(&self) -> String {
        format!("{} {}", self.method, self.path.trim_start_matches(BASE))
    }
}

pub(super) struct Collected<'f> {
    pub(super) area: String,
    pub(super) parent: Option<&'f Parent>,
    /// Path of one object, in the words of the facts.
    pub(super) one: Option<String>,
    pub(super) create: Option<Written>,
    pub(super) update: Option<Written>,
    pub(super) delete: Option<Written>,
    pub(super) fields: Vec<Field>,
    pub(super) key: Vec<(String, Value)>,
    /// Fields are emptied by naming them.
    pub(super) clears: bool,
    pub(super) has_digest: bool,
}

impl Collected<'_> {
    /// The names of a payload that find an object, those of its parents first.
    pub(super) fn key_schemas(&self) -> Vec<(String, Value)> {
        let parents = self.parent.iter().flat_map(|parent| &parent.key);
        parents.map(|name| (name.clone(), name_schema(name))).chain(self.key.iter().cloned()).collect()
    }

    pub(super) fn is_written(&self) -> bool {
        self.create.is_some() || self.update.is_some() || self.delete.is_some()
    }
}

impl<'f> Maker<'f> {
    pub(super) fn collect(&self, item: &Item) -> anyhow::Result<Collected<'f>> {
        let is_settings = item.key.is_empty();
        let at = item.parent.as_deref().unwrap_or(&item.path);
        let parent = if item.top { None } else { self.parent(at) };
        let one = match &item.one {
            Some(Way::Route(path)) => Some(path.clone()),
            Some(Way::Is(false)) => None,
            _ if is_settings => Some(item.path.clone()),
            _ => self.routes.item_of(&item.path).map(str::to_owned),
        };
        let bound = one.as_deref().map(|path| if is_settings { path.to_owned() } else { with_id(path) });
        let usual =
            |method, is_offered: bool| bound.clone().filter(|_| is_offered).map(|path| (method, path));
        let post = Some(("POST", item.path.clone())).filter(|_| !is_settings);
        let of = |way: &Option<Way>| if item.read_only { Some(Way::Is(false)) } else { way.clone() };
        let create = self.way(of(&item.create).as_ref(), post, parent)?;
        let update = self.way(of(&item.update).as_ref(), usual("PUT", true), parent)?;
        let delete = self.way(of(&item.delete).as_ref(), usual("DELETE", !is_settings), parent)?;
        let (created, updated) = (self.body_of(create.as_ref())?, self.body_of(update.as_ref())?);
        let takes = |name: &str| updated.iter().any(|field| field.name == name);
        let fields =
            if item.fields.none { Vec::new() } else { merged(item, &created, &updated, update.is_some()) };
        let listed = self.routes.find(&format!("GET {}", item.path));
        let area = listed.or_else(|_| self.routes.find(&format!("POST {}", item.path)))?.1.area.clone();
        let key = item.key.iter().map(|name| (name.clone(), key_schema(item, &fields, name))).collect();
        let clears = item.clear.unwrap_or(takes("delete"));
        let has_digest = item.digest.unwrap_or(true) && takes("digest");
        Ok(Collected { area, parent, one, create, update, delete, fields, key, clears, has_digest })
    }

    /// The route of a write: that of the overlay, or the usual one where the vendor has it.
    fn way(
        &self,
        way: Option<&Way>,
        usual: Option<(&str, String)>,
        parent: Option<&Parent>,
    ) -> anyhow::Result<Option<Written>> {
        let (method, path) = match way {
            Some(Way::Is(false)) => return Ok(None),
            Some(Way::Route(route)) => {
                let (method, path) = route.split_once(' ').context("a route is a method and a path")?;
                (method.to_owned(), path.to_owned())
            }
            Some(Way::Is(true)) | None => match usual {
                Some((method, path)) if self.routes.has(&format!("{method} {path}")) => {
                    (method.to_owned(), path)
                }
                _ => return Ok(None),
            },
        };
        self.routes.find(&format!("{method} {path}"))?;
        Ok(Some(Written { method, path: places::bound(&path, parent) }))
    }

    /// The parameters of a write that are not in its path.
    pub(super) fn body_of(&self, written: Option<&Written>) -> anyhow::Result<Vec<&'f FieldFacts>> {
        let Some(written) = written else { return Ok(Vec::new()) };
        let (name, route) = self.routes.find(&written.route())?;
        let in_path = variables(name);
        let mut fields = self.routes.fields(route);
        fields.retain(|field| !in_path.contains(&field.name.as_str()));
        Ok(fields)
    }

    /// The path that one object is read from; none where rows of the list are whole.
    pub(super) fn get_of(&self, item: &Item, made: &Collected<'f>) -> Option<String> {
        match &item.get {
            _ if item.key.is_empty() => None,
            Some(Way::Route(path)) => Some(path.clone()),
            Some(Way::Is(false)) => None,
            _ => self.one_of(made),
        }
    }

    /// The path of one object, where the vendor answers it.
    pub(super) fn one_of(&self, made: &Collected<'f>) -> Option<String> {
        made.one.as_deref().filter(|path| self.routes.has(&format!("GET {path}"))).map(with_id)
    }
}

/// The parameters of create and update as fields, each name once.
fn merged(item: &Item, created: &[&FieldFacts], updated: &[&FieldFacts], has_update: bool) -> Vec<Field> {
    let mut names: Vec<(&str, bool)> = Vec::new();
    for field in created.iter().chain(updated) {
        if !names.contains(&(field.name.as_str(), field.indexed)) {
            names.push((&field.name, field.indexed));
        }
    }
    let is_meant =
        |name: &str| !STEERING.contains(&name) && !item.fields.omit.iter().any(|omitted| omitted == name);
    let find = |all: &[&'_ FieldFacts], (name, indexed): (&str, bool)| {
        all.iter().position(|field| field.name == name && field.indexed == indexed)
    };
    names
        .into_iter()
        .filter(|(name, _)| is_meant(name))
        .flat_map(|name| {
            let create = find(created, name).map(|at| created[at]);
            let update = find(updated, name).map(|at| updated[at]);
            fields::all(Uses { create, update, has_update }, &item.fields, &item.key)
        })
        .collect()
}

fn key_schema(item: &Item, fields: &[Field], name: &str) -> Value {
    if let Some(schema) = item.key_schema.get(name) {
        return schema.clone();
    }
    let own = fields.iter().find(|field| field.name == name).map(|field| field.schema.clone());
    own.unwrap_or_else(|| name_schema(name))
}
