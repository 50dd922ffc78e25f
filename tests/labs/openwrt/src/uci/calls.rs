//! The `uci` methods that read and stage. Applying is in `apply.rs`.

use serde_json::{Map, Value, json};

use super::{Change, Config, Section, UciValue, values};
use crate::args::Args;
use crate::device::Device;
use crate::status::{Reply, Status};

impl Device {
    /// One `uci` call of session `sid`.
    pub(crate) fn uci(&mut self, sid: &str, method: &str, args: Args<'_>) -> Reply {
        match method {
            "configs" => Ok(Some(json!({ "configs": self.configs.keys().collect::<Vec<_>>() }))),
            "get" | "state" => self.uci_get(sid, args),
            "set" => self.uci_set(sid, args),
            "add" => self.uci_add(sid, args),
            "delete" => self.uci_delete(sid, args),
            "rename" => self.uci_rename(sid, args),
            "order" => self.uci_order(sid, args),
            "changes" => self.uci_changes(sid, args),
            "revert" => self.uci_revert(sid, args),
            "apply" => self.uci_apply(sid, args),
            "confirm" => self.uci_confirm(sid),
            "rollback" => self.uci_rollback(sid),
            "commit" => self.uci_commit(sid, args),
            _ => Err(Status::MethodNotFound),
        }
    }

    fn uci_get(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let (_, config) = self.readable(sid, args)?;
        let Some(address) = args.text("section") else {
            return Ok(Some(json!({ "values": config.to_json(|section| matches(section, args)) })));
        };
        // A missing section or option is an empty success, not status 4.
        Ok(config.section(address).and_then(|section| match args.text("option") {
            None => Some(json!({ "values": section.to_json(None) })),
            Some(option) => section.option(option).map(|value| json!({ "value": value.to_json() })),
        }))
    }

    fn uci_set(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let (name, config) = self.writable(sid, args)?;
        let sections = selected(&config, args)?;
        let values = args.table("values").ok_or(Status::InvalidArgument)?;
        let values = checked(values)?;
        if sections.is_empty() || values.is_empty() {
            return Err(Status::NotFound);
        }
        let changes = sections
            .iter()
            .flat_map(|section| {
                values.iter().flat_map(|(option, value)| values::changes(&config, section, option, value))
            })
            .collect();
        self.stage(sid, &name, changes);
        Ok(None)
    }

    fn uci_add(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let kind = args.required("type")?;
        let (name, mut config) = self.writable(sid, args)?;
        let kind = values::kind(kind)?.to_owned();
        let values = checked(args.table("values").unwrap_or(&Map::new()))?;
        let (section, first) = if let Some(chosen) = args.text("name") {
            let section = values::name(chosen)?.to_owned();
            (section.clone(), Change::Create { section, kind: kind.clone() })
        } else {
            let section = config.next_id(&kind);
            (section.clone(), Change::Add { section, kind: kind.clone() })
        };
        // Naming a section that exists merges into it, and says so nowhere.
        let exists_alike = config.section(&section).is_some_and(|old| old.kind == kind);
        let mut changes = Vec::new();
        if !exists_alike {
            first.replay(&mut config);
            changes.push(first);
        }
        for (option, value) in &values {
            changes.extend(values::changes(&config, &section, option, value));
        }
        self.stage(sid, &name, changes);
        Ok(Some(json!({ "section": section })))
    }

    fn uci_delete(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let (name, config) = self.writable(sid, args)?;
        let sections = selected(&config, args)?;
        let options: Option<Vec<&str>> = match (args.text("option"), args.array("options")) {
            (Some(option), _) => Some(vec![option]),
            (None, Some(options)) => Some(options.iter().filter_map(Value::as_str).collect()),
            (None, None) => None,
        };
        let mut changes = Vec::new();
        for section in sections {
            match &options {
                None => changes.push(Change::Remove { section, option: None }),
                Some(options) => {
                    let found = config.section(&section);
                    let present = options
                        .iter()
                        .filter(|option| found.is_some_and(|found| found.option(option).is_some()));
                    changes.extend(present.map(|option| Change::Remove {
                        section: section.clone(),
                        option: Some((*option).to_owned()),
                    }));
                }
            }
        }
        if changes.is_empty() {
            return Err(Status::NotFound);
        }
        self.stage(sid, &name, changes);
        Ok(None)
    }

    fn uci_rename(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let (address, new) = (args.required("section")?, args.required("name")?);
        let (config_name, config) = self.writable(sid, args)?;
        let new = values::name(new)?;
        let section = config.section(address).ok_or(Status::NotFound)?;
        let option = args.text("option");
        if let Some(option) = option {
            section.option(option).ok_or(Status::NotFound)?;
        } else if config.section(new).is_some_and(|other| other.name != section.name) {
            return Err(Status::InvalidArgument);
        }
        let change = Change::Rename {
            section: section.name.clone(),
            option: option.map(str::to_owned),
            name: new.to_owned(),
        };
        self.stage(sid, &config_name, vec![change]);
        Ok(None)
    }

