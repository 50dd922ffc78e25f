//! An installed plugin, and the calls that the server makes.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::bounds::json_bytes;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{Document, OrgId};
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::ActionEffect;
use heddle_marketplace::{Schema, SchemaError};
use serde_json::Value;

use crate::api::{CallError, GivenEvent, HookAnswer, HookRequest, Urgency};
use crate::bindings::plugin::exports::heddle::plugin::{
    actions, configuration, inbound, lifecycle, migration, tools, triggers,
};
use crate::breaker::Standing;
use crate::call::{Ask, Component, Prepared, Shared, ask};
use crate::convert::{self, Unfit, Weigh};
use crate::egress::Account;
use crate::egress::phase::Phase;
use crate::limits::{ACTION_PARAMS_BYTES_MAX, WALL_MAX};
use crate::observe::Observation;
use crate::reach::{Own, PluginReach, Reach, Spent, own_id};
use crate::schemas::CompiledSchemas;
use crate::state::Surroundings;

/// An installed plugin: verified, compiled, linked.
///
/// Methods are one call each, in a fresh instance. Dropping the future cancels the call.
#[derive(Clone)]
pub struct Plugin(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    component: Arc<Component>,
    settings: Schema,
    schemas: CompiledSchemas<(String, Side)>,
    event_schemas: Arc<CompiledSchemas<String>>,
    version: String,
    identity: String,
    manifest_sha256: String,
}

/// Which schema of an action or a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Params,
    Output,
}

/// One call's surroundings.
#[derive(Clone)]
pub struct PluginCall {
    pub org_id: OrgId,
    /// The organization's settings, validated against [`Plugin::settings_schema`].
    pub settings: Value,
    pub request_id: String,
    /// Wall time; that of the action's effect when `None`, bounded by the host's maximum.
    pub deadline: Option<Duration>,
    /// Handed back to the [`PluginServices`](crate::PluginServices) as it is: on whose behalf, in which run.
    pub behalf: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for PluginCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginCall")
            .field("org_id", &self.org_id)
            .field("request_id", &self.request_id)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plugin({} {})", self.id(), self.version())
    }
}

/// What the component learns of its call, as a phase.
fn phase(effect: ActionEffect) -> Phase {
    match effect {
        ActionEffect::Read => Phase::Read,
        ActionEffect::Stage => Phase::Plan,
        ActionEffect::Outward => Phase::Write,
    }
}

/// Wall time of a call when its caller names none.
fn wall(phase: Phase) -> Duration {
    Duration::from_secs(if phase == Phase::Write { 60 } else { 15 })
}

/// When a call is over.
fn deadline(call: &PluginCall, phase: Phase) -> Instant {
    Instant::now() + call.deadline.unwrap_or_else(|| wall(phase)).min(WALL_MAX)
}

/// What a call is.
#[derive(Debug, Clone, Copy)]
struct Asked {
    phase: Phase,
    effect: ActionEffect,
    own: Own,
    /// Bytes of its parameters.
    params_bytes: usize,
}

/// What the answer of an action or a tool must fit.
struct Output {
    /// Such as `the action 'send'`.
    of: String,
    schema: Arc<Schema>,
}

impl Output {
    fn judge(self, answer: Value) -> Result<Value, Fault> {
        let Self { of, schema } = self;
        match schema.validator().validate(&answer) {
            Ok(()) => {}
            Err(problem) => {
                let pointer = problem.instance_path().to_string();
                return Err(output_fault(format!(
                    "the answer does not fit the output-schema of {of} at '{pointer}'"
                )));
            }
        }
        Ok(answer)
    }
}

fn output_fault(message: String) -> Fault {
    Fault::new(FaultKind::Generic, message).with_code("output")
}

impl Plugin {
    pub(crate) fn new(
        shared: Arc<Shared>,
        component: Arc<Component>,
        (identity, manifest_sha256): (String, String),
        settings: Schema,
    ) -> Self {
        let version = component.facts.manifest.version.to_string();
        let (schemas, event_schemas) = (CompiledSchemas::default(), Arc::default());
        Self(Arc::new(Inner {
            shared,
            component,
            settings,
            schemas,
            event_schemas,
            version,
            identity,
            manifest_sha256,
        }))
    }

    /// The manifest's id.
    pub fn id(&self) -> &str {
        &self.0.component.facts.manifest.id
    }

    /// Returns the version of the manifest, such as `1.4.0`.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// What the package says of itself: its capabilities, actions, permissions and events.
    pub fn manifest(&self) -> &Manifest {
        &self.0.component.facts.manifest
    }

