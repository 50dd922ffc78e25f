//! Actions and tools of plugins as operations of the Fabric.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::change::Danger;
use heddle_core::event::Event;
use heddle_core::operation::{OperationKind, OperationTier, StepErrorCode};
use heddle_core::{OrgId, Permission, Role, RunId, interned};
use heddle_fabric::operation::{Declaration, Operation, ParamsSchema, StepCall, StepError};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::http::error::Error;
use heddle_kernel::misfit;
use heddle_kernel::resource::By;
use heddle_marketplace::plugin::{Action, ActionEffect, Tool, operation_id};
use heddle_runtime::{Plugin, PluginCall};
use heddle_store::connections::ConnectionRow;
use heddle_store::plugins::organizations::{self, OrganizationRow};
use heddle_store::plugins::values::Keeper;
use serde_json::Value;

use crate::calls::Calls;
use crate::change::live;
use crate::index::Index;
use crate::storage;

/// Every operation of the plugins that serve in this process.
pub(crate) fn all(app: &App) -> Vec<Arc<dyn Operation>> {
    let plugins = app.runtime.plugins();
    let of = |plugin: &Plugin| {
        let actions = plugin.manifest().actions.iter();
        let actions = actions.map(|action| Act::new(plugin, Offer::of_action(action)));
        let tools = plugin.manifest().tools.iter().map(|tool| Act::new(plugin, Offer::of_tool(tool)));
        actions.chain(tools).map(|act| Arc::new(act) as Arc<dyn Operation>).collect::<Vec<_>>()
    };
    plugins.iter().flat_map(of).collect()
}

/// How long a call waits for what another version stored.
const STORAGE_WAIT: Duration = Duration::from_secs(5);
/// The shortest pause between its looks, and what a pause can have in addition.
const STORAGE_PAUSE_MS: u64 = 20;
const STORAGE_MORE_MS: u64 = 83;

/// For whom a plugin runs, and in which step: what it asks of the server is done with these rights.
pub(crate) struct Behalf {
    pub(crate) app: SharedApp,
    pub(crate) author: Caller,
    pub(crate) event: Option<Event>,
    pub(crate) run_id: RunId,
    /// Idempotency key of the step.
    pub(crate) key: String,
    pub(crate) step: usize,
    pub(crate) connection: Option<ConnectionRow>,
    /// Operations that it has called: each has an idempotency key of its own.
    pub(crate) calls: Calls,
    /// Which values the plugin sees. Where they are its storage no longer, it writes none.
    pub(crate) generation: i64,
}

impl Behalf {
    /// Of a caller who only asks whether the plugin can work.
    fn asking(by: &By, generation: i64) -> Self {
        // With the rights of the caller in their organization, and in no other.
        Self { key: by.origin.request_id.clone(), ..Self::by_itself(&by.app, by.caller.clone(), generation) }
    }

    /// Of a user with whose rights something happens by itself that is no step.
    pub(crate) fn by_itself(app: &SharedApp, author: Caller, generation: i64) -> Self {
        let run_id = app.clock.new_id();
        Self {
            app: app.clone(),
            author: Caller { credential: Credential::Action(run_id), ..author },
            event: None,
            run_id,
            key: run_id.to_string(),
            step: 0,
            connection: None,
            calls: Calls::default(),
            generation,
        }
    }

    pub(crate) fn of(call: &StepCall<'_>, generation: i64) -> Self {
        Self {
            app: call.app.clone(),
            author: call.author.clone(),
            event: call.event.cloned(),
            run_id: call.run_id,
            key: call.key.to_owned(),
            step: call.step,
            connection: call.connection.cloned(),
            calls: Calls::default(),
            generation,
        }
    }
}

