//! The commands of plugin authors: `heddle plugin …`.
//!
//! A plugin is judged, packed and run by the crates that the server uses; no rule of it stands here. The commands need no
//! running server, but for `dev`, which sends a plugin to one on this machine.

mod call;
mod command;
mod dev;
mod expect;
mod host;
mod make;
mod occasion;
mod package;
mod placed;
mod project;
mod recorded;
mod replay;
mod sdk;
mod server;
mod session;
mod show;
mod start;
mod tool;
mod trust;
mod watch;

pub use command::{Command, run};
