//! Generated from the interface files; conversions are in `convert.rs`.

wasmtime::component::bindgen!({
    path: ["../../wit/common", "../../wit/host", "../../wit/adapter"],
    world: "heddle:adapter/adapter",
    imports: {
        "heddle:host/http": async | trappable,
        "heddle:host/secrets": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "heddle:host/secrets.secret": crate::host::SecretHandle,
        "heddle:host/http.target": crate::host::TargetHandle,
    },
});

/// What plugins have in addition; they share the other interfaces with adapters.
pub(crate) mod plugin;
