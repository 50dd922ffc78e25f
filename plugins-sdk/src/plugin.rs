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

pub mod bindings;
mod host;
pub mod testing;

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use bindings::heddle::plugin::kv::{Change, Entry as Stored, Expected, Listed, NewValue, Op, Page};
pub use host::{Event, Host, Live, settings};

use crate::{Fault, FaultExt as _, fault};

/// A plugin, without any state: every call is a fresh instance. What it keeps is in its storage, or elsewhere.
pub trait Plugin: 'static {
    /// Its actions: those of the manifest, made by [`action`].
    const ACTIONS: &'static [Entry];

    /// Whether it can work with the settings and secrets of the organization; what it answers is shown to people. It
    /// changes nothing: the host refuses to store or to emit something in it.
    fn check(_host: &dyn Host) -> Result<Option<Value>, Fault> {
        Ok(None)
    }
}

/// Something that a plugin does when it is asked.
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

/// An action in the list of a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    id: &'static str,
    run: fn(&dyn Host, Value) -> Result<Value, Fault>,
}

/// Makes the entry of an action.
#[must_use]
pub const fn action<A: Action>() -> Entry {
    Entry { id: A::ID, run: typed::<A> }
}

impl Entry {
    /// The id of the action.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }
}

fn typed<A: Action>(host: &dyn Host, params: Value) -> Result<Value, Fault> {
    let params = serde_json::from_value(params).map_err(|error| {
        fault::invalid(format!("the parameters are not accepted: {error}")).with_code("params")
    })?;
    serde_json::to_value(A::run(host, params)?)
        .map_err(|error| fault::generic(format!("the answer cannot be written as JSON: {error}")))
}

/// Runs an action of a plugin by its id, as the host does.
///
/// # Errors
/// The action's own fault; `unsupported` where the plugin has no such action; `invalid` with the code `params` where it
/// does not read the parameters.
pub fn run<P: Plugin>(host: &dyn Host, action: &str, params: Value) -> Result<Value, Fault> {
    let entry = P::ACTIONS.iter().find(|entry| entry.id == action);
    let entry = entry.ok_or_else(|| fault::unsupported(format!("there is no action '{action}'")))?;
    (entry.run)(host, params)
}

#[doc(hidden)]
pub fn is_plugin<P: Plugin>() {}

/// What `register_plugin!` exports for `P`; nothing to call by hand.
#[derive(Debug)]
pub struct Exported<P>(PhantomData<P>);

impl<P: Plugin> bindings::exports::heddle::plugin::lifecycle::Guest for Exported<P> {
    fn check() -> Result<Option<String>, Fault> {
        Ok(P::check(&Live)?.map(|shown| shown.to_string()))
    }
}

impl<P: Plugin> bindings::exports::heddle::plugin::actions::Guest for Exported<P> {
    fn run(action_id: String, params: String) -> Result<String, Fault> {
        let params = serde_json::from_str(&params)
            .map_err(|error| fault::invalid(format!("the parameters are not JSON: {error}")))?;
        run::<P>(&Live, &action_id, params).map(|answer| answer.to_string())
    }
}

/// Exports a type that implements [`Plugin`](crate::plugin::Plugin) as this crate's component.
///
/// On other targets than `wasm32` it only checks that the trait is implemented, so that the crate's tests run natively.
#[macro_export]
macro_rules! register_plugin {
    ($plugin:ident) => {
        const _: fn() = $crate::plugin::is_plugin::<$plugin>;

        #[cfg(target_arch = "wasm32")]
        mod heddle_component {
            type Component = $crate::plugin::Exported<super::$plugin>;
            $crate::plugin::bindings::export_plugin!(Component with_types_in $crate::plugin::bindings);
        }
    };
}

#[cfg(test)]
mod tests;
