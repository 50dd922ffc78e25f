//! Notifications: channels to the outside, notices inside the service.
//!
//! Other modules decide what is worth a notification: steps of Connections, and modules that have a message for an
//! organization's administrators.

mod body;
mod channels;
pub mod deliver;
pub mod message;
pub mod notices;
mod sealed;
mod settings;

use futures::FutureExt as _;
use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::{Feature, Forget, Sealing};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::resource::StepObject;
use heddle_store::sealed::SealedColumn;

pub use self::message::{BODY_CHARS_MAX, Message, SUBJECT_CHARS_MAX};

/// The noun that other modules use for guards of channels.
pub const CHANNEL: &str = "channel";

const FORGETS: &[Forget] =
    &[Forget { days: 30, batch: |tx, before, rows| heddle_store::notices::trim(tx, before, rows).boxed() }];

const SEALED: &[Sealing] = &[Sealing::of(SealedColumn::of("channel"))];

/// Channels and notices.
pub struct Notifications;

impl Feature for Notifications {
    fn name(&self) -> &'static str {
        "notifications"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::NOTIFICATIONS
    }

    fn step_objects(&self) -> &'static [StepObject] {
        const { &[channels::IN_STEPS] }
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        notices::routes().merge(channels::routes())
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}
