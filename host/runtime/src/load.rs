//! From verified bytes to an adapter or a plugin that can be called. The cheap checks come
//! first; nothing reaches the compiler before they passed.

use std::sync::Arc;
use std::time::Instant;

use heddle_marketplace::manifest::{Kind, Manifest};
use heddle_marketplace::{Schema, Verified, judge_schemas, settings_schema};
use tokio_util::sync::CancellationToken;
use wasmparser::{BinaryReaderError, ElementItems, ElementKind, Parser, Payload, Validator, WasmFeatures};
use wasmtime::Engine;
use wasmtime::component::{self, InstancePre};

use crate::adapter::Adapter;
use crate::admission::OfComponent;
use crate::bindings::exports::heddle::adapter::{changes, files, inventory, lifecycle};
use crate::bindings::plugin::exports::heddle::plugin;
use crate::breaker::{Breaker, Peers};
use crate::cache::{Found, KeepError};
use crate::call::{Component, Provenance};
use crate::compile::{self, CompileError};
use crate::description::Bindings;
use crate::egress::Facts;
use crate::exports::{Export, Exports};
use crate::limits::PASSIVE_ELEMENTS_MAX;
use crate::plugin::Plugin;
use crate::runtime::Runtime;
use crate::schemas::Schemas;
use crate::state::State;
use crate::{description, linker};

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

/// Why a package cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An adapter where a plugin belongs, or the other way round.
    #[error("the package is of the kind '{found}', and not of the kind '{expected}'")]
    Kind { found: &'static str, expected: &'static str },
    #[error("the file is not a component; compiled code and core modules are refused")]
    NotComponent,
    #[error("the component is not valid: {0}")]
    Invalid(String),
    #[error("the component imports '{name}': {needs}")]
    Import { name: String, needs: &'static str },
    /// What the manifest declares and what the component exports do not go together.
    #[error("{0}")]
    Export(String),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("the compiled code cannot be used: {0}")]
    Code(String),
    #[error("the folder of compiled code cannot be used")]
    Cache(#[source] std::io::Error),
    #[error("the component does not fit the interface: {0}")]
    Link(String),
    /// Its trial had no time: a component that computes is ended by its processor time before.
    #[error("the component was not ready after {secs} s; try again when this machine is less busy")]
    NotReady { secs: u64 },
    /// Its trial was not carried out, such as where the server stops.
    #[error("the component could not be tried: {0}; try again")]
    Untried(String),
    #[error("a schema is not accepted: {0}")]
    Schema(String),
}

impl LoadError {
    /// Whether this machine is at fault, and not the package: trying again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Cache(_) | Self::NotReady { .. } | Self::Untried(_) => true,
            Self::Compile(error) => error.is_passing(),
            Self::Kind { .. }
            | Self::NotComponent
            | Self::Invalid(_)
            | Self::Import { .. }
            | Self::Export(_)
            | Self::Code(_)
            | Self::Link(_)
            | Self::Schema(_) => false,
        }
    }
}

impl Runtime {
    pub(crate) async fn prepare(&self, package: &Verified) -> Result<Adapter, LoadError> {
        let manifest = package.manifest();
        let (component, settings) = self.linked(package, Kind::Adapter, adapter_exports).await?;
        let description = description::shown(&manifest.id, &manifest.name, package.description());
        let described = (description, package.description().releases.clone());
        let schemas = Schemas::new(settings);
        Ok(Adapter::new(Arc::clone(&self.shared), component, names(package), described, schemas))
    }

    pub(crate) async fn prepare_as_plugin(&self, package: &Verified) -> Result<Plugin, LoadError> {
        let (component, settings) = self.linked(package, Kind::Plugin, plugin_exports).await?;
        Ok(Plugin::new(Arc::clone(&self.shared), component, names(package), settings))
    }

