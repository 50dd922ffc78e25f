//! Events of plugins: only of declared types, and as their schemas say. The pace is the server's.

use std::collections::HashMap;
use std::sync::Arc;

use heddle_core::Document;
use heddle_core::fault::{Fault, FaultKind};
use heddle_marketplace::Schema;

use super::fabric::parsed;
use crate::bindings::heddle::common::types;
use crate::bindings::plugin::heddle::plugin::events;
use crate::egress::declared::few;
use crate::limits::{DEDUP_KEY_BYTES_MAX, EVENT_BYTES_MAX, EVENTS_MAX};
use crate::reach::{OfPlugin, Own};
use crate::services::Emitted;
use crate::state::State;

impl events::Host for State {
    async fn emit(&mut self, events: Vec<events::Emitted>) -> wasmtime::Result<Result<(), types::Fault>> {
        let done = self.emit_all(events).await;
        self.told(done)
    }
}

/// An event of a declared type, whose payload is not judged yet.
struct Asked {
    event: events::Emitted,
    schema: Arc<Schema>,
}

impl State {
    async fn emit_all(&mut self, events: Vec<events::Emitted>) -> Result<(), Fault> {
        self.waits();
        let plugin = self.reach.of_plugin()?;
        take(&mut plugin.plugin.spent.events, events.len())?;
        if plugin.plugin.own != Own::All {
            return Err(plugin.refuse("read-only", "a check or a migration emits no events"));
        }
        let (mut asked, mut schemas) = (Vec::with_capacity(events.len()), HashMap::new());
        for event in events {
            let name = declared(&plugin, &event)?;
            let schema = match schemas.get(&name) {
                Some(schema) => Arc::clone(schema),
                None => schema_of(&plugin, &name).await?,
            };
            schemas.insert(name, Arc::clone(&schema));
            asked.push(Asked { event, schema });
        }
        if asked.is_empty() {
            return Ok(());
        }
        let judge = move || asked.into_iter().map(judged).collect::<Result<Vec<_>, Fault>>();
        let judged = plugin.plugin.egress.apart.heavy(plugin.org, judge).await;
        let events =
            judged.map_err(|_| Fault::new(FaultKind::Generic, "the events could not be judged"))??;
        plugin.plugin.services.emit(&plugin.of(), events).await
    }
}

/// Takes events from the budget of the call, before anything of them is looked at: those that are refused count, too.
fn take(spent: &mut usize, events: usize) -> Result<(), Fault> {
    *spent = spent.saturating_add(events.max(1));
    if *spent > EVENTS_MAX {
        let message = format!("a call may emit {EVENTS_MAX} events, and those that are refused count");
        return Err(Fault::new(FaultKind::Generic, message).with_code("event-budget"));
    }
    Ok(())
}

/// The type of an event, which is declared.
fn declared(plugin: &OfPlugin<'_>, event: &events::Emitted) -> Result<String, Fault> {
    let manifest = &plugin.facts.manifest;
    let is_emitted = manifest.capabilities.emitted().contains(&event.event_type);
    if !is_emitted {
        let names = few(manifest.capabilities.emitted());
        let message = format!("this type of events is not declared; 'capabilities.events.emit' has {names}");
        return Err(plugin.refuse("event-type", message));
    }
    let is_key =
        |key: &String| (1..=DEDUP_KEY_BYTES_MAX).contains(&key.len()) && !key.chars().any(char::is_control);
    if event.dedup_key.as_ref().is_some_and(|key| !is_key(key)) {
        let message = format!("'dedup-key' has 1 to {DEDUP_KEY_BYTES_MAX} bytes without control characters");
        return Err(Fault::new(FaultKind::Invalid, message).with_code("dedup-key"));
    }
    Ok(event.event_type.clone())
}

async fn schema_of(plugin: &OfPlugin<'_>, name: &str) -> Result<Arc<Schema>, Fault> {
    let unusable = |why: String| {
        Fault::new(FaultKind::Generic, format!("the payload-schema of '{name}' cannot be used: {why}"))
    };
    let declared = plugin.facts.manifest.event_type(name);
    let declared = declared.ok_or_else(|| unusable("'event-types' does not have it".to_owned()))?;
    let document = Document::from(&declared.payload_schema);
    let compiled = plugin.plugin.event_schemas.get(name.to_owned(), &document).await;
    compiled.map_err(|error| unusable(error.to_string()))
}

/// Judges an event by the schema of its type, which takes as long as its author wants.
fn judged(Asked { event, schema }: Asked) -> Result<Emitted, Fault> {
    let name = &event.event_type;
    let payload =
        parsed(&format!("the values of an event of the type '{name}'"), &event.payload, EVENT_BYTES_MAX)?;
    if let Err(problem) = schema.validator().validate(&payload) {
        let pointer = problem.instance_path().to_string();
        let message = format!("the payload does not fit the payload-schema of '{name}' at '{pointer}'");
        return Err(Fault::new(FaultKind::Invalid, message).with_code("event-payload"));
    }
    Ok(Emitted { event_type: event.event_type, payload, dedup_key: event.dedup_key })
}
