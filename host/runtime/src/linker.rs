//! What a component may import, and nothing else.

use heddle_marketplace::manifest::{Kind, Manifest};
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, Linker};

use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::{clock, context, description, http, log, progress, random, secrets};
use crate::bindings::plugin::heddle::plugin::{events, fabric, kv, schedule};
use crate::host::wasi;
use crate::load::LoadError;
use crate::state::State;

/// Interfaces that every component may import.
const FREE: &[&str] = &[
    "heddle:common/types",
    "heddle:host/context",
    "heddle:host/log",
    "heddle:host/progress",
    "heddle:host/clock",
    "heddle:host/random",
];
const DESCRIPTION: &str = "heddle:host/description";
const HTTP: &str = "heddle:host/http";
const SECRETS: &str = "heddle:host/secrets";
const KV: &str = "heddle:plugin/kv";
const FABRIC: &str = "heddle:plugin/fabric";
const EVENTS: &str = "heddle:plugin/events";
const SCHEDULE: &str = "heddle:plugin/schedule";

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
    kv::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    fabric::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    events::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    schedule::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    wasi::add_to_linker(&mut linker)?;
    Ok(linker)
}

/// Refuses imports beyond what the manifest's kind and capabilities allow.
pub(crate) fn check_imports(
    engine: &Engine,
    component: &Component,
    manifest: &Manifest,
) -> Result<(), LoadError> {
    for (name, item) in component.component_type().imports(engine) {
        let interface = name.split('@').next().unwrap_or(name);
        if let Some(needs) = refusal(manifest, interface, || has_functions(engine, &item.ty)) {
            return Err(LoadError::Import { name: name.to_owned(), needs });
        }
    }
    Ok(())
}

/// What an import lacks; `None` where it is allowed. `has_functions` says whether more than types are imported.
fn refusal(manifest: &Manifest, interface: &str, has_functions: impl Fn() -> bool) -> Option<&'static str> {
    let (kind, has) = (manifest.kind, &manifest.capabilities);
    let (has_http, needs_http) = match kind {
        Kind::Adapter => (has.controller_http, "it needs 'controller-http' in the manifest's capabilities"),
        Kind::Plugin => (!has.http.is_empty(), "it needs 'http' in the manifest's capabilities"),
    };
    let (is_allowed, needs) = match interface {
        _ if FREE.contains(&interface) => return None,
        DESCRIPTION => (kind == Kind::Adapter, "only adapters have a description"),
        HTTP => (has_http, needs_http),
        // The type of secrets belongs to `http`; only getting one is a capability.
        SECRETS => (
            has.secrets.is_any() || (has_http && !has_functions()),
            "it needs 'secrets' in the manifest's capabilities",
        ),
        KV | FABRIC | EVENTS | SCHEDULE if kind == Kind::Adapter => (false, "only plugins have it"),
        KV => (has.kv.is_some(), "it needs 'kv' in the manifest's capabilities"),
        FABRIC => (!has.called().is_empty(), "it needs 'fabric.call' in the manifest's capabilities"),
        EVENTS => (!has.emitted().is_empty(), "it needs 'events.emit' in the manifest's capabilities"),
        SCHEDULE => (has.schedule.is_some(), "it needs 'schedule' in the manifest's capabilities"),
        _ if wasi::INTERFACES.contains(&interface) => {
            (kind == Kind::Plugin, "adapters get no system interfaces; build for a target without them")
        }
        _ if interface.starts_with("wasi:") => (
            false,
            "no component gets this system interface; build without it: with '--stub-wasi', or for a target without WASI",
        ),
        _ => (false, "the host does not have it"),
    };
    (!is_allowed).then_some(needs)
}

