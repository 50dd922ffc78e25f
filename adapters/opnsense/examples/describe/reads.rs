//! What is only read, and the objects that actions are about.

use anyhow::ensure;
use heddle_adapter_kit::{noun, say};
use serde_json::json;

use super::grammar::{Maker, grid};
use super::judged::{File, Read};
use super::routes::plain;

impl Maker<'_> {
    pub(super) fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        let route = self.route(&read.route)?;
        self.routes.read(plain(&route.path));
        let known: Vec<&str> = read
            .within
            .iter()
            .filter_map(|within| within["params"].as_object())
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let is_named = |name: &String| known.contains(&name.as_str());
        ensure!(route.named.iter().all(is_named), "nothing gives {:?} of its path", route.named);
        let mut binding = json!({ "noun": noun(&read.title) });
        let is_grid = (route.command.op == "list" || read.list) && read.rows.is_none() && !read.answer;
        if is_grid || read.rows.is_some() || (read.id.is_some() && read.pointer.is_none()) {
            binding["shape"] = json!(if read.id.is_some() { "items" } else { "rows" });
            binding["list"] = match &read.rows {
                Some(rows) => json!({ "path": route.path, "rows": rows }),
                None => grid(&route.path),
            };
            if let Some(id) = &read.id {
                binding["list"]["id"] = json!(id);
            } else if is_grid {
                binding["list"]["id"] = json!("uuid");
            }
            // Grids of live data take their pages only from a body.
            if read.post || read.rows.is_none() {
                binding["list"]["method"] = json!("POST");
            }
            for (name, filter) in &read.filters {
                binding["list"]["filters"][name.as_str()] = filter.clone();
            }
            binding["key"] = json!(read.key);
        } else {
            binding["shape"] = json!(if read.fields.is_empty() { "answer" } else { "object" });
            binding["get"] = json!({ "path": route.path });
            if read.post {
                binding["get"]["method"] = json!("POST");
            }
            say(&mut binding["get"], "filters", read.filters.clone());
            say(&mut binding["get"], "item", read.pointer.clone());
        }
        say(&mut binding, "within", read.within.clone());
        say(&mut binding, "volatile", read.volatile);
        let mut fields = read.fields.clone();
        if read.id.is_some() {
            fields.extend(read.key.iter().map(|name| (name.clone(), json!("text"))));
            let others = read.columns.iter().filter(|name| !read.key.contains(name));
            fields.extend(others.map(|name| (name.clone(), json!("json"))));
        }
        say(&mut binding, "fields", fields);
        self.rows.add_kind(id, route.area, &read.title, binding)
    }

    /// What the host keeps as a file.
    pub(super) fn file(&mut self, id: &str, file: &File) -> anyhow::Result<()> {
        let route = self.route(&file.route)?;
        self.routes.read(plain(&route.path));
        let is_given = |name: &String| name == "key" || file.filters.contains(name);
        ensure!(route.named.iter().all(is_given), "nothing gives {:?} of its path", route.named);
        let mut binding = json!({ "noun": noun(&file.title), "file": { "path": route.path } });
        for name in &file.filters {
            binding["file"]["filters"][name.as_str()] = json!({ "param": name, "required": true });
        }
        let mut said = json!({ "name": file.name });
        say(&mut said, "content-type", file.content_type.clone());
        self.rows.add_file((id, route.area), &file.title, ("controller", said), binding)
    }

    /// The whole model of a controller, in one answer.
    pub(super) fn model(&mut self, controller: &str) -> anyhow::Result<()> {
        let route = self.route(&format!("{controller}/get"))?;
        self.routes.read(plain(&route.path));
        let binding = json!({
            "noun": format!("model of {controller}"), "shape": "answer", "get": { "path": route.path },
        });
        let title = format!("Whole model: {controller}");
        self.rows.add_kind(&format!("model.{}", controller.replace('/', ".")), route.area, &title, binding)
    }
}
