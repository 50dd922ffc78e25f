//! Entries of address lists: those with a time are dynamic, and end by themselves.

use crate::address;
use crate::device::Router;
use crate::duration;
use crate::refusal::Refusal;
use crate::store::{Origin, Record, Row};

const LISTS: [&str; 2] = ["ip/firewall/address-list", "ipv6/firewall/address-list"];
/// Where the end of an entry is kept.
const ENDS: &str = "ends";

pub(crate) fn complete(router: &Router, path: &str, row: &mut Row, old: Option<&Row>) -> Result<(), Refusal> {
    let text = row.text("address").to_owned();
    let is_v4 = path.starts_with("ip/");
    let shown = if is_v4 {
        address::show_range4(&text)
    } else {
        address::Prefix::parse(&text)
            .filter(|prefix| prefix.address.is_ipv6())
            .map(address::Prefix::show_network)
    };
    let is_name = !text.is_empty()
        && text.contains('.')
        && text.chars().any(|c| c.is_ascii_alphabetic())
        && !text.contains('/');
    let shown = shown.or_else(|| is_name.then(|| text.clone())).ok_or_else(|| Refusal::invalid("address"))?;
    row.values.insert("address".to_owned(), shown.into());
    if old.is_none() {
        row.values.insert("creation-time".to_owned(), crate::device::time_text(router.unix).into());
    }
    // Dynamic rows are not written; a row becomes one when it gets a time.
    row.values.remove("dynamic");
    let timeout = row.text("timeout").to_owned();
    if let Some(secs) = duration::secs(&timeout).filter(|secs| *secs > 0) {
        row.origin = Origin::Dynamic;
        row.values.insert(ENDS.to_owned(), (router.unix + secs).to_string().into());
    } else {
        row.values.remove("timeout");
    }
    Ok(())
}

/// Removes the entries whose time is over.
pub(crate) fn expire(router: &mut Router) {
    let unix = router.unix;
    for list in LISTS {
        router.store.retain(list, |row| row.text(ENDS).parse::<u64>().map_or(true, |ends| ends > unix));
    }
}

/// The time counts down while it is read.
pub(crate) fn fill(router: &Router, row: &Row, out: &mut Record) {
    out.insert("creation-time".to_owned(), row.text("creation-time").to_owned());
    out.remove("timeout");
    if let Ok(ends) = row.text(ENDS).parse::<u64>() {
        out.insert("timeout".to_owned(), duration::show_secs(ends.saturating_sub(router.unix)));
    }
}
