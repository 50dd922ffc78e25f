//! Answers of a controller, recorded through the egress of a server, and calls of the adapter that they were given to.
//!
//! `cargo xtask record <vendor>` writes `adapters/<vendor>/cassettes`. A native test plays the calls again
//! ([`replays`]), and plays them once more with each answer spoiled in each way that a device, a proxy or a broken path can
//! spoil it ([`every_mutant`]). The check knows no vendor: [`Envelope`] says what proves a success.

mod format;
mod gives;
mod mutants;
mod player;
mod replay;
mod verdict;

pub use format::{Answer, Call, Cassette, CassetteError, Exchange, Planned, Recorded, Recording, Source};
pub use gives::listed;
pub use mutants::{Damage, Envelope, Mutant, mutants};
pub use verdict::{Spared, every_mutant, replays};