    /// The component of a package of this kind, checked, compiled and linked, and the schema of its settings.
    async fn linked(
        &self,
        package: &Verified,
        kind: Kind,
        exports: fn(&Manifest, &component::Component, &InstancePre<State>) -> Result<Exports, LoadError>,
    ) -> Result<(Arc<Component>, Schema), LoadError> {
        let (manifest, bytes) = (package.manifest(), package.component());
        if manifest.kind != kind {
            return Err(LoadError::Kind { found: manifest.kind.as_str(), expected: kind.as_str() });
        }
        if Engine::detect_precompiled(bytes).is_some() || !bytes.starts_with(HEADER) {
            return Err(LoadError::NotComponent);
        }
        let settings = settings_schema(manifest)
            .map_err(|error| LoadError::Schema(format!("config-schema: {error}")))?;
        if !self.cache.was_judged(package.manifest_sha256()) {
            // The cheaper judgement before the compiler, too.
            validate(bytes)?;
            judge_schemas(manifest, package.description()).map_err(LoadError::Schema)?;
            self.cache.keep_judged(package.manifest_sha256()).map_err(LoadError::Cache)?;
        }
        let code = self.code(package.component_sha256(), bytes).await?;
        linker::check_imports(&self.shared.engine, &code, manifest)?;
        let pre =
            self.linker.instantiate_pre(&code).map_err(|error| LoadError::Link(format!("{error:#}")))?;
        let component = Component {
            exports: exports(manifest, &code, &pre)?,
            pre,
            facts: Arc::new(Facts::new(
                manifest.clone(),
                package.component_sha256().to_owned(),
                Bindings::of(package.description()),
            )),
            slots: OfComponent::new(kind),
            cut: CancellationToken::new(),
            provenance: Provenance {
                archive_sha256: package.archive_sha256().map(str::to_owned),
                key_ids: package.key_ids(),
            },
            breaker: Breaker::new(
                format!("{} {}", manifest.id, manifest.version),
                match kind {
                    Kind::Adapter => Peers::Controllers,
                    Kind::Plugin => Peers::Organizations,
                },
                self.shared.clock.clone(),
            ),
        };
        let component = Arc::new(component);
        self.try_once(package, &component).await?;
        Ok((component, settings))
    }

    /// Tries a component that this program has not tried before. A trial has the same outcome each time, so it is not repeated at
    /// the next start.
    async fn try_once(&self, package: &Verified, component: &Arc<Component>) -> Result<(), LoadError> {
        if self.cache.was_tried(package.manifest_sha256()) {
            return Ok(());
        }
        self.shared.tried(component).await?;
        if let Err(error) = self.cache.keep_tried(package.manifest_sha256()) {
            // Such as a full disk. It is tried again at the next start.
            tracing::debug!(reason = %error, "that a component could be called is not remembered");
        }
        Ok(())
    }

    /// The compiled component, from the cache or from the compile child.
    async fn code(&self, sha256: &str, bytes: &[u8]) -> Result<component::Component, LoadError> {
        if let Found::Code(code) = self.cache.find(&self.shared.engine, sha256).map_err(LoadError::Cache)? {
            return Ok(code);
        }
        let started = Instant::now();
        let code = compile::compile(&self.compiler, bytes).await?;
        tracing::info!(
            component.sha256 = sha256,
            duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "compiled a component"
        );
        self.cache.keep(&self.shared.engine, sha256, &code).map_err(|error| match error {
            KeepError::Code(reason) => LoadError::Code(reason),
            KeepError::Disk(source) => LoadError::Cache(source),
        })
    }
}

/// Validates with what the engine has switched on for guests, before anything is compiled.
pub(crate) fn validate(bytes: &[u8]) -> Result<(), LoadError> {
    let features = WasmFeatures::MUTABLE_GLOBAL
        | WasmFeatures::SATURATING_FLOAT_TO_INT
        | WasmFeatures::SIGN_EXTENSION
        | WasmFeatures::REFERENCE_TYPES
        | WasmFeatures::MULTI_VALUE
        | WasmFeatures::BULK_MEMORY
        | WasmFeatures::SIMD
        | WasmFeatures::FLOATS
        | WasmFeatures::EXTENDED_CONST
        | WasmFeatures::GC_TYPES
        | WasmFeatures::COMPONENT_MODEL;
    Validator::new_with_features(features)
        .validate_all(bytes)
        .map_err(|error| LoadError::Invalid(error.to_string()))?;
    let passive = passive_elements(bytes).map_err(|error| LoadError::Invalid(error.to_string()))?;
    if passive > PASSIVE_ELEMENTS_MAX {
        return Err(LoadError::Invalid(format!(
            "its modules have {passive} references in passive segments; {PASSIVE_ELEMENTS_MAX} are the most, as each instance \
             has them all"
        )));
    }
    Ok(())
}

