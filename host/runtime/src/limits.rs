//! Numbers that bound a guest, and the part of them that wasmtime asks for.
//!
//! A manifest may ask for less or more; the host's maximum wins.

use std::time::Duration;

use heddle_marketplace::manifest::Limits;
use wasmtime::ResourceLimiter;

/// Bytes a guest may hand to the host in one call, and an export may answer.
pub(crate) const HOSTCALL_BYTES: usize = 8 << 20;
/// Bytes of one answer of a device.
pub(crate) const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Bytes of all answers of one call together.
pub(crate) const CALL_ANSWER_BYTES_MAX: usize = 32 << 20;
/// Bytes of answers that are held of one organization at the same time.
pub(crate) const ORG_HELD_BYTES_MAX: usize = 32 << 20;
pub(crate) const HANDLES_MAX: usize = 1_000;
pub(crate) const TABLE_ELEMENTS_MAX: usize = 20_000;
/// Core instances of one component. Composed ones have many: Python has 38 with its libraries and without WASI.
pub(crate) const CORE_INSTANCES_MAX: u32 = 64;
/// Memories of one component, which share the bytes that one has. `QuickJS` has 3 without WASI, two of them empty.
pub(crate) const MEMORIES_MAX: u32 = 4;
/// Tables of one component.
pub(crate) const TABLES_MAX: u32 = 4;
pub(crate) const MEMORY_BYTES_MAX: usize = 256 << 20;
/// Wall time that no call exceeds, whatever its caller asks for.
pub(crate) const WALL_MAX: Duration = Duration::from_mins(2);
/// Bytes of a file for which a call that sends or keeps it gets one more second.
pub(crate) const FILE_BYTES_PER_SEC: u64 = 256 << 10;
/// How long a device may take before a file begins. While the file comes, it may be behind [`FILE_BYTES_PER_SEC`] by as
/// much.
pub(crate) const FILE_START_MAX: Duration = Duration::from_mins(1);
/// How long a device may send nothing in the middle of a file.
pub(crate) const FILE_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Wall time of a call that keeps a file, whatever its size.
pub(crate) const FILE_WALL_MAX: Duration = Duration::from_hours(1);
pub(crate) const LOG_LINES_MAX: usize = 200;
pub(crate) const LOG_BYTES_MAX: usize = 2 << 10;
pub(crate) const RANDOM_BYTES_MAX: u32 = 4_096;
/// Random bytes that a guest gets from WASI at a time, which has no way to give fewer than were asked for. Browsers have
/// the same bound.
pub(crate) const WASI_RANDOM_BYTES_MAX: usize = 64 << 10;
/// The same in all of a call.
pub(crate) const WASI_RANDOM_CALL_BYTES_MAX: usize = 8 << 20;
/// Bytes of a call's standard output and error that are searched for lines.
pub(crate) const STDIO_BYTES_MAX: usize = 1 << 20;
/// References of a component's modules that are copied with each instance.
pub(crate) const PASSIVE_ELEMENTS_MAX: u64 = 10_000;
/// Bytes that a guest may write to its standard output or error at a time.
pub(crate) const WASI_WRITE_BYTES_MAX: usize = 64 << 10;
/// How often a call may ask for a secret by its name; later ones find none.
pub(crate) const SECRET_LOOKUPS_MAX: u32 = 2_048;
/// Places of one request that secrets are put in.
pub(crate) const SECRET_PLACES_MAX: usize = 16;
/// Refusals of one call that are logged one by one.
pub(crate) const REFUSALS_LOGGED: u32 = 8;
/// Refusals after which a call of a plugin is stopped.
pub(crate) const REFUSALS_MAX: u32 = 64;
/// Bytes of the parameters of an action of a plugin.
pub(crate) const ACTION_PARAMS_BYTES_MAX: usize = 1 << 20;
/// Uses of the storage in one call of a plugin.
pub(crate) const KV_CALLS_MAX: u32 = 256;
/// Bytes of keys and values that one call of a plugin may write.
pub(crate) const KV_WRITTEN_BYTES_MAX: usize = 8 << 20;
/// The same in the call that brings the storage to another version.
pub(crate) const MIGRATION_KV_CALLS_MAX: u32 = 16_384;
pub(crate) const MIGRATION_KV_WRITTEN_BYTES_MAX: usize = 32 << 20;
/// Changes that are carried out together.
pub(crate) const KV_OPS_MAX: usize = 64;
pub(crate) const KV_KEY_BYTES_MAX: usize = 256;
pub(crate) const KV_VALUE_BYTES_MAX: usize = 64 << 10;
/// A year.
pub(crate) const KV_TTL_SECS_MAX: u32 = 31_536_000;
/// Keys of one page.
pub(crate) const KV_LIST_MAX: u32 = 1_000;
pub(crate) const KV_CURSOR_BYTES_MAX: usize = 1 << 10;
/// Operations of the Fabric that one call of a plugin may call.
pub(crate) const OPERATION_CALLS_MAX: u32 = 32;
pub(crate) const OPERATION_PARAMS_BYTES_MAX: usize = 256 << 10;
pub(crate) const OPERATION_ANSWER_BYTES_MAX: usize = 1 << 20;
/// Events that one call of a plugin may emit.
pub(crate) const EVENTS_MAX: usize = 100;
/// Changes of timers in one call of a plugin, those that are refused too.
pub(crate) const TIMER_CHANGES_MAX: usize = 256;
pub(crate) const TIMER_NAME_BYTES_MAX: usize = 64;
/// Bytes of an expression of times, and of the name of a time zone.
pub(crate) const TIMER_TEXT_BYTES_MAX: usize = 200;
/// Bytes of the answer to a request of others.
pub(crate) const HOOK_ANSWER_BYTES_MAX: usize = 64 << 10;
pub(crate) const EVENT_BYTES_MAX: usize = 64 << 10;
pub(crate) const DEDUP_KEY_BYTES_MAX: usize = 128;