/// Asks a plugin whether it can work with the settings and secrets of the caller's organization; what it answers.
pub(crate) async fn check(by: &By, id: &str) -> Result<Option<Value>, Error> {
    let By { app, caller, origin } = by;
    let known = Index::of(app).find(id).ok_or(Error::NotFound("plugin"))?;
    let state = live(Some(known.row.clone()))?.state;
    let plugin = app.runtime.plugin(id).ok_or_else(|| Error::Conflict {
        kind: "plugin_state",
        message: format!("'{id}' does not serve: it is {state}; GET /plugins/{id} says why"),
    })?;
    let switched = switched(app, caller.org_id, &plugin).await?.ok_or_else(|| Error::Conflict {
        kind: "operation_not_offered",
        message: format!("plugin '{id}' is not switched on: PUT /plugins/{id}/organization does that"),
    })?;
    let asked = PluginCall {
        org_id: caller.org_id,
        settings: switched.set.settings,
        request_id: origin.request_id.clone(),
        deadline: None,
        behalf: Arc::new(Behalf::asking(by, switched.generation)),
    };
    Ok(switched.plugin.check(&asked).await?)
}

/// A plugin in an organization that has switched it on.
struct Switched {
    /// The package that serves: a newer one where that came while a call waited.
    plugin: Plugin,
    /// What the organization set it to.
    set: OrganizationRow,
    /// Which values of its storage it sees.
    generation: i64,
}

/// The plugin in this organization; `None` where it is not switched on. While a version takes over the storage, this waits a
/// moment. Each look asks which version serves: after the takeover the storage does not fit the version before.
async fn switched(app: &App, org: OrgId, plugin: &Plugin) -> Result<Option<Switched>, Error> {
    let began = Instant::now();
    let mut plugin = plugin.clone();
    let mut look = 0_u64;
    loop {
        look += 1;
        let mut tx = app.db.read().await?;
        let Some(set) = organizations::in_use(&mut tx, org, plugin.id()).await? else { return Ok(None) };
        let stored = storage::of(&mut tx, &plugin, Keeper { org, plugin: set.plugin_uid }).await?;
        drop(tx);
        match storage::unfit(&plugin, stored.as_ref()) {
            None => {
                require_settings(&plugin, &set.settings)?;
                let generation = stored.map_or(0, |stored| stored.generation);
                return Ok(Some(Switched { plugin, set, generation }));
            }
            Some(_) if began.elapsed() < STORAGE_WAIT && set.problem.is_none() => {
                // Uneven: versions that follow each other in a rhythm would be looked at in the same unready moment each time.
                let more = look * 37 % STORAGE_MORE_MS;
                tokio::time::sleep(Duration::from_millis(STORAGE_PAUSE_MS + more)).await;
                if let Some(serving) = app.runtime.plugin(plugin.id()) {
                    plugin = serving;
                }
            }
            Some(message) => return Err(Error::Conflict { kind: "plugin_storage", message }),
        }
    }
}

/// Requires that the organization's settings fit the package that serves: they may be from before it.
fn require_settings(plugin: &Plugin, settings: &Value) -> Result<(), Error> {
    match misfit_of(plugin, settings) {
        None => Ok(()),
        Some(message) => Err(Error::Conflict { kind: "settings_unfit", message }),
    }
}

/// How the organization's settings do not fit the package that serves.
pub(crate) fn misfit_of(plugin: &Plugin, settings: &Value) -> Option<String> {
    let schema = plugin.settings_schema();
    let details = misfit::details(schema.validator(), schema.document(), settings, "settings");
    let first = details.first()?;
    Some(format!(
        "the organization's settings do not fit version {} of '{id}' ({}: {}); PUT /plugins/{id}/organization sets them",
        plugin.version(),
        first.field,
        first.message,
        id = plugin.id()
    ))
}

/// What a plugin offers as an operation.
struct Offer<'a> {
    id: &'a str,
    title: &'a str,
    description: &'a str,
    effect: ActionEffect,
    permission: Option<&'a str>,
    params_schema: &'a Value,
    output_schema: &'a Value,
}

impl<'a> Offer<'a> {
    fn of_action(action: &'a Action) -> Self {
        Self {
            id: &action.id,
            title: &action.title,
            description: &action.description,
            effect: action.effect,
            permission: action.permission.as_deref(),
            params_schema: &action.params_schema,
            output_schema: &action.output_schema,
        }
    }

