//! What is known of a site, made of the objects that its controllers' last readings found. Nothing here reaches a device.

pub(crate) mod facts;
pub(crate) mod gathered;
mod links;
pub(crate) mod load;
