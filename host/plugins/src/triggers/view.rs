//! What calls plugins in the caller's organization, and how it stands.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::{OrgId, Timestamp, UserId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_marketplace::manifest::Manifest;
use heddle_store::plugins::timers::TimerRow;
use heddle_store::plugins::triggers::TriggerRow;
use heddle_store::plugins::values::Keeper;
use heddle_store::plugins::{organizations, timers, triggers};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::change::live;
use crate::declarations::PLUGIN_READ;
use crate::index::Index;

/// What calls a plugin by itself in an organization.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginTriggers", example = example())]
struct View {
    /// Id of the plugin.
    plugin: String,
    organization_id: OrgId,
    /// The user with whose rights the plugin is called: who last set it in the organization. Null where it was never set, or
    /// before anything called it.
    author_id: Option<UserId>,
    /// Why the plugin could not take its settings.
    problem: Option<String>,
    /// Those of the package that serves.
    triggers: Vec<TriggerView>,
    /// Those that the plugin has set, by name.
    timers: Vec<TimerView>,
    /// Those of the package that serves, each with its address in the organization.
    hooks: Vec<HookView>,
}

/// A trigger, and whether events wait for it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginTrigger")]
struct TriggerView {
    id: String,
    title: String,
    description: String,
    /// `read`, `stage` or `outward`: what it may change.
    effect: &'static str,
    /// Types of events that call it, and patterns of types; empty where only timers do.
    events: Vec<String>,
    /// Events wait to be handed over, or are handed over now.
    is_waiting: bool,
    /// How often handing over the next events failed.
    attempts: i64,
    /// Why it was not called, or why the call failed, for the last time.
    problem: Option<String>,
    /// When it was last called with events and nothing failed.
    last_called_at: Option<Timestamp>,
}

/// A timer that the plugin has set.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginTimer")]
struct TimerView {
    name: String,
    /// Id of the trigger that it calls.
    trigger: String,
    /// The time that it comes at.
    next_at: Timestamp,
    /// How often the call at this time failed.
    attempts: i64,
    /// Why it was not called, or why the call failed, for the last time.
    problem: Option<String>,
}

/// A hook, and its address.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PluginHook")]
struct HookView {
    name: String,
    title: String,
    description: String,
    /// `read`, `stage` or `outward`: what it may change.
    effect: &'static str,
    /// Where others send their requests by POST, below the address of this service.
    path: String,
    /// Name of the secret that proves requests; `PUT /plugins/{plugin}/secrets/{secret}` sets it.
    secret: String,
}

fn example() -> Value {
    json!({
        "plugin": "acme-tickets", "organization_id": "0192f0c1-2b7a-7cc0-8000-000000000001",
        "author_id": "0192f0c1-2b7a-7cc0-8000-000000000002", "problem": null,
        "triggers": [{
            "id": "outages", "title": "Open a ticket for an outage", "description": "", "effect": "outward",
            "events": ["device.status.changed"], "is_waiting": false, "attempts": 0, "problem": null,
            "last_called_at": "2026-01-05T08:00:00Z",
        }],
        "timers": [{
            "name": "nightly", "trigger": "outages", "next_at": "2026-01-06T02:00:00Z", "attempts": 0, "problem": null,
        }],
        "hooks": [{
            "name": "answers", "title": "Answers from the ticket system", "description": "", "effect": "read",
            "path": "/api/v1/plugins/acme-tickets/hooks/answers/0192f0c1-2b7a-7cc0-8000-000000000001",
            "secret": "signing-secret",
        }],
    })
}

pub(crate) fn routes() -> Routes {
    Routes::default().get(
        "/plugins/{plugin}/triggers",
        Access::Permission(PLUGIN_READ),
        show,
        doc("What calls a plugin by itself in the caller's organization: events, timers and hooks")
            .named("get_plugin_triggers")
            .answers::<View>(200)
            .example("plugin", Some("acme-tickets")),
    )
}

async fn show(
    State(app): State<SharedApp>,
    caller: Caller,
    At(plugin): At<String>,
) -> Result<Answer<View>, Error> {
    let known = Index::of(&app).find(&plugin).ok_or(Error::NotFound("plugin"))?;
    live(Some(known.row.clone()))?;
    let keeper = Keeper { org: caller.org_id, plugin: known.row.id };
    let mut tx = app.db.read().await?;
    let set = organizations::find(&mut tx, keeper.org, keeper.plugin).await?;
    let rows = triggers::list(&mut tx, keeper).await?;
    let timers = timers::list(&mut tx, keeper).await?;
    drop(tx);
    let manifest = known.serving();
    Ok(Answer(View {
        organization_id: keeper.org,
        author_id: set.as_ref().and_then(|set| set.author_id),
        problem: set.and_then(|set| set.problem),
        triggers: manifest.map_or_else(Vec::new, |manifest| triggers_of(manifest, rows)),
        timers: timers.into_iter().map(timer_of).collect(),
        hooks: manifest.map_or_else(Vec::new, |manifest| hooks_of(manifest, &plugin, keeper.org)),
        plugin,
    }))
}

fn triggers_of(manifest: &Manifest, mut rows: Vec<TriggerRow>) -> Vec<TriggerView> {
    let view = |trigger: &heddle_marketplace::plugin::Trigger| {
        let row = rows.iter().position(|row| row.trigger_id == trigger.id).map(|at| rows.swap_remove(at));
        TriggerView {
            id: trigger.id.clone(),
            title: trigger.title.clone(),
            description: trigger.description.clone(),
            effect: trigger.effect.as_str(),
            events: trigger.events.clone(),
            is_waiting: row.as_ref().is_some_and(|row| row.due_at.is_some()),
            attempts: row.as_ref().map_or(0, |row| row.attempts),
            last_called_at: row.as_ref().and_then(|row| row.called_at),
            problem: row.and_then(|row| row.problem),
        }
    };
    manifest.triggers.iter().map(view).collect()
}

fn timer_of(row: TimerRow) -> TimerView {
    TimerView {
        name: row.name,
        trigger: row.trigger_id,
        next_at: row.scheduled_at,
        attempts: row.attempts,
        problem: row.problem,
    }
}

fn hooks_of(manifest: &Manifest, plugin: &str, org: OrgId) -> Vec<HookView> {
    let view = |hook: &heddle_marketplace::plugin::Hook| HookView {
        name: hook.name.clone(),
        title: hook.title.clone(),
        description: hook.description.clone(),
        effect: hook.effect.as_str(),
        path: format!("/api/v1/plugins/{plugin}/hooks/{}/{org}", hook.name),
        secret: hook.signature.secret.clone(),
    };
    manifest.hooks.iter().map(view).collect()
}
