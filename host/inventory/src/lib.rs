//! What an organization has: credentials, controllers and their adapters, devices, objects in the words of the model, and
//! what is read of them.

pub mod adapters;
pub mod controllers;
pub mod credentials;
pub mod devices;
mod glossary;
pub mod model;
pub mod sync;
