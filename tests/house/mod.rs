//! What the layout of the sources promises, where Cargo alone does not hold it.

mod circles;
mod coverage;
mod documented;
mod facts;
mod fixtures;
mod frozen;
mod names;
mod paths;
mod rooms;
mod settings;
mod words;
