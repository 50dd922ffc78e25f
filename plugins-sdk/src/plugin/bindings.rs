//! Generated from the interface files. Use the re-exports of [`crate::plugin`].
//!
//! Each interface that a plugin can export is a world of its own here: a component exports those that it was registered
//! with, and is described by these worlds together.

#![expect(clippy::same_length_and_capacity, reason = "generated code")]

wit_bindgen::generate!({
    path: ["../wit/common", "../wit/host", "../wit/plugin"],
    world: "heddle:plugin/imports",
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
});

pub mod lifecycle {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world lifecycle { export heddle:plugin/lifecycle@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/lifecycle",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_lifecycle",
    });
}

pub mod configuration {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world configuration { export heddle:plugin/configuration@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/configuration",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_configuration",
    });
}

pub mod migration {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world migration { export heddle:plugin/migration@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/migration",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_migration",
    });
}

pub mod actions {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world actions { export heddle:plugin/actions@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/actions",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_actions",
    });
}

pub mod triggers {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world triggers { export heddle:plugin/triggers@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/triggers",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_triggers",
    });
}

pub mod tools {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world tools { export heddle:plugin/tools@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/tools",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_tools",
    });
}

pub mod inbound {
    wit_bindgen::generate!({
        inline: "package heddle:sdk; world inbound { export heddle:plugin/inbound@1.0.0; }",
        path: ["../wit/common", "../wit/host", "../wit/plugin"],
        world: "heddle:sdk/inbound",
        with: { "heddle:common/types@1.0.0": crate::bindings::heddle::common::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_inbound",
    });
}

pub use self::triggers::exports::heddle::plugin::triggers::Event as Given;
