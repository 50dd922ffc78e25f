//! The REST surface.

mod bad_input;
mod conventions;
mod documents;
mod edge;
mod sites_limited;
mod stream;
