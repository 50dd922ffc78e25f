//! Strategies for vendors that all objects follow alike: what a kind or feature needs is data in its binding, and from
//! it come lists, plans, judgements, comparisons and the way back.
//!
//! Two strategies exist: items with a route each to list, read, create, update and delete them ([`Shape::Items`]), and
//! settings that are read and written as one object ([`Shape::Object`]). Both may need calls that activate what was
//! written. [`binding`] has the grammar. A vendor adds a [`Vendor`]: how its answers tell a success from a refusal.
//!
//! A kind has one binding for how its objects are found and what their fields are; each feature that writes it has
//! another for the routes of the write. Values have two forms: that of the payload, in which they are planned and
//! compared, and that of the vendor, which only [`field`] knows.

pub mod binding;
mod calls;
mod compare;
pub mod field;
mod model;
mod objects;
mod part;
mod plan;
mod read;
mod stages;
mod token;

use serde_json::Value;

use crate::{Fault, Response};

pub use binding::{FeatureBinding, KindBinding, Shape};
pub use compare::compare;
pub use objects::{get_object, list_objects};
pub use plan::plan;
pub use stages::{judge, ready};

/// What a reviewed call does, for the vendor to judge its answer by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Create,
    Update,
    Delete,
    /// Makes active what was written before.
    Activate,
}

/// What a vendor's answers mean.
pub trait Vendor {
    /// The managed session that all requests are sent in, as the manifest declares it.
    fn session(&self) -> &'static str;

    /// The content of an answer to a read, or the fault that it tells.
    fn content(&self, response: &Response) -> Result<Value, Fault>;

    /// Whether a call did what it is for. The fault's effect says what that call alone changed; its fields may name the
    /// vendor's fields, as `/name`.
    fn written(&self, purpose: Purpose, response: &Response) -> Result<(), Fault>;
}
