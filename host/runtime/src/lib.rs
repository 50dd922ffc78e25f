//! Loads, confines and calls components.
//!
//! The only crate that knows wasmtime, and the only one that opens connections to addresses that users name: for
//! guests, and for the host itself. It keeps no database and decides no rights: the server says on whose behalf a call
//! is made, and hands out secrets through [`Vault`] and, for plugins, through [`PluginServices`].

mod adapter;
mod admission;
mod apart;
mod api;
mod bindings;
mod breaker;
mod cache;
mod call;
mod compile;
mod convert;
mod description;
mod egress;
mod engine;
mod exports;
mod host;
mod limits;
mod lines;
mod linker;
mod load;
mod meter;
mod observe;
pub mod passes;
mod plugin;
mod proof;
mod reach;
mod runtime;
mod schemas;
mod services;
mod state;
mod task;
mod trap;

pub use adapter::Adapter;
pub use apart::LIGHT_BYTES;
pub use api::{
    Answer, Call, CallError, Credential, FileBook, FileContent, FileHead, FileSink, FileStream, Filling,
    GivenEvent, HookAnswer, HookRequest, KeptFile, OUT_OF_SERVICE, SecretBook, SentCall, Target, TrapClass,
    Urgency, Vault, VaultError,
};
pub use breaker::Standing as BreakerStanding;
pub use call::Provenance;
pub use compile::{CompileError, Compiler, compile_child};
pub use egress::holes::{fitting as fits_hole, of_call as holes_of};
pub use egress::interfaces::own_addresses;
pub use egress::own::{Dialled, Excess, OwnAnswer, OwnRequest, Reach, Stream};
pub use egress::push::limits::{
    CHANNELS_MAX, CHANNELS_PER_CONTROLLER_MAX, CHANNELS_PER_ORGANIZATION_MAX, HOOK_BODY_BYTES_MAX,
};
pub use egress::push::{
    ChannelsOpen, Ended, Listening, MessageCounts, Place, Retry, Told, ToldSite, Unheard, Whose,
};
pub use egress::references::reference;
pub use egress::witness::{Answered, Exchange, Witness};
pub use engine::StartError;
pub use heddle_marketplace::description::is_media_type;
pub use heddle_marketplace::headers::misleads;
pub use load::LoadError;
pub use observe::{Observed, Observer};
pub use plugin::{Plugin, PluginCall};
pub use proof::proved;
pub use runtime::{Runtime, Settings, Tap};
pub use schemas::CompiledSchemas;
pub use services::{
    Emitted, KvChange, KvEntry, KvExpected, KvListed, KvOp, KvPage, Of, PluginServices, StandingTimer, Timer,
    TimerTimes,
};
