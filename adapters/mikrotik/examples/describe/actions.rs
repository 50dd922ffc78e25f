//! Commands that do something.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{Feature, say};
use serde_json::{Map, Value, json};

use super::fields::{of_command, payload_name, plain_text};
use super::grammar::{Maker, address, operation};
use super::overlay::Action;

const NORMAL: &str = "normal";
/// How a command names the rows that it is about.
const TARGETS: [&str; 2] = ["numbers", "number"];

impl Maker<'_> {
    pub(super) fn action(&mut self, id: &str, action: &Action) -> anyhow::Result<()> {
        ensure!(!action.does.is_empty(), "nothing says what it does");
        let (area, takes) = self.command(&action.command)?;
        self.routes.write(format!("POST {}", action.command));
        let (mut properties, mut required, mut key) = (Map::new(), Vec::new(), Vec::new());
        let mut with = action.with.clone();
        if let Some(kind) = &action.kind {
            let known = self.rows.kind(kind).with_context(|| format!("kind '{kind}' is unknown"))?;
            let names = known["binding"]["key"].as_array().into_iter().flatten();
            key = names.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
            ensure!(!key.is_empty(), "rows of '{kind}' have no key");
            properties.extend(key.iter().map(|name| (name.clone(), plain_text())));
            if key.len() == 1 {
                required.extend(key.clone());
            }
            let target = action.target.as_deref().context("nothing says how it names its row")?;
            with.insert(target.to_owned(), json!("{id}"));
        }
        let mut fields = Map::new();
        for field in takes {
            let name = field.name.as_str();
            let is_target = action.target.is_some() && TARGETS.contains(&name);
            if with.contains_key(name) || is_target || self.is_of_console(name) {
                continue;
            }
            let (binding, schema) = of_command(field, action.secrets.iter().any(|secret| secret == name));
            let mut own = payload_name(name);
            if key.contains(&own) {
                own = format!("new-{own}");
            }
            let mut binding = match binding {
                Value::String(kind) => json!({ "type": kind }),
                other => other,
            };
            if own != name {
                binding["at"] = json!(name);
            }
            if field.required || action.needs.iter().any(|need| need == name) {
                required.push(own.clone());
            }
            fields.insert(own.clone(), binding);
            properties.insert(own, schema);
        }
        let mut call = json!({ "path": address(&action.command), "summary": action.does });
        say(&mut call, "with", with);
        say(&mut call, "fields", fields);
        say(&mut call, "effect", action.effect.clone());
        let mut binding = json!({ "action": call });
        say(&mut binding, "kind", action.kind.clone());
        say(&mut binding, "lockout", action.lockout);
        say(&mut binding, "danger-if", action.danger_if.clone());
        let danger = action.danger.as_deref().unwrap_or(NORMAL);
        if danger != NORMAL {
            binding["danger"] = json!({ "create": danger });
        }
        let operations = vec![operation("create", danger, object(properties, &required), false)];
        let (title, kind) = (&action.title, action.kind.as_deref());
        self.rows.add_feature(Feature { id, area, title, kind, key: &key, operations, binding })
    }
}
