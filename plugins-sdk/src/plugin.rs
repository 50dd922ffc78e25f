//! What a plugin is written with.
//!
//! A plugin lists its actions and names itself in [`register_plugin!`](crate::register_plugin). An action is a function
//! over a [`Host`], with parameters and an answer that serde reads and writes; so it is tested natively with
//! [`testing::FakeHost`]. What it may reach stands in the manifest, and a person consents to it:
//!
//! ```ignore
//! struct Greet;
//!
//! #[derive(Deserialize)]
//! struct Whom { name: String }
//!
//! impl Action for Greet {
//!     const ID: &'static str = "greet";
//!     type Params = Whom;
//!     type Output = Value;
//!     fn run(_: &dyn Host, whom: Whom) -> Result<Value, Fault> {
//!         Ok(json!({ "text": format!("good day, {}", whom.name) }))
//!     }
//! }
//!
//! struct Greeter;
//! impl Plugin for Greeter {
//!     const ACTIONS: &'static [Entry] = &[action::<Greet>()];
//! }
//! register_plugin!(Greeter);
//! ```
//!
//! What the manifest declares besides actions is named when the plugin is registered:
//! `register_plugin!(Greeter: actions, triggers, tools, hooks, configuration, migration)`, each once, as far as there is any.

pub mod bindings;
mod host;
pub mod testing;

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use bindings::heddle::plugin::kv::{Change, Entry as Stored, Expected, Listed, NewValue, Op, Page};
pub use bindings::heddle::plugin::schedule::{Cron, Standing, Timer, When};
pub use bindings::inbound::exports::heddle::plugin::inbound::{
    Request as HookRequest, Response as HookResponse,
};
pub use host::{Event, Host, Live, settings};

use crate::{Fault, FaultExt as _, fault};

/// A plugin, without any state: every call is a fresh instance. What it keeps is in its storage, or elsewhere.
pub trait Plugin: 'static {
    /// Its actions: those of the manifest, made by [`action`].
    const ACTIONS: &'static [Entry] = &[];

    /// Its tools: those of the manifest, made by [`action`], too.
    const TOOLS: &'static [Entry] = &[];

    /// Whether it can work with the settings and secrets of the organization; what it answers is shown to people. It
    /// changes nothing: the host refuses to store or to emit something in it.
    fn check(_host: &dyn Host) -> Result<Option<Value>, Fault> {
        Ok(None)
    }

    /// Takes the settings of an organization, which were set, or which this version takes over: such as setting timers. It
    /// is registered as `configuration`.
    fn configure(_host: &dyn Host) -> Result<(), Fault> {
        Ok(())
    }

    /// Brings what an earlier version stored for an organization to the form of this one. It works on a copy, which takes the
    /// storage's place when this succeeds; before that nothing else calls this version there. It is registered as `migration`,
    /// and the manifest has `"migrates": true` in `capabilities.kv`.
    fn migrate(_host: &dyn Host, from_version: &str) -> Result<(), Fault> {
        Err(fault::unsupported(format!("what version {from_version} stored is not taken over")))
    }

    /// Takes events that a trigger of the manifest names, in the order of their numbers. They come at least once. It is
    /// registered as `triggers`.
    fn on_events(_host: &dyn Host, trigger: &str, _events: &[Received]) -> Result<(), Fault> {
        Err(fault::unsupported(format!("trigger '{trigger}' takes no events")))
    }

    /// Does what a timer of this name is for, with the time at which it was to come, in milliseconds since 1970. It is
    /// registered as `triggers`.
    fn on_schedule(_host: &dyn Host, trigger: &str, _timer: &str, _at_ms: u64) -> Result<(), Fault> {
        Err(fault::unsupported(format!("trigger '{trigger}' has no timers")))
    }

    /// Answers a request to a hook of the manifest, whose signature the host has verified. It is registered as `hooks`.
    fn receive(_host: &dyn Host, request: HookRequest) -> Result<HookResponse, Fault> {
        Err(fault::unsupported(format!("hook '{}' is not answered", request.hook)))
    }
}

