//! The REST surface.

mod bad_input;
mod edge;
