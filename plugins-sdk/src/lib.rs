//! What an adapter is written with; for plugins see [`plugin`].
//!
//! An adapter implements [`Adapter`] over a [`Host`] and names itself in
//! [`register!`]. Its logic never calls the generated imports directly, so it
//! is tested and measured natively with [`testing::FakeHost`]. See
//! `examples/smallest.rs` for a whole adapter.
//!
//! This crate does not build components and knows no vendor.

mod adapter;
pub mod bindings;
mod builders;
pub mod crud;
pub mod fault;
mod host;
pub mod json;
pub mod plugin;
pub mod testing;

pub use adapter::{Adapter, Exported, Fetching, Listing, Sent};
pub use bindings::exports::heddle::adapter::changes::{
    Change, ChangePlan, Comparison, FileBody, Hole, HoleSource, ModelChange, NativeBody, NativeCall,
    Part as FormPart, PartValue, PlanStep, Readiness, Stage, Standing, Start,
};
pub use bindings::exports::heddle::adapter::inventory::{
    Completeness, Device, DevicePage, ModelObject, ModelPage, Object, ObjectPage, Origin, SitePage, Status,
    VendorSite,
};
pub use bindings::exports::heddle::adapter::lifecycle::{
    Availability, Capability, Danger, DeviceProfile, Operation,
};
pub use bindings::heddle::common::types::{
    Attribute, Completion, Effect, Fault, FaultInfo, FieldError, FoundValue, ItemResult, Locator, ObjectRef,
    Outcome, Stability, Task,
};
pub use bindings::heddle::host::context::Phase;
pub use bindings::heddle::host::http::{
    Body, Header, Method, Part, Place, Request, Response, Saved, SavedFile,
};
pub use bindings::heddle::host::log::Level;
pub use fault::FaultExt;
pub use host::{Auth, Host, Live};

/// What most adapters name.
pub mod prelude {
    pub use crate::{
        Adapter, Auth, Completeness, Device, DevicePage, DeviceProfile, Fault, FaultExt, Host, Request,
        Status, fault, json, register,
    };
}

#[doc(hidden)]
pub fn is_adapter<A: Adapter>() {}

/// Exports a type that implements [`Adapter`] as this crate's component.
///
/// On other targets than `wasm32` it only checks that the trait is implemented,
/// so that the crate's tests and benches run natively.
#[macro_export]
macro_rules! register {
    ($adapter:ident) => {
        const _: fn() = $crate::is_adapter::<$adapter>;

        #[cfg(target_arch = "wasm32")]
        mod heddle_component {
            type Component = $crate::Exported<super::$adapter>;
            $crate::bindings::export_adapter!(Component with_types_in $crate::bindings);
        }
    };
}
