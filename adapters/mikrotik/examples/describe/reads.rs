//! What is only read: lists, settings, and what commands tell.

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::{noun, say};
use serde_json::{Value, json};

use super::fields::ID;
use super::grammar::{Maker, address};
use super::overlay::{FieldFacts, Read};

/// Parameters of commands that show something: one has the router write the answer into a file, the other shows secrets.
const NOT_OF_READS: [&str; 2] = ["file", "show-sensitive"];

impl<'f> Maker<'f> {
    pub(super) fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        let mut binding = json!({ "noun": noun(&read.title) });
        let area = match (&read.menu, &read.command) {
            (Some(path), None) => {
                let menu = self.menu(path)?;
                self.routes.read(format!("GET {path}"));
                if read.shape.as_deref().map_or(menu.list, |shape| shape == "items") {
                    binding["shape"] = json!("items");
                    binding["list"] = json!({ "path": address(path), "id": ID });
                    say(&mut binding["list"], "only", read.only.clone());
                    say(&mut binding, "key", read.key.clone());
                } else {
                    ensure!(menu.read || menu.list, "'{path}' is not read");
                    binding["shape"] = json!("answer");
                    binding["get"] = json!({ "path": address(path) });
                }
                menu.area.as_str()
            }
            (None, Some(command)) => {
                let (area, takes) = self.command(command)?;
                self.routes.read(format!("POST {command}"));
                binding["shape"] = json!("rows");
                binding["list"] = json!({ "method": "POST", "path": address(command) });
                let is_given = |name: &str| read.with.contains_key(name) && name != "duration";
                for field in takes.iter().filter(|field| !self.is_of_console(&field.name)) {
                    let name = field.name.as_str();
                    // A read writes no file, and shows no secret.
                    if is_given(name) || NOT_OF_READS.contains(&name) {
                        continue;
                    }
                    let mut filter = json!({ "param": name });
                    say(
                        &mut filter,
                        "required",
                        field.required || read.needs.iter().any(|need| need == name),
                    );
                    binding["list"]["filters"][name] = filter;
                }
                let mut body = read.with.clone();
                if takes.iter().any(|field| field.name == "once") {
                    body.insert("once".to_owned(), json!(""));
                }
                binding["list"]["body"] = Value::Object(body);
                area
            }
            _ => anyhow::bail!("it is either a menu or a command"),
        };
        self.rows.add_kind(id, area, &read.title, binding)
    }

    /// The area and the parameters of a command.
    pub(super) fn command(&self, path: &str) -> anyhow::Result<(&'f str, &'f [FieldFacts])> {
        let (menu, name) = path.rsplit_once('/').unwrap_or(("", path));
        let menu = self.menu(menu)?;
        let takes = menu.commands.get(name).with_context(|| format!("there is no command '{path}'"))?;
        Ok((menu.area.as_str(), takes.as_slice()))
    }

    pub(super) fn is_of_console(&self, name: &str) -> bool {
        self.overlay.console.iter().any(|known| known == name)
    }
}
