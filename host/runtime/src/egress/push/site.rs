//! Which of the vendor's sites a message is about.

use heddle_marketplace::push::{Channel, SiteIs};
use serde_json::Value;

use super::limits::SITE_BYTES_MAX;
use super::told::{Place, ToldSite};

/// The site of the place; of a channel of the controller, the one that the message names. A message that names none is about
/// all of them.
pub(super) fn of(channel: &Channel, place: &Place, message: &Value) -> ToldSite {
    if let Place::Site(id) = place {
        return ToldSite::Id(id.clone());
    }
    let Some(declared) = &channel.site else { return ToldSite::All };
    let text = match message.pointer(&declared.at) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return ToldSite::All,
    };
    if text.is_empty() || text.len() > SITE_BYTES_MAX {
        return ToldSite::All;
    }
    match declared.is {
        SiteIs::Id => ToldSite::Id(text),
        SiteIs::Name => ToldSite::Name(text),
    }
}
