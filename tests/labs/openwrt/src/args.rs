//! Reads the arguments of a call the way ubus policies do: a wrong JSON type counts as missing.

use serde_json::{Map, Value};

use crate::status::Status;

/// The fourth element of `params`.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Args<'a> {
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    /// A required text: absent or of another type is status 2.
    pub(crate) fn required(self, name: &str) -> Result<&'a str, Status> {
        self.text(name).ok_or(Status::InvalidArgument)
    }

    /// Only a JSON boolean counts.
    pub(crate) fn flag(self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    pub(crate) fn integer(self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    pub(crate) fn table(self, name: &str) -> Option<&'a Map<String, Value>> {
        self.0.get(name)?.as_object()
    }

    pub(crate) fn array(self, name: &str) -> Option<&'a [Value]> {
        Some(self.0.get(name)?.as_array()?.as_slice())
    }
}
