//! What is wanted of objects: where devices drift from it, and documents that say all of it.
//!
//! It stands above changes: everything that reaches a device is staged there, and applied by people.

pub mod document;
pub mod drift;
mod glossary;
mod settable;

pub use document::Documents;
pub use drift::Ledger;