/// Something that a plugin does when it is asked, or a question that it answers.
pub trait Action: 'static {
    /// As the manifest has it.
    const ID: &'static str;
    /// What the manifest's `params-schema` describes.
    type Params: DeserializeOwned;
    /// What the manifest's `output-schema` describes; a JSON object.
    type Output: Serialize;

    /// Carries the action out.
    ///
    /// # Errors
    /// What kept it from that, in words for the author of the Connection.
    fn run(host: &dyn Host, params: Self::Params) -> Result<Self::Output, Fault>;
}

/// An action or a tool in the list of a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    id: &'static str,
    run: Run,
}

/// Makes the entry of an action or a tool.
#[must_use]
pub const fn action<A: Action>() -> Entry {
    Entry { id: A::ID, run: typed::<A> }
}

impl Entry {
    /// The id of the action or the tool.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    fn asked(&self, host: &dyn Host, params: &Value) -> Result<Value, Fault> {
        let answer = (self.run)(host, &params.to_string())?;
        serde_json::from_str(&answer)
            .map_err(|error| fault::generic(format!("the answer is not JSON: {error}")))
    }
}

/// From text to text: no value stands between the text and the action's own types.
fn typed<A: Action>(host: &dyn Host, params: &str) -> Result<String, Fault> {
    let params = serde_json::from_str(params).map_err(|error| {
        fault::invalid(format!("the parameters are not accepted: {error}")).with_code("params")
    })?;
    serde_json::to_string(&A::run(host, params)?)
        .map_err(|error| fault::generic(format!("the answer cannot be written as JSON: {error}")))
}

/// Runs an action of a plugin by its id, as the host does.
///
/// # Errors
/// The action's own fault; `unsupported` where the plugin has no such action; `invalid` with the code `params` where it
/// does not read the parameters.
pub fn run<P: Plugin>(host: &dyn Host, action: &str, params: Value) -> Result<Value, Fault> {
    found(P::ACTIONS, "action", action)?.asked(host, &params)
}

/// Asks a tool of a plugin by its id, as the host does.
///
/// # Errors
/// As [`run`].
pub fn invoke<P: Plugin>(host: &dyn Host, tool: &str, arguments: Value) -> Result<Value, Fault> {
    found(P::TOOLS, "tool", tool)?.asked(host, &arguments)
}

type Run = fn(&dyn Host, &str) -> Result<String, Fault>;

fn found(entries: &'static [Entry], what: &str, id: &str) -> Result<&'static Entry, Fault> {
    let entry = entries.iter().find(|entry| entry.id == id);
    entry.ok_or_else(|| fault::unsupported(format!("there is no {what} '{id}'")))
}

#[doc(hidden)]
pub fn is_plugin<P: Plugin>() {}

/// What `register_plugin!` exports for `P`; nothing to call by hand.
#[derive(Debug)]
pub struct Exported<P>(PhantomData<P>);

impl<P: Plugin> bindings::lifecycle::exports::heddle::plugin::lifecycle::Guest for Exported<P> {
    fn check() -> Result<Option<String>, Fault> {
        Ok(P::check(&Live)?.map(|shown| shown.to_string()))
    }
}

impl<P: Plugin> bindings::configuration::exports::heddle::plugin::configuration::Guest for Exported<P> {
    fn configure() -> Result<(), Fault> {
        P::configure(&Live)
    }
}

impl<P: Plugin> bindings::migration::exports::heddle::plugin::migration::Guest for Exported<P> {
    fn migrate(from_version: String) -> Result<(), Fault> {
        P::migrate(&Live, &from_version)
    }
}

impl<P: Plugin> bindings::actions::exports::heddle::plugin::actions::Guest for Exported<P> {
    fn run(action_id: String, params: String) -> Result<String, Fault> {
        (found(P::ACTIONS, "action", &action_id)?.run)(&Live, &params)
    }
}

impl<P: Plugin> bindings::tools::exports::heddle::plugin::tools::Guest for Exported<P> {
    fn invoke(tool_id: String, arguments: String) -> Result<String, Fault> {
        (found(P::TOOLS, "tool", &tool_id)?.run)(&Live, &arguments)
    }
}

impl<P: Plugin> bindings::triggers::exports::heddle::plugin::triggers::Guest for Exported<P> {
    fn on_events(trigger_id: String, events: Vec<bindings::Given>) -> Result<(), Fault> {
        let events = events.into_iter().map(Received::of).collect::<Result<Vec<_>, Fault>>()?;
        P::on_events(&Live, &trigger_id, &events)
    }

    fn on_schedule(trigger_id: String, timer: String, scheduled_at_ms: u64) -> Result<(), Fault> {
        P::on_schedule(&Live, &trigger_id, &timer, scheduled_at_ms)
    }
}

impl<P: Plugin> bindings::inbound::exports::heddle::plugin::inbound::Guest for Exported<P> {
    fn receive(request: HookRequest) -> Result<HookResponse, Fault> {
        P::receive(&Live, request)
    }
}

/// An event that a trigger is told of.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The same whenever the event comes again.
    pub id: String,
    /// Grows within the organization.
    pub seq: u64,
    pub event_type: String,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub occurred_at_ms: u64,
    /// As the type declares it.
    pub payload: Value,
}

