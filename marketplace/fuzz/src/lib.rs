//! Fuzz targets of the readers that take bytes from strangers: archives, manifests, catalogues, and the rules of a manifest.
//!
//! A panic is a finding, and so is an input that makes the readers hold too much memory or take too long. Beyond that, each
//! target asserts what has to be true of all that is accepted. What only a signature lets through is signed here, by keys
//! that the target trusts, so that the fuzzer gets behind it.

pub mod archive;
pub mod catalog;
mod limits;
pub mod manifest;
mod package;
pub mod rules;
pub mod seeds;
#[expect(clippy::unwrap_used, reason = "it is shared with tests")]
#[path = "../../tests/hostile_archives/writer.rs"]
mod writer;

pub(crate) use limits::bounded;
