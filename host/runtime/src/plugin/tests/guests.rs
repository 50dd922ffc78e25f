//! Small guests, written as core modules. The encoder makes components of them that import what they call.

use std::path::Path;

use heddle_core::Clock;
use serde_json::json;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::*;
use crate::host::wasi::INTERFACES;

const WASI: &str = include_str!("guests.wit");

/// Interfaces of the host that no guest here imports: `guests.wit` does not have them, or only their types.
const NOT_IMPORTED: &[&str] = &[
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stderr",
];

/// A function of an interface that a guest calls: its name in the guest, the interface, the function, its type.
pub(super) type Called = (&'static str, &'static str, &'static str, &'static str);

/// A component with the action `run`, which does this and answers `{"n": d}`, where `d` is the digit that the body leaves
/// on the stack. Below 4096 its memory is the body's, except for the first 64 bytes; memory that the host asks for
/// begins at 64 KiB.
pub(super) fn component(called: &[Called], body: &str) -> Vec<u8> {
    let imports: String = called
        .iter()
        .map(|(name, interface, function, signature)| {
            format!(r#"(import "{interface}@0.2.6" "{function}" (func ${name} {signature}))"#)
        })
        .collect();
    let module = format!(
        r#"(module {imports}
        (memory (export "memory") 2)
        (data (i32.const 4096) "{{\"n\": 0}}")
        (global $next (mut i32) (i32.const 65536))
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
            (global.set $next (i32.add (local.get $at) (local.get 3)))
            (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))) (then
                (drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))))))
            (local.get $at))
        (func $body (result i32) (local $i i32) (local $j i32) {body})
        (func (export "heddle:plugin/actions@1.0.0#run") (param i32 i32 i32 i32) (result i32)
            (i32.store8 (i32.const 4102) (i32.add (call $body) (i32.const 48)))
            (i32.store (i32.const 0) (i32.const 0))
            (i32.store (i32.const 8) (i32.const 4096))
            (i32.store (i32.const 12) (i32.const 8))
            (i32.const 0)))"#
    );
    encoded(wat::parse_str(module).unwrap())
}

fn encoded(mut module: Vec<u8>) -> Vec<u8> {
    let (resolve, world) = world();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// What the guests import and export, with the interfaces of plugins as they are delivered.
fn world() -> (Resolve, wit_parser::WorldId) {
    let mut resolve = Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    for package in ["common", "host", "plugin"] {
        resolve.push_dir(wit.join(package)).unwrap();
    }
    let imported = INTERFACES.iter().filter(|name| !NOT_IMPORTED.contains(name));
    let imports: String = imported.map(|name| format!("import {name}@0.2.6;\n")).collect();
    let text = format!(
        "package test:guest;\nworld guest {{\n{imports}export heddle:plugin/actions@1.0.0;\n}}\n{WASI}"
    );
    let package = resolve.push_str("guest.wit", &text).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    (resolve, world)
}

impl Lab {
    /// A plugin of the lab with this component instead of none.
    pub(super) fn with_guest(bytes: &[u8]) -> Self {
        let lab = Self::start();
        let plugin = lab.plugin_of(bytes, |_| ()).unwrap();
        Self { plugin, ..lab }
    }

    /// Links a component as it is linked when it is installed.
    pub(super) fn plugin_of(
        &self,
        bytes: &[u8],
        change: impl FnOnce(&mut Manifest),
    ) -> Result<Plugin, String> {
        crate::load::validate(bytes).map_err(|error| error.to_string())?;
        let mut manifest = manifest("https://a.test");
        change(&mut manifest);
        let shared = &self.runtime.shared;
        let code = wasmtime::component::Component::new(&shared.engine, bytes);
        let code = code.map_err(|error| format!("{error:#}"))?;
        crate::linker::check_imports(&shared.engine, &code, &manifest).map_err(|error| error.to_string())?;
        let pre = self.runtime.linker.instantiate_pre(&code).map_err(|error| format!("{error:#}"))?;
        let mut exports = Exports::default();
        exports.take::<actions::Guest>(&code, &pre).unwrap();
        let component = Component {
            facts: Arc::new(Facts::new(manifest, "sha".to_owned(), Bindings::default())),
            pre,
            exports,
            slots: OfComponent::new(Kind::Plugin),
            cut: CancellationToken::new(),
            provenance: Provenance::default(),
            breaker: Breaker::new("acme 1.0.0".to_owned(), Peers::Organizations, Clock::default()),
        };
        let settings = Schema::compile(&json!({})).unwrap();
        let names = ("acme".to_owned(), "m".to_owned());
        Ok(Plugin::new(Arc::clone(shared), Arc::new(component), names, settings))
    }

    /// Runs the action of the guest, in this time.
    pub(super) async fn act_within(&self, deadline: Duration) -> Result<Value, CallError> {
        let call = PluginCall { deadline: Some(deadline), ..call_of(self.org) };
        self.plugin.run(&call, "act", &json!({})).await
    }

    pub(super) async fn act(&self) -> Result<Value, CallError> {
        self.act_within(Duration::from_secs(20)).await
    }
}
