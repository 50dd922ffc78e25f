//! Generated from the interface files. Use the re-exports of [`crate::plugin`].

#![expect(clippy::same_length_and_capacity, reason = "generated code")]

wit_bindgen::generate!({
    path: ["../wit/common", "../wit/host", "../wit/plugin"],
    world: "heddle:plugin/plugin",
    with: {
        "heddle:common/types@1.0.0": crate::bindings::heddle::common::types,
        "heddle:host/context@1.0.0": crate::bindings::heddle::host::context,
        "heddle:host/log@1.0.0": crate::bindings::heddle::host::log,
        "heddle:host/progress@1.0.0": crate::bindings::heddle::host::progress,
        "heddle:host/clock@1.0.0": crate::bindings::heddle::host::clock,
        "heddle:host/random@1.0.0": crate::bindings::heddle::host::random,
        "heddle:host/secrets@1.0.0": crate::bindings::heddle::host::secrets,
        "heddle:host/http@1.0.0": crate::bindings::heddle::host::http,
    },
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_plugin",
    default_bindings_module: "heddle_sdk::plugin::bindings",
});
