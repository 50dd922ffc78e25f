//! Notifications: channels to the outside, notices inside the service.
//!
//! What is worth a notification, others decide: steps of Connections, and whatever has something to say to an
//! organization's administrators.

mod body;
mod channels;
pub(crate) mod deliver;
pub(crate) mod message;
pub(crate) mod notices;
mod sealed;
mod settings;

use crate::app::SharedApp;
use crate::feature::Feature;
use crate::http::routes::Routes;

pub(crate) use self::message::{BODY_CHARS_MAX, Message, SUBJECT_CHARS_MAX};

/// The noun by which others guard channels.
pub(crate) const CHANNEL: &str = "channel";

/// Channels and notices.
pub(crate) struct Notifications;

impl Feature for Notifications {
    fn name(&self) -> &'static str {
        "notifications"
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        notices::routes().merge(channels::routes())
    }
}