impl Received {
    fn of(given: bindings::Given) -> Result<Self, Fault> {
        let payload = serde_json::from_str(&given.payload)
            .map_err(|error| fault::invalid(format!("the payload of an event is not JSON: {error}")))?;
        Ok(Self {
            id: given.id,
            seq: given.seq,
            event_type: given.event_type,
            occurred_at_ms: given.occurred_at_ms,
            payload,
        })
    }
}

/// Exports a type that implements [`Plugin`](crate::plugin::Plugin) as this crate's component.
///
/// On other targets than `wasm32` it only checks that the trait is implemented, so that the crate's tests run natively.
#[macro_export]
macro_rules! register_plugin {
    ($plugin:ident) => { $crate::register_plugin!($plugin: actions); };
    ($plugin:ident: $($part:ident),+ $(,)?) => {
        const _: fn() = $crate::plugin::is_plugin::<$plugin>;

        #[cfg(target_arch = "wasm32")]
        mod heddle_component {
            type Component = $crate::plugin::Exported<super::$plugin>;
            $crate::plugin::bindings::lifecycle::export_lifecycle!(
                Component with_types_in $crate::plugin::bindings::lifecycle
            );
            $($crate::register_part!($part Component);)+
        }
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = { $($crate::register_part!($part);)+ };
    };
}

/// Exports one of the interfaces of a plugin; nothing to call by hand.
#[doc(hidden)]
#[macro_export]
macro_rules! register_part {
    (actions $($component:ident)?) => { $($crate::plugin::bindings::actions::export_actions!(
        $component with_types_in $crate::plugin::bindings::actions
    );)? };
    (configuration $($component:ident)?) => { $($crate::plugin::bindings::configuration::export_configuration!(
        $component with_types_in $crate::plugin::bindings::configuration
    );)? };
    (migration $($component:ident)?) => { $($crate::plugin::bindings::migration::export_migration!(
        $component with_types_in $crate::plugin::bindings::migration
    );)? };
    (triggers $($component:ident)?) => { $($crate::plugin::bindings::triggers::export_triggers!(
        $component with_types_in $crate::plugin::bindings::triggers
    );)? };
    (tools $($component:ident)?) => { $($crate::plugin::bindings::tools::export_tools!(
        $component with_types_in $crate::plugin::bindings::tools
    );)? };
    (hooks $($component:ident)?) => { $($crate::plugin::bindings::inbound::export_inbound!(
        $component with_types_in $crate::plugin::bindings::inbound
    );)? };
    ($other:ident $($component:ident)?) => {
        compile_error!("a plugin has actions, configuration, migration, triggers, tools and hooks");
    };
}

#[cfg(test)]
mod tests;