    /// SHA-256 of the package's manifest, hex: names this very package.
    pub fn manifest_sha256(&self) -> &str {
        &self.0.manifest_sha256
    }

    /// SHA-256 of the component, hex: names this very code.
    pub fn component_sha256(&self) -> &str {
        &self.0.component.facts.sha256
    }

    /// Names this very package for people: `acme@1.4.0+0a1b2c3d4e5f`, with the beginning of its manifest's SHA-256.
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    /// Whether it takes calls, or failed so often that it takes none.
    pub fn standing(&self) -> Standing {
        self.0.component.breaker.standing()
    }

    /// Whether it failed so often that a person must release it.
    pub fn is_quarantined(&self) -> bool {
        self.standing().is_quarantined
    }

    /// Ends its calls at once, and lets none begin any more. It has to be loaded anew to serve again.
    pub fn cut(&self) {
        self.0.component.cut.cancel();
    }

    /// Takes calls again after a quarantine.
    pub fn release(&self) {
        self.0.component.breaker.release();
    }

    /// What an organization's settings must fit; a plugin that declares nothing takes none.
    pub fn settings_schema(&self) -> &Schema {
        &self.0.settings
    }

    /// What the parameters of an action or a tool must fit; `None` when it has none of this id.
    pub async fn params_schema(&self, action: &str) -> Result<Option<Arc<Schema>>, Arc<SchemaError>> {
        self.schema(action, Side::Params).await
    }

    /// What the answer of an action or a tool must fit; `None` when it has none of this id. [`Plugin::run`] judges by it.
    pub async fn output_schema(&self, action: &str) -> Result<Option<Arc<Schema>>, Arc<SchemaError>> {
        self.schema(action, Side::Output).await
    }

    async fn schema(&self, action: &str, side: Side) -> Result<Option<Arc<Schema>>, Arc<SchemaError>> {
        let manifest = self.manifest();
        let of_action = manifest.action(action).map(|one| (&one.params_schema, &one.output_schema));
        let of_tool = || manifest.tool(action).map(|one| (&one.params_schema, &one.output_schema));
        let Some((params, output)) = of_action.or_else(of_tool) else { return Ok(None) };
        let document = match side {
            Side::Params => params,
            Side::Output => output,
        };
        self.0.schemas.get((action.to_owned(), side), &Document::from(document)).await.map(Some)
    }

    /// Whether it can say if it works: it has the `lifecycle` export.
    pub fn has_check(&self) -> bool {
        self.0.component.exports.has::<lifecycle::Guest>()
    }

