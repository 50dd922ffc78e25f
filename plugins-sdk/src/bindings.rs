//! Generated from the interface files. Use the re-exports of the crate root.

#![expect(clippy::same_length_and_capacity, reason = "generated code")]

wit_bindgen::generate!({
    path: ["../wit/common", "../wit/host", "../wit/adapter"],
    world: "heddle:adapter/adapter",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_adapter",
    default_bindings_module: "heddle_sdk::bindings",
});
