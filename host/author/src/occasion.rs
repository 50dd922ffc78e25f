//! Calls of what is no action: triggers, hooks, `configure` and `migrate`, with parameters that say what called them.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_core::Clock;
use heddle_runtime::{CallError, GivenEvent, HookAnswer, HookRequest, Plugin, PluginCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What tells the plugin of its settings, in the place of an id.
pub(crate) const CONFIGURE: &str = "configure";

/// What has the plugin take over what another version stored.
pub(crate) const MIGRATE: &str = "migrate";

/// The parameters of that: the version. What is stored is given with the call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Migrated {
    from_version: String,
}

/// The parameters of a trigger.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a trigger takes {\"events\": [...]} or {\"timer\": NAME}"
)]
enum Called {
    Events { events: Vec<Happened> },
    Timer { timer: String, at_ms: Option<u64> },
}

/// An event, of which the type is enough.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Happened {
    event_type: String,
    #[serde(default)]
    payload: Map<String, Value>,
    id: Option<String>,
    seq: Option<u64>,
    occurred_at_ms: Option<u64>,
}

/// The parameters of a hook: the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    #[serde(default)]
    body: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    query: BTreeMap<String, String>,
}

/// Makes the call where the plugin has something of this id that is no action and no tool; `None` where it has not.
pub(crate) async fn make(
    plugin: &Plugin,
    call: &PluginCall,
    id: &str,
    params: &Value,
) -> anyhow::Result<Option<Result<Value, CallError>>> {
    let manifest = plugin.manifest();
    if manifest.trigger(id).is_some() {
        let asked =
            Called::deserialize(params).with_context(|| format!("the parameters of the trigger '{id}'"))?;
        return Ok(Some(trigger(plugin, call, id, asked).await.map(|()| json!({}))));
    }
    if manifest.hook(id).is_some() {
        let sent = Sent::deserialize(params).with_context(|| format!("the parameters of the hook '{id}'"))?;
        let request = HookRequest {
            hook: id.to_owned(),
            headers: sent
                .headers
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
            query: sent.query.into_iter().collect(),
            body: sent.body.into_bytes(),
        };
        return Ok(Some(plugin.receive(call, request).await.map(shown)));
    }
    if id == CONFIGURE && plugin.has_configuration() {
        return Ok(Some(plugin.configure(call).await.map(|()| json!({}))));
    }
    if id == MIGRATE && plugin.has_migration() {
        let Migrated { from_version } = Migrated::deserialize(params)
            .context("the parameters of 'migrate': it takes {\"from_version\": \"1.0.0\"}")?;
        return Ok(Some(plugin.migrate(call, &from_version).await.map(|()| json!({}))));
    }
    Ok(None)
}

async fn trigger(plugin: &Plugin, call: &PluginCall, id: &str, asked: Called) -> Result<(), CallError> {
    let now = u64::try_from(Clock::default().now().timestamp_millis()).unwrap_or_default();
    match asked {
        Called::Timer { timer, at_ms } => plugin.on_schedule(call, id, (&timer, at_ms.unwrap_or(now))).await,
        Called::Events { events } => {
            let given = events.into_iter().zip(1_u64..).map(|(event, number)| GivenEvent {
                id: event.id.unwrap_or_else(|| format!("event-{number}")),
                seq: event.seq.unwrap_or(number),
                event_type: event.event_type,
                occurred_at_ms: event.occurred_at_ms.unwrap_or(now),
                payload: Value::Object(event.payload),
            });
            plugin.on_events(call, id, given.collect()).await
        }
    }
}

fn shown(answer: HookAnswer) -> Value {
    json!({
        "status": answer.status, "content_type": answer.content_type, "body": String::from_utf8_lossy(&answer.body),
    })
}

/// What can be called, for a message.
pub(crate) fn known(plugin: &Plugin) -> String {
    let manifest = plugin.manifest();
    let list = |what: &str, ids: Vec<&str>| (!ids.is_empty()).then(|| format!("{what} {}", ids.join(", ")));
    let parts = [
        list("the actions", manifest.actions.iter().map(|one| one.id.as_str()).collect()),
        list("the tools", manifest.tools.iter().map(|one| one.id.as_str()).collect()),
        list("the triggers", manifest.triggers.iter().map(|one| one.id.as_str()).collect()),
        list("the hooks", manifest.hooks.iter().map(|one| one.name.as_str()).collect()),
        plugin.has_configuration().then(|| CONFIGURE.to_owned()),
        plugin.has_migration().then(|| MIGRATE.to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_say_what_called() {
        let read = |text: &str| serde_json::from_str::<Called>(text).map_err(|error| error.to_string());
        assert!(matches!(read(r#"{ "events": [{ "event_type": "a.b" }] }"#), Ok(Called::Events { .. })));
        assert!(matches!(read(r#"{ "timer": "night" }"#), Ok(Called::Timer { at_ms: None, .. })));
        assert!(read(r#"{ "timers": [] }"#).is_err_and(|error| error.contains("{\"timer\": NAME}")));
        assert!(serde_json::from_str::<Sent>(r#"{ "body": "a", "method": "GET" }"#).is_err());
    }
}
