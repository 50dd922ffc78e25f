//! A small world of keys and files, what a server believes of it, and every attack on it.

mod bounds;
mod catalogs;
mod contexts;
mod mutations;
mod plain;
mod questions;
mod revocations;
mod roots;
mod states;
mod timestamps;
mod world;