/// What a component may use, per call unless it says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) memory_bytes: usize,
    pub(crate) cpu: Duration,
    pub(crate) requests: u32,
    /// Parallel requests to one controller, of all calls together.
    pub(crate) parallel: u32,
    pub(crate) request_bytes: usize,
    pub(crate) response_bytes: usize,
}

impl Bounds {
    pub(crate) fn of(asked: &Limits) -> Self {
        let pick = |asked: Option<u32>, default: u32, most: u32| asked.unwrap_or(default).clamp(1, most);
        let bytes = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        Self {
            memory_bytes: bytes(pick(asked.memory_mib, Limits::MEMORY_MIB, 256)) << 20,
            cpu: Duration::from_millis(u64::from(pick(asked.cpu_ms, Limits::CPU_MS, 5_000))),
            requests: pick(asked.requests, Limits::REQUESTS, 512),
            parallel: pick(asked.parallel, Limits::PARALLEL, 16),
            request_bytes: bytes(pick(asked.request_bytes, Limits::REQUEST_BYTES, 8 << 20)),
            response_bytes: ANSWER_BYTES_MAX,
        }
    }
}

/// Bounds the memory of one store. Counts the sum over its memories.
#[derive(Debug)]
pub(crate) struct Limiter {
    max: usize,
    used: usize,
    /// Most that was in use at a time.
    pub(crate) peak: usize,
    /// Growths that were refused. Tells a guest without memory from one that panics.
    pub(crate) denied: u32,
}

impl Limiter {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, used: 0, peak: 0, denied: 0 }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.used.saturating_sub(current).saturating_add(desired);
        if total > self.max {
            self.denied += 1;
            return Ok(false);
        }
        self.used = total;
        self.peak = self.peak.max(total);
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS_MAX {
            self.denied += 1;
            return Ok(false);
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX as usize
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX as usize
    }

    fn tables(&self) -> usize {
        TABLES_MAX as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_the_sum_is_refused_and_counted() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(60, 90, None).unwrap());
        assert!(!limiter.memory_growing(0, 20, None).unwrap());
        assert!(!limiter.memory_growing(90, usize::MAX, None).unwrap());
        assert_eq!((limiter.peak, limiter.denied), (90, 2));
    }

    #[test]
    fn a_table_has_its_own_limit() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.table_growing(0, TABLE_ELEMENTS_MAX, None).unwrap());
        assert!(!limiter.table_growing(0, TABLE_ELEMENTS_MAX + 1, None).unwrap());
    }

    #[test]
    fn asking_for_more_than_the_host_gives_is_bounded() {
        let asked = Limits {
            memory_mib: Some(4_000),
            cpu_ms: Some(u32::MAX),
            parallel: Some(0),
            ..Limits::default()
        };
        let bounds = Bounds::of(&asked);
        assert_eq!(bounds.memory_bytes, MEMORY_BYTES_MAX);
        assert_eq!(bounds.cpu, Duration::from_secs(5));
        assert_eq!(bounds.parallel, 1);
        assert_eq!(bounds.requests, 64);
    }
}