/// How many references the passive segments of a component's modules have. They are copied outside of what a memory limit
/// counts.
fn passive_elements(bytes: &[u8]) -> Result<u64, BinaryReaderError> {
    let mut found = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let Payload::ElementSection(segments) = payload? else { continue };
        for segment in segments {
            let segment = segment?;
            if matches!(segment.kind, ElementKind::Passive) {
                found += u64::from(match segment.items {
                    ElementItems::Functions(items) => items.count(),
                    ElementItems::Expressions(_, items) => items.count(),
                });
            }
        }
    }
    Ok(found)
}

fn unlinked(error: wasmtime::Error) -> LoadError {
    LoadError::Link(format!("{error:#}"))
}

/// An adapter reads; it may write and have files.
fn adapter_exports(
    _: &Manifest,
    code: &component::Component,
    pre: &InstancePre<State>,
) -> Result<Exports, LoadError> {
    let mut exports = Exports::default();
    exports.require::<lifecycle::Guest>(pre).map_err(unlinked)?;
    exports.require::<inventory::Guest>(pre).map_err(unlinked)?;
    exports.take::<changes::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<files::Guest>(code, pre).map_err(unlinked)?;
    Ok(exports)
}

/// A plugin exports what its manifest declares, and no more.
fn plugin_exports(
    manifest: &Manifest,
    code: &component::Component,
    pre: &InstancePre<State>,
) -> Result<Exports, LoadError> {
    let mut exports = Exports::default();
    exports.take::<plugin::lifecycle::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<plugin::configuration::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<plugin::migration::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<plugin::actions::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<plugin::triggers::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<plugin::tools::Guest>(code, pre).map_err(unlinked)?;
    exports.take::<plugin::inbound::Guest>(code, pre).map_err(unlinked)?;
    let migrates = manifest.capabilities.kv.as_ref().is_some_and(|kv| kv.migrates);
    agree::<plugin::migration::Guest>(&exports, "migration of what it stores", migrates)?;
    agree::<plugin::actions::Guest>(&exports, "actions", !manifest.actions.is_empty())?;
    agree::<plugin::triggers::Guest>(&exports, "triggers", !manifest.triggers.is_empty())?;
    agree::<plugin::tools::Guest>(&exports, "tools", !manifest.tools.is_empty())?;
    agree::<plugin::inbound::Guest>(&exports, "hooks", !manifest.hooks.is_empty())?;
    Ok(exports)
}

/// An interface is exported where the manifest declares something that it is for, and only there.
fn agree<E: Export>(exports: &Exports, what: &str, is_declared: bool) -> Result<(), LoadError> {
    let name = E::NAME;
    match (is_declared, exports.has::<E>()) {
        (true, false) => Err(LoadError::Export(format!(
            "the manifest declares {what}, and the component does not export '{name}'"
        ))),
        (false, true) => Err(LoadError::Export(format!(
            "the component exports '{name}', and the manifest declares no {what}"
        ))),
        _ => Ok(()),
    }
}

/// The package for people, and the SHA-256 of its manifest.
fn names(package: &Verified) -> (String, String) {
    (identity(package), package.manifest_sha256().to_owned())
}

/// Names this very package for people: `acme@1.4.0+0a1b2c3d4e5f`, with the beginning of its manifest's SHA-256.
fn identity(package: &Verified) -> String {
    let (manifest, sha256) = (package.manifest(), package.manifest_sha256());
    format!("{}@{}+{}", manifest.id, manifest.version, sha256.get(..12).unwrap_or(sha256))
}
