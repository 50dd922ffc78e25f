//! Comments in configuration files. The device writes a file anew whenever it changes, without the comments.
//!
//! The file itself is not read: it may hold secrets in plain text. Its size tells, since the device always writes
//! the same text for the same sections.

use heddle_sdk::Host;
use serde_json::{Value, json};

use crate::rpc;
use crate::touch::Configs;
use crate::uci::{Config, Entry};

/// What the plan should say of the files that it writes.
pub(crate) fn warnings<'a>(
    host: &dyn Host,
    files: &Configs,
    names: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let reads: Vec<rpc::Read<'_>> =
        names.iter().map(|name| ("file", "stat", json!({"path": format!("/etc/config/{name}")}))).collect();
    let Ok(answers) = rpc::batch(host, &reads) else { return Vec::new() };
    let mut said = Vec::new();
    for (name, answer) in names.iter().zip(answers) {
        let size = answer.ok().and_then(|answer| answer.get("size").and_then(Value::as_u64));
        let written = files.get(*name).and_then(written_bytes);
        match (size, written) {
            // One line more or less at the end is not a comment.
            (Some(size), Some(written)) if size > written + 1 => said.push(format!(
                "'/etc/config/{name}' holds {} bytes beside its settings: the device writes it anew, and comments in it are lost",
                size - written
            )),
            (Some(_), Some(_)) => {}
            _ => said.push(format!("comments in '/etc/config/{name}', if it has any, are lost when the device writes it")),
        }
    }
    said
}

/// The size of the file as the device writes it; none when a value is a secret, whose length is not known here.
fn written_bytes(config: &Config) -> Option<u64> {
    let mut bytes = 0;
    for section in &config.sections {
        let name = if section.is_anonymous { 0 } else { section.id.len() + 3 };
        bytes += "\nconfig \n".len() + section.kind.len() + name;
        for (option, entry) in &section.options {
            let (keyword, values) = match entry {
                Entry::Text(text) => ("option", std::slice::from_ref(text)),
                Entry::List(list) => ("list", list.as_slice()),
            };
            for value in values {
                if value.contains("hdl-secret:") {
                    return None;
                }
                // A quote inside quotes takes four characters.
                let quotes = value.matches('\'').count() * 3;
                bytes += keyword.len() + option.len() + value.len() + quotes + "\t  ''\n".len();
            }
        }
    }
    u64::try_from(bytes + 1).ok()
}
