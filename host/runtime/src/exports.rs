//! The interfaces that a component exports, found by their names.
//!
//! A further interface is one line in this file: what calls components asks for it by its type.

use std::any::Any;
use std::collections::HashMap;

use wasmtime::Store;
use wasmtime::component::{Component, Instance, InstancePre};

use crate::bindings::exports::heddle::adapter::{changes, files, inventory, lifecycle};
use crate::bindings::plugin::exports::heddle::plugin;
use crate::state::State;

/// An interface that a component can export.
pub(crate) trait Export: Sized + 'static {
    /// Its name with its version, as components have it.
    const NAME: &'static str;
    /// Where its functions are in a component.
    type Indices: Send + Sync + 'static;

    fn find(pre: &InstancePre<State>) -> wasmtime::Result<Self::Indices>;
    fn load(indices: &Self::Indices, store: &mut Store<State>, instance: &Instance)
    -> wasmtime::Result<Self>;
}

macro_rules! exports {
    ($($interface:path => $name:literal),* $(,)?) => {$(
        const _: () = {
            use $interface as interface;
            impl Export for interface::Guest {
                const NAME: &'static str = $name;
                type Indices = interface::GuestIndices;

                fn find(pre: &InstancePre<State>) -> wasmtime::Result<Self::Indices> {
                    interface::GuestIndices::new(pre)
                }
                fn load(
                    indices: &Self::Indices,
                    store: &mut Store<State>,
                    instance: &Instance,
                ) -> wasmtime::Result<Self> {
                    indices.load(store, instance)
                }
            }
        };
    )*};
}

exports! {
    lifecycle => "heddle:adapter/lifecycle@1.0.0",
    inventory => "heddle:adapter/inventory@1.0.0",
    changes => "heddle:adapter/changes@1.0.0",
    files => "heddle:adapter/files@1.0.0",
    plugin::lifecycle => "heddle:plugin/lifecycle@1.0.0",
    plugin::configuration => "heddle:plugin/configuration@1.0.0",
    plugin::migration => "heddle:plugin/migration@1.0.0",
    plugin::actions => "heddle:plugin/actions@1.0.0",
    plugin::triggers => "heddle:plugin/triggers@1.0.0",
    plugin::tools => "heddle:plugin/tools@1.0.0",
    plugin::inbound => "heddle:plugin/inbound@1.0.0",
}

/// What one component exports.
#[derive(Default)]
pub(crate) struct Exports(HashMap<&'static str, Found>);

/// An interface of a component.
struct Found {
    indices: Box<dyn Any + Send + Sync>,
    /// Loads the interface, which checks its types.
    load: fn(&Exports, &mut Store<State>, &Instance) -> wasmtime::Result<()>,
}

impl Exports {
    /// Takes an interface, where the component has it.
    ///
    /// # Errors
    /// The component has an interface of this name without all functions.
    pub(crate) fn take<E: Export>(
        &mut self,
        code: &Component,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<()> {
        if code.get_export_index(None, E::NAME).is_some() {
            self.insert::<E>(pre)?;
        }
        Ok(())
    }

    /// Takes an interface that the component must have.
    ///
    /// # Errors
    /// The component does not have it, or without all functions.
    pub(crate) fn require<E: Export>(&mut self, pre: &InstancePre<State>) -> wasmtime::Result<()> {
        self.insert::<E>(pre)
    }

    fn insert<E: Export>(&mut self, pre: &InstancePre<State>) -> wasmtime::Result<()> {
        let indices = Box::new(E::find(pre)?);
        let load = |exports: &Self, store: &mut Store<State>, instance: &Instance| {
            exports.find::<E>(store, instance).map(drop)
        };
        self.0.insert(E::NAME, Found { indices, load });
        Ok(())
    }

    /// Loads all interfaces of an instance.
    ///
    /// # Errors
    /// A function of one of them has another type than the interface says.
    pub(crate) fn load_all(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<()> {
        self.0.values().try_for_each(|found| (found.load)(self, store, instance))
    }

    /// Whether the component has the interface.
    pub(crate) fn has<E: Export>(&self) -> bool {
        self.0.contains_key(E::NAME)
    }

    /// The interface in an instance; `None` where the component does not have it.
    pub(crate) fn find<E: Export>(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
    ) -> wasmtime::Result<Option<E>> {
        let indices = self.0.get(E::NAME).and_then(|found| found.indices.downcast_ref::<E::Indices>());
        indices.map(|indices| E::load(indices, store, instance)).transpose()
    }
}

/// The exports of one instance.
pub(crate) struct Exported<'a> {
    pub(crate) exports: &'a Exports,
    pub(crate) instance: Instance,
}

impl Exported<'_> {
    /// The interface, where the component has it.
    pub(crate) fn find<E: Export>(&self, store: &mut Store<State>) -> wasmtime::Result<Option<E>> {
        self.exports.find(store, &self.instance)
    }

    /// The interface, which every component of its kind has.
    pub(crate) fn get<E: Export>(&self, store: &mut Store<State>) -> wasmtime::Result<E> {
        self.find(store)?.ok_or_else(|| {
            wasmtime::Error::new(crate::trap::HostFault(format!("'{}' was not looked up", E::NAME)))
        })
    }
}