fn has_functions(engine: &Engine, item: &ComponentItem) -> bool {
    match item {
        ComponentItem::ComponentInstance(instance) => instance.exports(engine).any(|(name, export)| {
            matches!(export.ty, ComponentItem::ComponentFunc(_)) && !name.starts_with('[')
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest(kind: &str, capabilities: Value) -> Manifest {
        serde_json::from_value(json!({
            "schema": 1, "id": "acme", "version": "1.0.0", "kind": kind, "api": "1.0", "name": "Acme", "publisher": "acme",
            "license": "Apache-2.0", "files": [], "component": "component.wasm", "capabilities": capabilities,
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(kind: &str, capabilities: Value, interface: &str, expected: Option<&str>) {
        let found = refusal(&manifest(kind, capabilities), interface, || true);
        match expected {
            None => assert_eq!(found, None, "{interface}"),
            Some(part) => assert!(found.is_some_and(|needs| needs.contains(part)), "{interface}: {found:?}"),
        }
    }

    #[test]
    fn an_interface_is_linked_only_with_its_capability() {
        let http =
            || json!({ "name": "api", "origin": "https://a.test", "methods": ["GET"], "paths": ["/"] });
        let secret = json!([{ "name": "key", "target": "api", "places": ["bearer"] }]);
        for (interface, capability) in [
            (HTTP, json!({ "http": [http()] })),
            (SECRETS, json!({ "http": [http()], "secrets": secret })),
            (KV, json!({ "kv": {} })),
            (FABRIC, json!({ "fabric": { "call": ["a.b"] } })),
            (EVENTS, json!({ "events": { "emit": ["plugin.acme.x"] } })),
            (SCHEDULE, json!({ "schedule": { "min-interval-s": 60 } })),
        ] {
            check("plugin", json!({}), interface, Some("in the manifest's capabilities"));
            check("plugin", capability, interface, None);
        }
        check("plugin", json!({ "fabric": { "call": [] } }), FABRIC, Some("'fabric.call'"));
        check("adapter", json!({}), HTTP, Some("'controller-http'"));
        check("adapter", json!({ "controller-http": true }), HTTP, None);
    }

    #[test]
    fn a_kind_has_no_interface_of_the_other_one() {
        for interface in [KV, FABRIC, EVENTS, SCHEDULE] {
            check("adapter", json!({ "controller-http": true }), interface, Some("only plugins"));
        }
        check("plugin", json!({}), DESCRIPTION, Some("only adapters"));
        check("adapter", json!({}), "wasi:cli/environment", Some("no system interfaces"));
        check("plugin", json!({}), "heddle:plugin/other", Some("does not have it"));
        for interface in FREE {
            check("plugin", json!({}), interface, None);
            check("adapter", json!({}), interface, None);
        }
    }

    #[test]
    fn plugins_get_system_interfaces_without_reach() {
        for interface in wasi::INTERFACES {
            check("plugin", json!({}), interface, None);
            check("adapter", json!({ "controller-http": true }), interface, Some("adapters get no system"));
        }
        for interface in [
            "wasi:sockets/tcp",
            "wasi:sockets/udp",
            "wasi:sockets/network",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:http/types",
            "wasi:http/outgoing-handler",
            "wasi:cli/run",
            "wasi:clocks/timezone",
            "wasi:keyvalue/store",
            "wasi:io",
        ] {
            for kind in ["plugin", "adapter"] {
                check(kind, json!({ "controller-http": true }), interface, Some("'--stub-wasi'"));
            }
        }
    }

    /// What is allowed is linked: nothing passes the check and fails afterwards for its name.
    #[test]
    fn every_allowed_system_interface_is_linked() {
        let engine = crate::engine::compiling().unwrap();
        let mut linker = linker(&engine).unwrap();
        // A name that has a meaning is not given another one.
        let mut links = |interface: &str, item: &str| {
            let mut instance = linker.instance(&format!("{interface}@0.2.12")).unwrap();
            instance.func_wrap(item, |_, (): ()| Ok(())).is_err()
        };
        for interface in wasi::INTERFACES {
            let item = match *interface {
                "wasi:io/error" => "error",
                "wasi:io/poll" => "poll",
                "wasi:io/streams" => "output-stream",
                "wasi:clocks/wall-clock" | "wasi:clocks/monotonic-clock" => "now",
                "wasi:random/random" => "get-random-bytes",
                "wasi:random/insecure" => "get-insecure-random-bytes",
                "wasi:random/insecure-seed" => "insecure-seed",
                "wasi:cli/environment" => "get-environment",
                "wasi:cli/exit" => "exit",
                "wasi:cli/stdin" => "get-stdin",
                "wasi:cli/stdout" => "get-stdout",
                "wasi:cli/stderr" => "get-stderr",
                "wasi:cli/terminal-input" => "terminal-input",
                "wasi:cli/terminal-output" => "terminal-output",
                "wasi:cli/terminal-stdin" => "get-terminal-stdin",
                "wasi:cli/terminal-stdout" => "get-terminal-stdout",
                "wasi:cli/terminal-stderr" => "get-terminal-stderr",
                "wasi:filesystem/types" => "[method]descriptor.open-at",
                "wasi:filesystem/preopens" => "get-directories",
                other => panic!("nothing of '{other}' is looked for"),
            };
            assert!(links(interface, item), "{interface}");
        }
        for (interface, item) in [
            ("wasi:sockets/tcp", "tcp-socket"),
            ("wasi:sockets/udp", "udp-socket"),
            ("wasi:sockets/instance-network", "instance-network"),
            ("wasi:sockets/ip-name-lookup", "resolve-addresses"),
            ("wasi:http/outgoing-handler", "handle"),
        ] {
            assert!(!links(interface, item), "{interface}");
        }
    }

    #[test]
    fn the_type_of_secrets_comes_with_http() {
        let manifest = manifest("adapter", json!({ "controller-http": true }));
        assert_eq!(refusal(&manifest, SECRETS, || false), None);
        assert!(refusal(&manifest, SECRETS, || true).is_some());
    }
}
