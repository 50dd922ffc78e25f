//! What of an object can be read, and what can be written.

use serde_json::{Map, Value, json};

use super::facts::{Kind, Leaf};
use super::grammar::Maker;
use super::overlay::Item;

/// One field of an object.
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) leaf: Leaf,
    pub(super) is_secret: bool,
    pub(super) is_unread: bool,
    /// Some of what is inside of it cannot be read back.
    pub(super) is_half_read: bool,
    pub(super) in_create: Option<bool>,
    /// Whether an update has it, and needs it.
    pub(super) in_update: Option<bool>,
    pub(super) in_setter: bool,
    pub(super) is_always: bool,
}

impl Field {
    pub(super) fn binding(&self, has_update: bool) -> Value {
        let mut binding = Map::new();
        let kind = if self.is_secret { "secret" } else { "json" };
        binding.insert("type".to_owned(), json!(kind));
        let mut say = |word: &str, is_so: bool| {
            if is_so {
                binding.insert(word.to_owned(), json!(true));
            }
        };
        say("unread", self.is_unread);
        say("create-only", has_update && self.in_update.is_none() && !self.in_setter);
        say("always", self.is_always);
        say("rewritten", self.is_half_read && !self.is_unread);
        // The controller answers more inside of objects than it was given.
        say("merge", matches!(self.leaf.kind, Kind::Object(_) | Kind::Any) && !self.is_unread);
        if binding.len() == 1 { json!(kind) } else { Value::Object(binding) }
    }
}

impl Maker<'_> {
    /// The object as answers show it; none where the contract does not tell, or not all.
    pub(super) fn shown(&self, item: &Item) -> anyhow::Result<Option<Vec<(String, Leaf)>>> {
        let (route, pointer) = match (&item.get, &item.list) {
            (Some(get), _) => (self.facts.route(get)?, item.object.clone().unwrap_or_default()),
            (None, Some(list)) => {
                let route = self.facts.route(list)?;
                let rows = item.rows.clone().or_else(|| self.facts.rows(route).map(str::to_owned));
                (route, rows.unwrap_or_default())
            }
            (None, None) => return Ok(None),
        };
        let leaf = self.facts.answer(route, &pointer).filter(|_| !route.cut);
        Ok(leaf.map(|leaf| self.facts.fields(&leaf)).filter(|fields| !fields.is_empty()))
    }

    /// Whether an update sends the whole object. It does where the controller replaces it, and where that is unknown; but
    /// there not where a field cannot be read, which a whole would leave out.
    pub(super) fn sends_whole(
        &self,
        item: &Item,
        update: &[(String, Leaf)],
        shown: Option<&[(String, Leaf)]>,
    ) -> bool {
        let is_shown = |name: &str| shown.is_none_or(|shown| shown.iter().any(|(known, _)| known == name));
        let is_readable = |(name, leaf): &(String, Leaf)| {
            let is_whole = self.lacking(shown, name, leaf).is_none();
            item.key.contains(name) || is_shown(name) && is_whole && !item.unread.contains(name)
        };
        match item.keeps {
            Some(keeps) => !keeps,
            None if item.whole => true,
            None => update.iter().all(is_readable),
        }
    }

    /// Whether something inside of a field is not in the object as it is read, and whether the vendor needs that.
    fn lacking(&self, shown: Option<&[(String, Leaf)]>, name: &str, leaf: &Leaf) -> Option<bool> {
        let known = shown?.iter().find(|(known, _)| known == name).map(|(_, leaf)| leaf)?;
        self.lacks(known, leaf)
    }

    fn lacks(&self, read: &Leaf, written: &Leaf) -> Option<bool> {
        let inside = self.facts.fields(read);
        if inside.is_empty() {
            return None;
        }
        let of_one = |(name, leaf): &(String, Leaf)| match inside.iter().find(|(known, _)| known == name) {
            Some((_, read)) => self.lacks(read, leaf),
            None => Some(leaf.is_required),
        };
        self.facts.fields(written).iter().filter_map(of_one).max()
    }

    /// Every field that a payload can have, each once.
    pub(super) fn fields(&self, item: &Item) -> anyhow::Result<Vec<Field>> {
        let body = |route: Option<&String>| -> anyhow::Result<Vec<(String, Leaf)>> {
            let Some(route) = route else { return Ok(Vec::new()) };
            let mut fields = self.facts.body(self.facts.route(route)?, item.root.as_deref());
            fields.retain(|(name, _)| !item.omit.contains(name));
            Ok(fields)
        };
        let (create, update) = (body(item.create.as_ref())?, body(item.update.as_ref())?);
        let mut setters = Vec::new();
        for setter in item.setters.values() {
            let fields = self.facts.body(self.facts.route(&setter.route)?, None);
            setters.extend(fields.into_iter().filter(|(name, _)| !setter.omit.contains(name)));
        }
        let shown = self.shown(item)?;
        let row = match &item.list {
            Some(list) => {
                let route = self.facts.route(list)?;
                let rows = item.rows.clone().or_else(|| self.facts.rows(route).map(str::to_owned));
                let leaf = self.facts.answer(route, &rows.unwrap_or_default());
                leaf.map(|leaf| self.facts.fields(&leaf)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let own = item.key.iter().chain(&item.lay).map(|name| {
            let known = row.iter().find(|(known, _)| known == name).cloned();
            known.unwrap_or_else(|| (name.clone(), Leaf::parse("s")))
        });
        let need = |all: &[(String, Leaf)], name: &str| {
            all.iter().find(|(known, _)| known == name).map(|(_, leaf)| leaf.is_required)
        };
        let mut out: Vec<Field> = Vec::new();
        let sends_whole = self.sends_whole(item, &update, shown.as_deref());
        for (name, leaf) in create.iter().chain(&update).chain(&setters).cloned().chain(own) {
            if out.iter().any(|field| field.name == name) {
                continue;
            }
            let is_known = item.key.contains(&name) || item.lay.contains(&name);
            let is_shown = shown.as_ref().is_none_or(|shown| shown.iter().any(|(known, _)| *known == name));
            let in_update = need(&update, &name);
            let lacking = self.lacking(shown.as_deref(), &name, &leaf);
            out.push(Field {
                is_half_read: lacking.is_some(),
                is_secret: item.secrets.contains(&name) || self.schemas.is_secret(&name, &leaf),
                is_unread: item.unread.contains(&name) || !is_known && !is_shown || lacking == Some(true),
                in_create: need(&create, &name),
                in_setter: setters.iter().any(|(known, _)| *known == name),
                is_always: item.always.contains(&name) || !sends_whole && in_update == Some(true),
                in_update,
                name,
                leaf,
            });
        }
        Ok(out)
    }
}
