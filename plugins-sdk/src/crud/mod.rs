//! Strategies for vendors that all objects follow alike: what a kind or feature needs is data in its binding, and from
//! it come lists, plans, judgements, comparisons and the way back.
//!
//! Three strategies exist: items with a route each to list, read, create, update and delete them ([`Shape::Items`]),
//! settings that are read and written as one object ([`Shape::Object`]), and actions ([`binding::Action`]). Writes may
//! need calls that activate what was written, and answers may be jobs at the device. [`binding`] has the grammar. A
//! vendor adds a [`Vendor`]: how its answers tell a success from a refusal.
//!
//! A kind that is a file has a binding of its own ([`FileBinding`]): which request it is the answer to.
//!
//! A kind has one binding for how its objects are found and what their fields are; each feature that writes it has
//! another for the routes of the write. Values have two forms: that of the payload, in which they are planned and
//! compared, and that of the vendor, which only [`field`] knows.

mod action;
mod asked;
mod assemble;
pub mod binding;
mod calls;
mod compare;
mod expressed;
mod facts;
pub mod field;
mod files;
mod given;
mod holes;
mod joined;
mod key;
mod model;
mod modelled;
mod names;
mod needed;
mod objects;
mod part;
mod path;
mod place;
mod plan;
mod properties;
mod read;
mod related;
mod rewritten;
mod several;
mod source;
mod stages;
mod state;
mod taken;
mod token;
mod told;
mod units;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Fault, Host, Response, Task};

pub use binding::{FeatureBinding, FileBinding, KindBinding, Shape};
pub use compare::compare;
pub use expressed::{Asked, Expressed, every_object, express, refused};
pub use files::fetch;
pub use modelled::{Modelled, list_model};
pub use objects::{get_object, list_objects};
pub use path::escaped;
pub use plan::plan;
pub use stages::{judge, ready};
pub use taken::{mac, rfc3339};
pub use units::seconds;

/// Parameters of paths, by name.
pub type Place = BTreeMap<String, String>;

/// What a reviewed call does, for the vendor to judge its answer by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Create,
    Update,
    Delete,
    /// Makes active what was written before.
    Activate,
    /// Does what an action says.
    Act,
    /// Ends the job that another call started.
    Cancel,
}

/// What a good answer to a write means.
#[derive(Debug)]
pub enum Written {
    /// The call did what it is for.
    Done,
    /// The same, and the device warns of something.
    Warned(Vec<String>),
    /// The device works on it. The calls behind it follow when the task is done: `Adapter::poll` asks after it.
    Task(Task),
}

/// How bodies of writes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    /// JSON of one level: a dot is part of a name.
    FlatJson,
    /// `application/x-www-form-urlencoded`; a DELETE has its parameters in the query.
    Form,
}

/// What a vendor's answers mean.
pub trait Vendor {
    /// The managed session that all requests are sent in, as the manifest declares it.
    fn session(&self) -> &'static str;

    /// How bodies of writes are written.
    fn encoding(&self) -> Encoding {
        Encoding::Json
    }

    /// Parameters of every path, such as the ids of the controller and of the site that a call is about.
    fn scope(&self, _host: &dyn Host, _site: Option<&str>) -> Result<Place, Fault> {
        Ok(Place::new())
    }

    /// The content of an answer to a read, or the fault that it tells: `not-found` where the object does not exist.
    fn content(&self, response: &Response) -> Result<Value, Fault>;

    /// Whether a call did what it is for. The fault's effect says what that call alone changed; its fields may name the
    /// vendor's fields, as `/name`.
    fn written(&self, purpose: Purpose, response: &Response) -> Result<Written, Fault>;

    /// What must still happen before what was written is in effect, such as "reboot". It is asked where the object is as
    /// wanted.
    fn needs(&self, _host: &dyn Host, _kind: &str, _place: &Place, _id: &str) -> Result<Vec<String>, Fault> {
        Ok(Vec::new())
    }

    /// How many parents, or places of them, one page of a list asks at most: less than the requests that the manifest allows,
    /// because parents and what is joined are read with each page.
    fn places_of_page(&self) -> usize {
        32
    }

    /// Has the last word on an object of the model, for what no binding says. `row` is the vendor's, with `$`, `&`, `^` and
    /// `!` as in [`binding::Source`]. False leaves the object out.
    fn modelled(&self, _kind: &str, _row: &Value, _object: &mut Modelled) -> bool {
        true
    }

    /// Has the last word on what a change in the words of the model is, for what no binding says: it may change what is
    /// there, and add further changes behind.
    fn expressed(
        &self,
        _host: &dyn Host,
        _asked: &Asked<'_>,
        _changes: &mut Vec<Expressed>,
    ) -> Result<(), Fault> {
        Ok(())
    }
}