    fn uci_order(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let listed = args.array("sections").ok_or(Status::InvalidArgument)?;
        let (name, mut config) = self.writable(sid, args)?;
        let mut changes = Vec::new();
        for (position, section) in listed.iter().enumerate() {
            let section = section.as_str().ok_or(Status::InvalidArgument)?;
            let at = config.position(section).ok_or(Status::NotFound)?;
            if at != position {
                let change = Change::Order { section: config.sections[at].name.clone(), position };
                change.replay(&mut config);
                changes.push(change);
            }
        }
        self.stage(sid, &name, changes);
        Ok(None)
    }

    fn uci_changes(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let print = |changes: &Vec<Change>| Value::Array(changes.iter().map(Change::to_json).collect());
        if args.text("config").is_some() {
            let (name, _) = self.readable(sid, args)?;
            let staged = self.staged.get(sid).and_then(|staged| staged.get(&name));
            return Ok(Some(json!({ "changes": staged.map_or_else(|| json!([]), print) })));
        }
        let mut all = Map::new();
        for (name, changes) in self.staged.get(sid).into_iter().flatten() {
            if self.sessions.may(sid, "uci", name, "read") {
                all.insert(name.clone(), print(changes));
            }
        }
        Ok(Some(json!({ "changes": all })))
    }

    fn uci_revert(&mut self, sid: &str, args: Args<'_>) -> Reply {
        let (name, _) = self.writable(sid, args)?;
        if self.pending.is_some() {
            return Err(Status::PermissionDenied);
        }
        if let Some(staged) = self.staged.get_mut(sid) {
            staged.remove(&name);
        }
        Ok(None)
    }

    /// The configuration as session `sid` sees it: the file with its own staged changes on top.
    fn overlay(&self, sid: &str, name: &str) -> Option<Config> {
        let mut config = self.configs.get(name)?.clone();
        if let Some(changes) = self.staged.get(sid).and_then(|staged| staged.get(name)) {
            changes.iter().for_each(|change| change.replay(&mut config));
        }
        Some(config)
    }

    fn readable(&self, sid: &str, args: Args<'_>) -> Result<(String, Config), Status> {
        self.permitted(sid, args, "read")
    }

    pub(super) fn writable(&self, sid: &str, args: Args<'_>) -> Result<(String, Config), Status> {
        self.permitted(sid, args, "write")
    }

    fn permitted(&self, sid: &str, args: Args<'_>, function: &str) -> Result<(String, Config), Status> {
        let name = args.required("config")?;
        if !self.sessions.may(sid, "uci", name, function) {
            return Err(Status::PermissionDenied);
        }
        let config = self.overlay(sid, name).ok_or(Status::NotFound)?;
        if self.broken.contains(name) {
            return Err(Status::Unknown);
        }
        Ok((name.to_owned(), config))
    }

    fn stage(&mut self, sid: &str, name: &str, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.staged
                .entry(sid.to_owned())
                .or_default()
                .entry(name.to_owned())
                .or_default()
                .extend(changes);
        }
    }
}

/// The ids of the sections that `section`, or else `type` and `match`, select.
fn selected(config: &Config, args: Args<'_>) -> Result<Vec<String>, Status> {
    if let Some(address) = args.text("section") {
        return Ok(config.section(address).map(|section| section.name.clone()).into_iter().collect());
    }
    if args.text("type").is_none() && args.table("match").is_none() {
        return Err(Status::InvalidArgument);
    }
    Ok(config
        .sections
        .iter()
        .filter(|section| matches(section, args))
        .map(|section| section.name.clone())
        .collect())
}

/// Whether a section passes the `type` and `match` filters: an option equals, or a list contains.
fn matches(section: &Section, args: Args<'_>) -> bool {
    let is_kind = args.text("type").is_none_or(|kind| section.kind == kind);
    let is_match = args.table("match").is_none_or(|wanted| {
        wanted.iter().all(|(option, value)| {
            let wanted = values::text(value).ok();
            section
                .option(option)
                .is_some_and(|own| own.elements().iter().any(|one| Some(*one) == wanted.as_deref()))
        })
    });
    is_kind && is_match
}

/// All values of a call, or the status of the first bad one: a call stages all or nothing.
fn checked(table: &Map<String, Value>) -> Result<Vec<(String, UciValue)>, Status> {
    table.iter().map(|(option, json)| Ok((values::name(option)?.to_owned(), values::value(json)?))).collect()
}
