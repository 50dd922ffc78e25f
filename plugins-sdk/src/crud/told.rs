//! What sources before one tell, for a list that also has what they tell better.

use std::collections::BTreeSet;

use super::Vendor;
use super::binding::{KindBinding, ModelBinding, Source};
use super::modelled::PAGE_ROWS;
use super::objects::{self, Listed, has_time};
use super::read::Row;
use super::several::{is_not_offered, together};
use super::source::{is_meant, key_of, values};
use crate::{Completeness, Fault, Host, Listing, fault};

/// Rows of a page of which only the keys are kept, or most of which are told already.
const PAGE_KEYS: u32 = 1_000;
/// Most pages that one of ours is made of: requests of a call are bounded.
const PAGES_AT_ONCE: usize = 32;
/// Most pages of one source, against a device that gives the same page again and again.
const PAGES_MAX: usize = 1_000;

/// The keys of all objects that the sources before one tell; `None` where it does not ask for them.
///
/// A source that the device does not have, or denies, tells nothing. Another fault is answered: what that source told
/// would come a second time.
pub(super) fn before(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &ModelBinding,
    at: usize,
    site: Option<&str>,
) -> Result<Option<BTreeSet<String>>, Fault> {
    if !binding.sources.get(at).is_some_and(|source| source.except_told) {
        return Ok(None);
    }
    let (mut told, mut is_offered) = (BTreeSet::new(), false);
    for source in &binding.sources[..at] {
        if source.instead && is_offered {
            continue;
        }
        is_offered = match keys(vendor, host, source, site, &mut told) {
            Ok(()) | Err(Fault::Denied(_)) => true,
            Err(fault) if is_not_offered(&fault) => false,
            Err(fault) => return Err(fault),
        };
    }
    Ok(Some(told))
}

fn keys(
    vendor: &dyn Vendor,
    host: &dyn Host,
    source: &Source,
    site: Option<&str>,
    told: &mut BTreeSet<String>,
) -> Result<(), Fault> {
    let own = KindBinding::of(host, &source.from)?;
    let mut cursor = None::<String>;
    for _ in 0..PAGES_MAX {
        let listing = Listing { site, cursor: cursor.as_deref(), ..Listing::of(&source.from, PAGE_KEYS) };
        let Listed { rows, next, .. } = objects::rows(vendor, host, &own, &listing)?;
        for row in rows.iter().filter(|row| is_meant(source, &row.value)) {
            let native = objects::reference(&source.from, &own, row);
            told.extend(values(source, row).iter().filter_map(|value| key_of(source, &native, value)));
        }
        cursor = next;
        if cursor.is_none() {
            return Ok(());
        }
    }
    Err(fault::generic(format!("the list of objects of kind '{}' does not end", source.from)))
}

/// Rows that are not told yet: of as many pages of the list as fill one of ours in time.
pub(super) fn others(
    vendor: &dyn Vendor,
    host: &dyn Host,
    (source, own): (&Source, &KindBinding),
    told: &BTreeSet<String>,
    listing: &Listing<'_>,
) -> Result<Listed, Fault> {
    let is_new = |row: &Row| {
        let native = objects::reference(&source.from, own, row);
        values(source, row)
            .iter()
            .any(|value| key_of(source, &native, value).is_some_and(|key| !told.contains(&key)))
    };
    let begun = host.now_ms();
    let (mut kept, mut complete, mut is_offered) = (Vec::new(), Completeness::Complete, false);
    let mut cursor = listing.cursor.map(str::to_owned);
    for pages in 1.. {
        let listing = Listing { cursor: cursor.as_deref(), limit: PAGE_KEYS, ..*listing };
        let page = objects::rows(vendor, host, own, &listing)?;
        kept.extend(page.rows.into_iter().filter(is_new));
        complete = together(complete, page.complete);
        is_offered |= page.is_offered;
        cursor = page.next;
        let is_full = kept.len() >= PAGE_ROWS as usize || pages >= PAGES_AT_ONCE;
        if cursor.is_none() || is_full || !has_time(host, begun) {
            break;
        }
    }
    Ok(Listed { rows: kept, next: cursor, complete, is_offered, ..Listed::none() })
}