    /// Runs an action, or asks a tool. The caller has checked the parameters against [`Plugin::params_schema`]. An answer that
    /// does not fit [`Plugin::output_schema`] is a generic fault with the code `output`. [`CallError::effect`] says whether an
    /// action that failed may have changed something.
    pub async fn run(&self, call: &PluginCall, action: &str, params: &Value) -> Result<Value, CallError> {
        let manifest = self.manifest();
        let (effect, of) = match (manifest.action(action), manifest.tool(action)) {
            (Some(declared), _) => (declared.effect, format!("the action '{action}'")),
            (None, Some(_)) => (ActionEffect::Read, format!("the tool '{action}'")),
            (None, None) => {
                let message = format!("the plugin has no action and no tool '{action}'");
                let fault = Fault::new(FaultKind::NotFound, message).with_code("unknown-action");
                return Err(CallError::Fault(fault));
            }
        };
        let is_tool = manifest.action(action).is_none();
        let bytes = json_bytes(params);
        if bytes > ACTION_PARAMS_BYTES_MAX {
            let message =
                format!("the parameters have {bytes} bytes; {ACTION_PARAMS_BYTES_MAX} are the most");
            let fault = Fault::new(FaultKind::Invalid, message).with_code("request-too-large");
            return Err(CallError::Fault(fault));
        }
        let output = self.output(action, of).await?;
        let (action, params) = (action.to_owned(), params.to_string());
        self.lower("params", &params);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                // What the manifest declares is exported: that was checked when it was linked.
                if is_tool {
                    exports.get::<tools::Guest>(store)?.call_invoke(store, &action, &params).await
                } else {
                    exports.get::<actions::Guest>(store)?.call_run(store, &action, &params).await
                }
            })
        });
        let asked = Asked { phase: phase(effect), effect, own: Own::All, params_bytes: bytes };
        self.observed(asked.phase, self.call_and_judge(call, asked, ask, output)).await
    }

    /// The schema of an answer, before anything is done: one that cannot be used must not be found out after it.
    async fn output(&self, action: &str, of: String) -> Result<Output, CallError> {
        let schema = self.output_schema(action).await.map_err(|error| {
            CallError::Fault(output_fault(format!("the output-schema of {of} cannot be used: {error}")))
        })?;
        schema
            .map(|schema| Output { of, schema })
            .ok_or_else(|| CallError::host("an action of the manifest has no output-schema".to_owned()))
    }

    async fn call_and_judge(
        &self,
        call: &PluginCall,
        asked: Asked,
        ask: Ask<String>,
        output: Output,
    ) -> Result<Value, CallError> {
        let deadline = deadline(call, asked.phase);
        let (answer, account) = self.call(call, (asked, deadline), ask, convert::action_output).await?;
        // The schema is its author's, who may have written one that takes long.
        let judged = self.0.shared.apart.heavy(call.org_id, move || output.judge(answer));
        let judged = tokio::time::timeout_at(deadline.into(), judged).await;
        let judged = judged.unwrap_or_else(|_| {
            Ok(Err(output_fault("the answer was not judged in the time of the call".to_owned())))
        });
        let judged = judged.and_then(|judged| judged.map_err(CallError::Fault));
        judged.map_err(|error| if account.has_left() { error.after_effect() } else { error })
    }

    async fn observed<R>(
        &self,
        phase: Phase,
        call: impl Future<Output = Result<R, CallError>>,
    ) -> Result<R, CallError> {
        let observation = Observation::begin_of_plugin(self.0.shared.observer.get(), self.id(), phase);
        let result = call.await;
        observation.end(&result);
        result
    }

    /// Asks the plugin whether it can work with an organization's settings and secrets. `None` where it says nothing of
    /// itself. It changes nothing: it stores nothing and emits no events.
    pub async fn check(&self, call: &PluginCall) -> Result<Option<Value>, CallError> {
        if !self.has_check() {
            return Ok(None);
        }
        let ask = ask(|exports, store| {
            Box::pin(async move { exports.get::<lifecycle::Guest>(store)?.call_check(store).await })
        });
        let (phase, effect) = (Phase::Probe, ActionEffect::Read);
        let asked = Asked { phase, effect, own: Own::Nothing, params_bytes: 0 };
        self.told(call, asked, ask, convert::check_output).await
    }

    /// Whether it does something with settings when they are set: it has the `configuration` export.
    pub fn has_configuration(&self) -> bool {
        self.0.component.exports.has::<configuration::Guest>()
    }

    /// Tells the plugin of the settings of an organization, which were set, or which a new package takes over.
    pub async fn configure(&self, call: &PluginCall) -> Result<(), CallError> {
        if !self.has_configuration() {
            return Ok(());
        }
        let ask = ask(|exports, store| {
            Box::pin(async move { exports.get::<configuration::Guest>(store)?.call_configure(store).await })
        });
        let asked = Asked { phase: Phase::Read, effect: ActionEffect::Read, own: Own::All, params_bytes: 0 };
        self.told(call, asked, ask, convert::nothing).await
    }

    /// Whether it is told that another version takes over what it stored: it has the `migration` export.
    pub fn has_migration(&self) -> bool {
        self.0.component.exports.has::<migration::Guest>()
    }

    /// Has the plugin bring a copy of what it stored for an organization from another version to this one. The caller has
    /// made the copy, and the services work on it.
    pub async fn migrate(&self, call: &PluginCall, from_version: &str) -> Result<(), CallError> {
        if !self.has_migration() {
            return Ok(());
        }
        let from_version = from_version.to_owned();
        self.lower("from-version", &from_version);
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports.get::<migration::Guest>(store)?.call_migrate(store, &from_version).await
            })
        });
        let asked =
            Asked { phase: Phase::Read, effect: ActionEffect::Read, own: Own::Storage, params_bytes: 0 };
        self.told(call, asked, ask, convert::nothing).await
    }

    /// Makes a call whose answer is not judged by a schema.
    async fn told<T: Weigh + Send + 'static, R: Send + 'static>(
        &self,
        call: &PluginCall,
        asked: Asked,
        ask: Ask<T>,
        fit: fn(T) -> Result<R, Unfit>,
    ) -> Result<R, CallError> {
        let called = async {
            let (answer, _) = self.call(call, (asked, deadline(call, asked.phase)), ask, fit).await?;
            Ok(answer)
        };
        self.observed(asked.phase, called).await
    }

    /// Makes a call. Returns the answer, and the account that says what was done meanwhile.
    async fn call<T: Weigh + Send + 'static, R: Send + 'static>(
        &self,
        call: &PluginCall,
        (asked, deadline): (Asked, Instant),
        ask: Ask<T>,
        fit: fn(T) -> Result<R, Unfit>,
    ) -> Result<(R, Arc<Account>), CallError> {
        let Asked { phase, effect, own, params_bytes } = asked;
        let Inner { shared, component, .. } = &*self.0;
        let Some(services) = shared.services.get() else {
            return Err(CallError::host("the runtime has no services for plugins".to_owned()));
        };
        let reach = PluginReach {
            egress: Arc::clone(&shared.egress),
            services: Arc::clone(services),
            effect,
            own,
            settings: Arc::new(call.settings.clone()),
            request_id: call.request_id.clone(),
            behalf: Arc::clone(&call.behalf),
            phase,
            deadline,
            event_schemas: Arc::clone(&self.0.event_schemas),
            opened: HashMap::new(),
            spent: Spent::default(),
        };
        let reach = Reach::plugin(call.org_id, Arc::clone(&component.facts), reach);
        let account = Arc::clone(&reach.account);
        account.give(params_bytes);
        let prepared = Prepared {
            around: Surroundings {
                component: self.id().to_owned(),
                request_id: call.request_id.clone(),
                controller_id: None,
                site_ref: None,
                phase,
                deadline,
                settings: call.settings.to_string(),
                progress: None,
            },
            cpu: component.facts.bounds.cpu,
            reach,
            ask,
            fit,
            weigh: T::bytes,
            urgency: Urgency::Ordinary,
        };
        let peer = own_id(call.org_id, self.id(), None);
        let (answer, _) = shared.call(component, peer, prepared).await?;
        Ok((answer, account))
    }

    fn lower(&self, what: &str, bytes: impl AsRef<[u8]>) {
        if let Some(tap) = &self.0.shared.tap {
            tap(what, bytes.as_ref());
        }
    }
}

