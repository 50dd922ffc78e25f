//! What is done instead of written.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::schema::object;
use heddle_adapter_kit::{Feature, Operation, say};
use serde_json::{Map, Value, json};

use super::fields;
use super::grammar::{LONG_TIME_LIMIT_MS, Maker, TIME_LIMIT_MS};
use super::overlay::{Action, FieldJudgements};

const NORMAL: &str = "normal";

impl Maker<'_> {
    pub(super) fn action(&mut self, id: &str, action: &Action) -> anyhow::Result<()> {
        ensure!(!action.does.is_empty(), "nothing says what it does");
        let (method, path, area, model) = self.route(&action.route)?;
        self.routes.write(action.route.clone());
        let query = action.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let mut call = json!({ "path": format!("{path}{query}"), "summary": action.does });
        if method != "POST" {
            call["method"] = json!(method);
        }
        let (mut properties, mut key, mut required, mut taken) =
            (Map::new(), Vec::new(), action.required.clone(), Map::new());
        if let Some(kind) = &action.kind {
            let known = self.rows.kind(kind).with_context(|| format!("kind '{kind}' is unknown"))?;
            let names = known["binding"]["key"].as_array().into_iter().flatten().filter_map(Value::as_str);
            key.extend(names.map(str::to_owned));
            let texts = key
                .iter()
                .map(|name| (name.clone(), json!({ "type": "string", "minLength": 1, "maxLength": 256 })));
            properties.extend(texts);
            required.extend(key.iter().cloned());
        }
        if action.form {
            for field in fields::all(self.facts, self.model(model)?, &FieldJudgements::default())? {
                // What it makes is made with a key that the firewall chooses.
                if action.made.is_some() && field.is_unread {
                    continue;
                }
                if field.is_required && !required.contains(&field.name) {
                    required.push(field.name.clone());
                }
                taken.insert(field.name.clone(), json!("json"));
                properties.insert(field.name, field.schema);
            }
        }
        say(&mut call, "fields", taken);
        say(&mut call, "with", action.with.clone());
        say(&mut call, "effect", action.effect.clone());
        say(&mut call, "back", action.back.clone());
        say(&mut call, "inverse", action.inverse.as_deref().map(|inverse| self.rows.id(inverse)));
        if let Some(made) = &action.made {
            call["effect"] = json!({ "kind": made, "there": true });
            call["inverse"] = json!(self.rows.id(made));
            call["inverse-deletes"] = json!(true);
        }
        let danger = action.danger.as_deref().unwrap_or(NORMAL);
        let mut binding = json!({ "action": call });
        say(&mut binding, "kind", action.kind.clone());
        let activations = self.activations(&action.apply);
        say(&mut binding, "activate", activations);
        say(&mut binding, "lockout", action.lockout);
        if danger != NORMAL {
            binding["danger"] = json!({ "create": danger });
        }
        let operation = Operation {
            word: "create",
            danger,
            schema: object(properties, &required),
            time_limit_ms: Some(if action.slow { LONG_TIME_LIMIT_MS } else { TIME_LIMIT_MS }),
            is_invertible: action.inverse.is_some() || action.made.is_some(),
        };
        self.rows.add_feature(Feature {
            id,
            area,
            title: &action.title,
            kind: action.kind.as_deref(),
            key: &key,
            operations: vec![operation],
            binding,
        })
    }
}
