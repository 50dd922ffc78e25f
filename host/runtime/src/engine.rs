//! The engine of the process, and the thread that advances its epochs.
//!
//! Only what guests need is switched on: every proposal more is attack surface.

use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmBacktraceDetails,
};

use crate::limits::{CORE_INSTANCES_MAX, MEMORIES_MAX, MEMORY_BYTES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX};

/// How often guests can be interrupted.
const TICK: Duration = Duration::from_millis(10);

/// Why the runtime cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the webassembly engine cannot be built: {0}")]
    Engine(String),
    #[error("the threads of the runtime cannot be started")]
    Threads(#[source] std::io::Error),
    #[error("the folder of compiled code cannot be used")]
    Cache(#[source] std::io::Error),
}

/// The engine that runs guests. Pooled when the address space allows it.
pub(crate) fn running(instances: u32) -> Result<Engine, StartError> {
    let mut pooled = config();
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(instances.max(1))));
    match Engine::new(&pooled) {
        Ok(engine) => Ok(engine),
        Err(error) => {
            tracing::warn!(
                instances,
                reason = %error,
                "no address space for {instances} pooled instances; instances are allocated on demand"
            );
            compiling()
        }
    }
}

/// The engine that compiles; it runs nothing.
pub(crate) fn compiling() -> Result<Engine, StartError> {
    Engine::new(&config()).map_err(|error| StartError::Engine(error.to_string()))
}

/// Advances the epoch until the engine is gone.
///
/// A thread and not a task: a guest that spins on the worker that drives the
/// timers would stop this timer too.
pub(crate) fn start_ticking(engine: &Engine) -> Result<(), StartError> {
    let engine = engine.weak();
    std::thread::Builder::new()
        .name("guest-epoch".to_owned())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(TICK);
            }
        })
        .map(drop)
        .map_err(StartError::Threads)
}

fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.wasm_component_model(true);
    config.concurrency_support(false);
    config.wasm_memory64(false);
    // For what the engine itself puts between the modules of a composed component. Modules of a guest that use it are
    // refused before they are compiled, see `load::validate`.
    config.wasm_multi_memory(true);
    // Off also because it keeps results the same on every machine.
    config.wasm_relaxed_simd(false);
    config.wasm_tail_call(false);
    config.wasm_wide_arithmetic(false);
    config.wasm_custom_page_sizes(false);
    config.max_wasm_stack(512 << 10);
    // The difference is what host functions get.
    config.async_stack_size(1 << 20);
    // Stacks are shared by tenants through the pool.
    config.async_stack_zeroing(true);
    // Names of functions only; the rest is for developers.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config.generate_address_map(false);
    // For debuggers and the like. Registering it reads all of it at each start.
    config.native_unwind_info(false);
    config.cranelift_opt_level(OptLevel::Speed);
    config
}

fn pool(instances: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        // Each instance may have as many as one is allowed, so that a composed component takes nothing from others. Core
        // instances are only counted. A memory reserves 4 GiB of addresses, and takes no memory until it is used.
        .total_core_instances(instances.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(instances.saturating_mul(MEMORIES_MAX))
        .total_tables(instances.saturating_mul(TABLES_MAX))
        .total_stacks(instances)
        .max_component_instance_size(2 << 20)
        .max_core_instance_size(1 << 20)
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memory_size(MEMORY_BYTES_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_unused_warm_slots(64)
        .linear_memory_keep_resident(0)
        .decommit_batch_size(16)
        // It can miss dirty pages that were swapped out, and the next tenant could read them.
        .pagemap_scan(Enabled::No);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_too_large_for_the_address_space_falls_back() {
        assert!(running(200_000).is_ok());
    }

    #[test]
    fn both_engines_accept_the_same_compiled_code() {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let hash = |engine: &Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&running(4).unwrap()), hash(&compiling().unwrap()));
    }
}
