//! Interfaces without reach: context, log, progress, clock, random; and names of secrets.

use std::time::{Duration, Instant};

use wasmtime::component::Resource;

use super::SecretHandle;
use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::{clock, context, description, log, progress, random, secrets};
use crate::egress::phase::Phase;
use crate::limits::{LOG_BYTES_MAX, RANDOM_BYTES_MAX};
use crate::lines::tidy;
use crate::state::State;

impl types::Host for State {}

impl context::Host for State {
    fn current(&mut self) -> wasmtime::Result<context::CallContext> {
        let left = self.around.deadline.saturating_duration_since(Instant::now());
        let answer = context::CallContext {
            request_id: self.around.request_id.clone(),
            controller_id: self.around.controller_id.clone(),
            site_ref: self.around.site_ref.clone(),
            phase: match self.around.phase {
                Phase::Probe => context::Phase::Probe,
                Phase::Read => context::Phase::Read,
                Phase::Plan => context::Phase::Plan,
                Phase::Verify => context::Phase::Verify,
                Phase::Write => context::Phase::Write,
                Phase::Poll => context::Phase::Poll,
            },
            deadline_ms: millis(left),
        };
        self.lower("context.current", format!("{answer:?}"));
        Ok(answer)
    }

    fn config(&mut self) -> wasmtime::Result<String> {
        self.lower("context.config", &self.around.settings);
        Ok(self.around.settings.clone())
    }
}

impl description::Host for State {
    fn kind_binding(&mut self, id: String) -> wasmtime::Result<Option<String>> {
        let binding = self.reach.facts.bindings.kinds.get(&id).cloned();
        self.lower("description.kind-binding", binding.as_deref().unwrap_or_default());
        Ok(binding)
    }

    fn feature_binding(&mut self, id: String) -> wasmtime::Result<Option<String>> {
        let binding = self.reach.facts.bindings.features.get(&id).cloned();
        self.lower("description.feature-binding", binding.as_deref().unwrap_or_default());
        Ok(binding)
    }

    fn model_binding(&mut self, kind: String) -> wasmtime::Result<Option<String>> {
        let binding = self.reach.facts.bindings.model.get(&kind).cloned();
        self.lower("description.model-binding", binding.as_deref().unwrap_or_default());
        Ok(binding)
    }
}

impl log::Host for State {
    fn emit(
        &mut self,
        level: log::Level,
        message: String,
        fields: Vec<types::Attribute>,
    ) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Trace => tracing::Level::TRACE,
            log::Level::Debug => tracing::Level::DEBUG,
            log::Level::Info => tracing::Level::INFO,
            log::Level::Warn => tracing::Level::WARN,
            log::Level::Error => tracing::Level::ERROR,
        };
        self.lines.emit(level, || {
            let mut line = message;
            for field in fields.iter().filter(|field| !is_sensitive(&field.key)) {
                if line.len() > LOG_BYTES_MAX {
                    break;
                }
                line.push_str(&format!(" {}={}", field.key, field.value));
            }
            line
        });
        Ok(())
    }
}

impl progress::Host for State {
    fn report(&mut self, percent: u8, message: String) -> wasmtime::Result<()> {
        if let Some(report) = &self.around.progress {
            report(percent.min(100), tidy(&message));
        }
        Ok(())
    }

    /// A caller that gave up drops the call, so a guest that can still ask was not cancelled.
    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(false)
    }
}

impl clock::Host for State {
    fn now_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::try_from(self.clock.now().timestamp_millis()).unwrap_or_default())
    }

    fn monotonic_ns(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl random::Host for State {
    fn bytes(&mut self, len: u32) -> wasmtime::Result<Vec<u8>> {
        let len = usize::try_from(len.min(RANDOM_BYTES_MAX)).unwrap_or_default();
        let bytes = random_bytes(len);
        self.lower("random.bytes", &bytes);
        Ok(bytes)
    }
}

/// Bytes that the generator is asked for at a time.
const CHUNK: usize = 4 << 10;

/// So many bytes of the host's generator.
pub(super) fn random_bytes(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + CHUNK);
    while bytes.len() < len {
        bytes.extend_from_slice(heddle_core::secret::random_bytes::<CHUNK>().as_slice());
    }
    bytes.truncate(len);
    bytes
}

impl secrets::Host for State {
    async fn get(&mut self, name: String) -> wasmtime::Result<Option<Resource<SecretHandle>>> {
        self.waits();
        let known = self.reach.has_secret(&name).await;
        if known { Ok(Some(self.table.push(SecretHandle { name })?)) } else { Ok(None) }
    }
}

impl secrets::HostSecret for State {
    async fn name(&mut self, secret: Resource<SecretHandle>) -> wasmtime::Result<String> {
        let name = self.table.get(&secret)?.name.clone();
        self.lower("secret.name", &name);
        Ok(name)
    }

    async fn drop(&mut self, secret: Resource<SecretHandle>) -> wasmtime::Result<()> {
        self.table.delete(secret)?;
        Ok(())
    }
}

fn is_sensitive(key: &str) -> bool {
    heddle_core::redact::is_secret_name(key)
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
