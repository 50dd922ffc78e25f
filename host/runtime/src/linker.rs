//! What a component may import, and nothing else.

use heddle_marketplace::manifest::Capabilities;
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, Linker};

use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::{clock, context, description, http, log, progress, random, secrets};
use crate::load::LoadError;
use crate::state::State;

/// Interfaces that every component may import.
const FREE: &[&str] = &[
    "heddle:common/types",
    "heddle:host/context",
    "heddle:host/description",
    "heddle:host/log",
    "heddle:host/progress",
    "heddle:host/clock",
    "heddle:host/random",
];
const HTTP: &str = "heddle:host/http";
const SECRETS: &str = "heddle:host/secrets";

/// A linker with all that components can be given.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    types::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    context::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    description::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    progress::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    clock::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    random::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    secrets::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    http::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// Refuses imports beyond what the manifest's capabilities allow.
pub(crate) fn check_imports(
    engine: &Engine,
    component: &Component,
    has: &Capabilities,
) -> Result<(), LoadError> {
    for (name, item) in component.component_type().imports(engine) {
        let interface = name.split('@').next().unwrap_or(name);
        if FREE.contains(&interface) || (interface == HTTP && has.controller_http) {
            continue;
        }
        // The type of secrets belongs to `http`; only getting one is a capability.
        if interface == SECRETS && (has.secrets || (has.controller_http && !has_functions(engine, &item.ty)))
        {
            continue;
        }
        let needs = match interface {
            HTTP => "it needs 'controller-http' in the manifest's capabilities",
            SECRETS => "it needs 'secrets' in the manifest's capabilities",
            _ if interface.starts_with("wasi:") => {
                "components get no system interfaces; build for a target without them"
            }
            _ => "the host does not have it",
        };
        return Err(LoadError::Import { name: name.to_owned(), needs });
    }
    Ok(())
}

fn has_functions(engine: &Engine, item: &ComponentItem) -> bool {
    match item {
        ComponentItem::ComponentInstance(instance) => instance.exports(engine).any(|(name, export)| {
            matches!(export.ty, ComponentItem::ComponentFunc(_)) && !name.starts_with('[')
        }),
        _ => true,
    }
}