    fn of_tool(tool: &'a Tool) -> Self {
        Self {
            id: &tool.id,
            title: &tool.title,
            description: &tool.description,
            effect: ActionEffect::Read,
            permission: tool.permission.as_deref(),
            params_schema: &tool.params_schema,
            output_schema: &tool.output_schema,
        }
    }
}

/// An action or a tool of a plugin.
struct Act {
    declaration: Declaration,
    plugin: Plugin,
    action: String,
}

impl Act {
    fn new(plugin: &Plugin, offer: Offer<'_>) -> Self {
        let manifest = plugin.manifest();
        let declaration = Declaration {
            id: operation_id(&manifest.id, offer.id),
            title: offer.title.to_owned(),
            description: offer.description.to_owned(),
            tier: OperationTier::Plugin,
            kind: kind(offer.effect),
            danger: Danger::Normal,
            owner: manifest.id.clone(),
            permission: offer.permission.map(|id| permission(plugin, id)),
            params_schema: ParamsSchema::from(offer.params_schema),
            output_schema: Arc::new(offer.output_schema.clone()),
            of_adapter: true,
            is_switched: true,
        };
        Self { declaration, plugin: plugin.clone(), action: offer.id.to_owned() }
    }

    async fn act(&self, call: &StepCall<'_>, params: Value) -> Result<Value, StepError> {
        let id = self.plugin.id();
        let switched = switched(call.app, call.author.org_id, &self.plugin).await?;
        let switched = switched.ok_or_else(|| {
            let message = format!(
                "plugin '{id}' is not switched on in the organization: PUT /plugins/{id}/organization does that"
            );
            StepError::new(StepErrorCode::UnknownOperation, message)
        })?;
        self.require_same(&switched.plugin)?;
        let asked = PluginCall {
            org_id: call.author.org_id,
            settings: switched.set.settings,
            request_id: format!("run-{}", call.run_id),
            deadline: None,
            behalf: Arc::new(Behalf::of(call, switched.generation)),
        };
        // The runtime has judged the answer by the action's schema.
        Ok(switched.plugin.run(&asked, &self.action, &params).await.map_err(Error::from)?)
    }

    /// Requires that what the call was judged by is the same in a newer version.
    fn require_same(&self, newer: &Plugin) -> Result<(), StepError> {
        if judged_by(newer, &self.action) == judged_by(&self.plugin, &self.action) {
            return Ok(());
        }
        let message = format!(
            "'{}' was changed by version {} while it was called; try again",
            self.declaration.id,
            newer.version()
        );
        Err(StepError::new(StepErrorCode::UnknownOperation, message))
    }
}

impl Operation for Act {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        self.act(call, params).boxed()
    }
}

/// What a call of an action or a tool was judged by: effect, permission and the schema of its parameters; `None` where the
/// plugin has none of this id.
fn judged_by<'a>(plugin: &'a Plugin, id: &str) -> Option<(ActionEffect, Option<&'a str>, &'a Value)> {
    let manifest = plugin.manifest();
    let offer =
        manifest.action(id).map(Offer::of_action).or_else(|| manifest.tool(id).map(Offer::of_tool))?;
    Some((offer.effect, offer.permission, offer.params_schema))
}

/// What an action does to the world.
fn kind(effect: ActionEffect) -> OperationKind {
    match effect {
        ActionEffect::Read => OperationKind::Read,
        ActionEffect::Stage => OperationKind::Write,
        ActionEffect::Outward => OperationKind::Sink,
    }
}

/// A permission of the plugin, as it is declared while the plugin is installed.
fn permission(plugin: &Plugin, id: &str) -> Permission {
    let declared = plugin.manifest().permissions.iter().find(|one| one.id == id);
    let title = declared.map_or(id, |one| &one.title);
    interned::permission(id, Role::OrgAdmin, title)
}
