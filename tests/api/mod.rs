//! The REST surface.

mod bad_input;
mod documents;
mod edge;
mod sites_limited;
mod stream;
