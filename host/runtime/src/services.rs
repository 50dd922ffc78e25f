//! What the runtime needs from the server for plugins: secrets, storage, operations of the Fabric, events.
//!
//! The runtime has checked what a manifest declares, sizes and counts before it asks. Rights and quotas are the server's.

use std::any::Any;
use std::sync::Arc;

use heddle_core::OrgId;
use heddle_core::fault::{Fault, FaultKind};
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::ActionEffect;
use serde_json::Value;

use crate::api::{Credential, VaultError};

/// On whose behalf the server is asked.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub org_id: OrgId,
    /// The plugin's id.
    pub plugin: &'a str,
    /// Most bytes of keys and values that the plugin keeps in one organization.
    pub kv_bytes: u64,
    pub request_id: &'a str,
    /// What the server gave with the call.
    pub behalf: &'a Arc<dyn Any + Send + Sync>,
}

/// A stored value. Each change of a key gives it a larger version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvEntry {
    pub value: Vec<u8>,
    pub version: u64,
}

/// What must be stored under a key before anything is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvExpected {
    Any,
    Absent,
    Version(u64),
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvChange {
    /// The value is gone after `ttl_secs`, where there are some.
    Set {
        value: Vec<u8>,
        ttl_secs: Option<u32>,
    },
    Delete,
}

/// One of the changes that are carried out together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvOp {
    pub key: String,
    pub expected: KvExpected,
    pub change: KvChange,
}

/// A key that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvListed {
    pub key: String,
    pub version: u64,
    /// Bytes of the value.
    pub size_bytes: u64,
}

/// Keys in the order of their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KvPage {
    pub items: Vec<KvListed>,
    /// The cursor of the next page, where there is one.
    pub next: Option<String>,
}

/// An event of a declared type; the payload fits its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Emitted {
    pub event_type: String,
    pub payload: Value,
    /// Of two events of one type with the same key, the later one is dropped.
    pub dedup_key: Option<String>,
}

/// When a timer comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerTimes {
    /// Once, in milliseconds since 1970.
    At(u64),
    /// Every so many seconds.
    Every(u32),
    /// By an expression of five fields, in a time zone of the IANA database. Neither is checked.
    Cron { expression: String, time_zone: String },
}

/// A timer of a plugin, which calls one of its triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub name: String,
    /// One of the manifest.
    pub trigger: String,
    pub times: TimerTimes,
}

/// A timer, and when it comes next, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingTimer {
    pub timer: Timer,
    pub next_at_ms: u64,
}

/// What the server does for plugins.
///
/// The runtime drops the future of any function here when the call's deadline passes, when the caller gives up, and when
/// the component is stopped. A function that must not be half done makes its changes in one transaction, or does them in
/// a task of its own that the drop of the future does not end.
#[async_trait::async_trait]
pub trait PluginServices: Send + Sync + 'static {
    /// Decrypts the secrets that an organization gave a plugin for the addresses that its targets have with these settings,
    /// just before they are used.
    async fn secrets(
        &self,
        org: OrgId,
        manifest: &Manifest,
        settings: &Value,
    ) -> Result<Credential, VaultError>;
    /// Reads what the plugin stores under a key.
    async fn kv_get(&self, of: &Of<'_>, key: &str) -> Result<Option<KvEntry>, Fault>;
    /// Carries out all changes, which are of different keys, or none: false where one of them found something other than
    /// it expected. Beyond the quota it answers a generic fault with the code `quota`.
    async fn kv_apply(&self, of: &Of<'_>, ops: Vec<KvOp>) -> Result<bool, Fault>;
    /// Lists keys that begin with `prefix`, at most `limit` of them. `cursor` is the `next` of the page before, which a
    /// component may have changed.
    async fn kv_list(
        &self,
        of: &Of<'_>,
        prefix: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<KvPage, Fault>;
    /// Calls an operation that the manifest names, with the rights behind `of.behalf`. The effect is that of the action:
    /// only one that stages may call operations that write, and these stage.
    async fn call_operation(
        &self,
        of: &Of<'_>,
        effect: ActionEffect,
        operation: &str,
        params: Value,
    ) -> Result<Value, Fault>;
    /// Emits all events, or none.
    async fn emit(&self, of: &Of<'_>, events: Vec<Emitted>) -> Result<(), Fault>;
    /// Sets all timers, which have different names, each in the place of the one of its name; or none. No two times of one
    /// come within `min_interval_secs`.
    async fn timers_set(
        &self,
        _of: &Of<'_>,
        _timers: Vec<Timer>,
        _min_interval_secs: u32,
    ) -> Result<(), Fault> {
        Err(no_timers())
    }
    /// Removes the timers of these names, where there are any.
    async fn timers_cancel(&self, _of: &Of<'_>, _names: Vec<String>) -> Result<(), Fault> {
        Err(no_timers())
    }
    /// All timers, by their names.
    async fn timers_list(&self, _of: &Of<'_>) -> Result<Vec<StandingTimer>, Fault> {
        Err(no_timers())
    }
}

/// Of a host that has no clock to call plugins by.
fn no_timers() -> Fault {
    Fault::new(FaultKind::Unsupported, "timers do not come here")
}
