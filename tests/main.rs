//! Heddle as its users use it: HTTP and WebSocket in, a real server, real
//! databases, a router that keeps state.

mod api;
mod sandbox;
mod staging;
mod support;
