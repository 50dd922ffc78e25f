//! The REST surface.

mod bad_input;
mod conventions;
mod docs;
mod documents;
mod edge;
mod health;
mod logs;
mod metrics;
mod sites_limited;
mod stream;
