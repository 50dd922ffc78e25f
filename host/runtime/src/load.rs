//! From verified bytes to an adapter that can be called. The cheap checks come
//! first; nothing reaches the compiler before they passed.

use std::sync::Arc;
use std::time::Instant;

use heddle_marketplace::{Verified, judge_schemas, settings_schema};
use wasmparser::{Validator, WasmFeatures};
use wasmtime::Engine;
use wasmtime::component::{self, InstancePre};

use crate::adapter::Adapter;
use crate::admission::OfComponent;
use crate::bindings::exports::heddle::adapter::{changes, files, inventory, lifecycle};
use crate::breaker::Breaker;
use crate::cache::{Found, KeepError};
use crate::call::{Component, Indices};
use crate::compile::{self, CompileError};
use crate::description::Bindings;
use crate::egress::Facts;
use crate::runtime::Runtime;
use crate::schemas::Schemas;
use crate::state::State;
use crate::{description, linker};

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
const CHANGES: &str = "heddle:adapter/changes@1.0.0";
const FILES: &str = "heddle:adapter/files@1.0.0";

/// Why a package cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the file is not a component; compiled code and core modules are refused")]
    NotComponent,
    #[error("the component is not valid: {0}")]
    Invalid(String),
    #[error("the component imports '{name}': {needs}")]
    Import { name: String, needs: &'static str },
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("the compiled code cannot be used: {0}")]
    Code(String),
    #[error("the folder of compiled code cannot be used")]
    Cache(#[source] std::io::Error),
    #[error("the component does not fit the interface: {0}")]
    Link(String),
    #[error("a schema is not accepted: {0}")]
    Schema(String),
}

impl Runtime {
    pub(crate) async fn prepare(&self, package: &Verified) -> Result<Adapter, LoadError> {
        let (manifest, bytes) = (package.manifest(), package.component());
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
        linker::check_imports(&self.shared.engine, &code, &manifest.capabilities)?;
        let pre =
            self.linker.instantiate_pre(&code).map_err(|error| LoadError::Link(format!("{error:#}")))?;
        let component = Arc::new(Component {
            exports: indices(&code, &pre)?,
            pre,
            facts: Arc::new(Facts::new(
                manifest.clone(),
                package.component_sha256().to_owned(),
                Bindings::of(package.description()),
            )),
            slots: OfComponent::new(),
            breaker: Breaker::new(format!("{} {}", manifest.id, manifest.version), self.shared.clock.clone()),
        });
        let description = description::shown(&manifest.id, &manifest.name, package.description());
        let described = (description, package.description().releases.clone());
        let names = (identity(package), package.manifest_sha256().to_owned());
        let schemas = Schemas::new(settings);
        Ok(Adapter::new(Arc::clone(&self.shared), component, names, described, schemas))
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

/// Validates with what the engine has switched on, before anything is compiled.
fn validate(bytes: &[u8]) -> Result<(), LoadError> {
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
        .map(drop)
        .map_err(|error| LoadError::Invalid(error.to_string()))
}

fn indices(code: &component::Component, pre: &InstancePre<State>) -> Result<Indices, LoadError> {
    let missing = |error: wasmtime::Error| LoadError::Link(format!("{error:#}"));
    let writes = code.get_export_index(None, CHANGES).is_some();
    let has_files = code.get_export_index(None, FILES).is_some();
    Ok(Indices {
        lifecycle: lifecycle::GuestIndices::new(pre).map_err(missing)?,
        inventory: inventory::GuestIndices::new(pre).map_err(missing)?,
        changes: if writes { Some(changes::GuestIndices::new(pre).map_err(missing)?) } else { None },
        files: if has_files { Some(files::GuestIndices::new(pre).map_err(missing)?) } else { None },
    })
}

/// Names this very package for people: `acme@1.4.0+0a1b2c3d4e5f`, with the beginning of its manifest's SHA-256.
fn identity(package: &Verified) -> String {
    let (manifest, sha256) = (package.manifest(), package.manifest_sha256());
    format!("{}@{}+{}", manifest.id, manifest.version, sha256.get(..12).unwrap_or(sha256))
}
