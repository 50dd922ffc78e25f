//! The REST surface.

mod bad_input;
mod documents;
mod edge;
mod edge_client;
mod edge_cors;
mod edge_wire;
mod limits;
mod sites_limited;
mod stream;
