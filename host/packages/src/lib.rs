//! What decides about packages, whatever they are of: which keys open them, what an id is bound to, what is revoked.
//!
//! Adapters and plugins are installed by rooms of their own. Both ask here whether a package may be installed, and may run:
//! when it is sent, when it comes from a catalogue, and whenever it is loaded.

mod binding;
mod fit;
mod ground;
mod judge;
mod kept;
mod not_loaded;
mod pauses;
pub mod settings;

pub use self::binding::{bind, bind_in, find_binding, kept_rules};
pub use self::fit::check;
pub use self::ground::{Ground, revocations, said_of};
pub use self::judge::{Opened, conflict, key_of, may_serve, refused, unusable};
pub use self::kept::open_kept;
pub use self::not_loaded::NotLoaded;
pub use self::pauses::Pauses;
