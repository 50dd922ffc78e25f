//! What is only read, and the objects that actions are about.

use heddle_adapter_kit::{noun, say};
use serde_json::{Value, json};

use super::grammar::Maker;
use super::overlay::Read;

impl Maker<'_> {
    pub(super) fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        let (method, path, area, model) = self.route(&read.route)?;
        self.routes.read(read.route.clone());
        let query = read.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("{path}{query}");
        let mut binding = json!({ "noun": noun(&read.title) });
        if read.rows {
            binding["shape"] = json!("rows");
            binding["list"] = json!({ "path": path });
        } else if read.key.is_empty() {
            binding["shape"] = json!("answer");
            binding["get"] = json!({ "path": path });
            if method != "GET" {
                binding["get"]["method"] = json!(method);
            }
            say(&mut binding["get"], "filters", read.filters.clone());
        } else {
            binding["shape"] = json!("items");
            binding["key"] = json!(read.key);
            binding["list"] = json!({ "path": path, "id": "id" });
            say(&mut binding, "volatile", !read.lasting_id);
            let fields = self.model(model)?.fields.iter();
            let shown = fields.filter(|field| !field.secret && !field.unread);
            binding["fields"] =
                Value::Object(shown.map(|field| (field.name.clone(), json!("json"))).collect());
        }
        self.rows.add_kind(id, area, &read.title, binding)
    }
}
