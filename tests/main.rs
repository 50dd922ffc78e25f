//! Heddle as its users use it: HTTP and WebSocket in, a real server, real
//! databases, a router that keeps state.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends with the place where")]

mod api;
mod devices;
mod events;
mod fabric;
mod fixtures;
mod house;
mod identity;
mod intent;
mod inventory;
mod marketplace;
mod notifications;
mod openwrt;
mod operate;
mod plugins;
mod processes;
mod sandbox;
mod staging;
mod support;
mod surface;
mod tenancy;
mod vendors;
mod webhooks;
