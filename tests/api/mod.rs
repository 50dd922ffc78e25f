//! The REST surface.

mod bad_input;
mod conventions;
mod docs;
mod documents;
mod edge;
mod edge_client;
mod edge_connections;
mod edge_cors;
mod edge_wire;
mod files;
mod health;
mod limits;
mod logs;
mod metrics;
mod settings;
mod setup_token;
mod sites_limited;
mod stream;
