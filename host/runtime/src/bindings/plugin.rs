//! Generated from the interface of plugins.

wasmtime::component::bindgen!({
    path: ["../../wit/common", "../../wit/host", "../../wit/plugin"],
    world: "heddle:plugin/plugin",
    imports: { default: async | trappable },
    exports: { default: async },
    with: {
        "heddle:common/types": crate::bindings::heddle::common::types,
        "heddle:host/context": crate::bindings::heddle::host::context,
        "heddle:host/log": crate::bindings::heddle::host::log,
        "heddle:host/progress": crate::bindings::heddle::host::progress,
        "heddle:host/clock": crate::bindings::heddle::host::clock,
        "heddle:host/random": crate::bindings::heddle::host::random,
        "heddle:host/secrets": crate::bindings::heddle::host::secrets,
        "heddle:host/http": crate::bindings::heddle::host::http,
    },
});