fn unknown(what: &str, id: &str) -> CallError {
    let fault = Fault::new(FaultKind::NotFound, format!("the plugin has no {what} '{id}'"));
    CallError::Fault(fault.with_code("unknown-occasion"))
}

impl Plugin {
    fn effect_of(&self, trigger: &str) -> Result<ActionEffect, CallError> {
        let found = self.manifest().trigger(trigger);
        found.map(|trigger| trigger.effect).ok_or_else(|| unknown("trigger", trigger))
    }

    /// Tells a trigger of events, in the order of their numbers.
    pub async fn on_events(
        &self,
        call: &PluginCall,
        trigger: &str,
        events: Vec<GivenEvent>,
    ) -> Result<(), CallError> {
        let effect = self.effect_of(trigger)?;
        let events: Vec<triggers::Event> = events.into_iter().map(convert::given_event).collect();
        let params_bytes = events.iter().map(|event| event.payload.len()).sum();
        events.iter().for_each(|event| self.lower("event", &event.payload));
        let trigger = trigger.to_owned();
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports.get::<triggers::Guest>(store)?.call_on_events(store, &trigger, &events).await
            })
        });
        let asked = Asked { phase: phase(effect), effect, own: Own::All, params_bytes };
        self.told(call, asked, ask, convert::nothing).await
    }

    /// Tells a trigger that one of its timers has come, with the time at which it was to come, in milliseconds since 1970.
    pub async fn on_schedule(
        &self,
        call: &PluginCall,
        trigger: &str,
        (timer, at_ms): (&str, u64),
    ) -> Result<(), CallError> {
        let effect = self.effect_of(trigger)?;
        let (trigger, timer) = (trigger.to_owned(), timer.to_owned());
        let ask = ask(move |exports, store| {
            Box::pin(async move {
                exports.get::<triggers::Guest>(store)?.call_on_schedule(store, &trigger, &timer, at_ms).await
            })
        });
        let asked = Asked { phase: phase(effect), effect, own: Own::All, params_bytes: 0 };
        self.told(call, asked, ask, convert::nothing).await
    }

    /// Hands a request to a hook.
    pub async fn receive(&self, call: &PluginCall, request: HookRequest) -> Result<HookAnswer, CallError> {
        let Some(hook) = self.manifest().hook(&request.hook) else {
            return Err(unknown("hook", &request.hook));
        };
        let effect = hook.effect;
        let params_bytes = request.body.len();
        self.lower("hook.body", &request.body);
        let HookRequest { hook, headers, query, body } = request;
        let request = inbound::Request { hook, headers, query, body };
        let ask = ask(move |exports, store| {
            Box::pin(async move { exports.get::<inbound::Guest>(store)?.call_receive(store, &request).await })
        });
        let asked = Asked { phase: phase(effect), effect, own: Own::All, params_bytes };
        self.told(call, asked, ask, convert::hook_answer).await
    }
}

#[cfg(test)]
mod tests;
